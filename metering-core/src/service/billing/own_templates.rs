use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::access::key::KeyHash;
use crate::clock::Timestamp;

/// How long an account's templates are cached.
const CACHED_FOR: Duration = Duration::from_secs(24 * 60 * 60);
/// The most accounts to cache. Beyond that, the cache is cleared.
const MAX_ACCOUNTS: usize = 10_000;

/// Each account's templates outside the catalogue.
#[derive(Debug, Default)]
pub(in crate::service) struct OwnTemplates {
    accounts: Mutex<HashMap<KeyHash, KnownLines>>,
    /// Seeded at start, so clients cannot choose templates whose hashes collide.
    hasher: RandomState,
}

/// The lines are hashes, so an entry is small however long the templates are.
#[derive(Debug)]
struct KnownLines {
    lines: HashSet<u64>,
    read_at: Timestamp,
}

impl OwnTemplates {
    /// Whether an account may use a line; `None` when its lines must be read first.
    pub(super) fn admits(&self, key: &KeyHash, line: (&str, &str), most: usize, now: Timestamp) -> Option<bool> {
        let mut accounts = self.lock();
        let known = accounts.get_mut(key).filter(|known| known.read_at.saturating_add(CACHED_FOR) > now)?;
        let line = self.hasher.hash_one(line);
        if known.lines.contains(&line) {
            return Some(true);
        }
        let room = known.lines.len() < most;
        if room {
            known.lines.insert(line);
        }
        Some(room)
    }

    pub(super) fn remember<'l>(&self, key: KeyHash, lines: impl Iterator<Item = (&'l str, &'l str)>, now: Timestamp) {
        let lines = lines.map(|line| self.hasher.hash_one(line)).collect();
        let mut accounts = self.lock();
        if accounts.len() >= MAX_ACCOUNTS {
            accounts.clear();
        }
        accounts.insert(key, KnownLines { lines, read_at: now });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<KeyHash, KnownLines>> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
