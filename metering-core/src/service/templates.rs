//! Limits how many templates outside the catalogue each account's usage is booked on. Beyond the limit it is booked on
//! a catch-all.
//!
//! A caller may pass on paths and templates that its clients chose. Each distinct one costs a permanent row, and
//! another for each day on which it is used. Each process reads an account's templates from the store on first use and
//! once a day, so the limit survives a restart but holds per node. It never fails a charge, and never applies to the
//! catalogue's own routes.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::access::invisible::is_invisible;
use crate::access::key::{ApiKey, KeyHash};
use crate::clock::Timestamp;
use crate::service::Service;
use crate::usage::{ClientSource, DayRange, UsageLine};

/// The template to book usage on when its own is too long or over the limit.
pub(super) const OTHER: &str = "(other)";
/// The same, for a method that HTTP does not define.
const OTHER_METHOD: &str = "OTHER";
/// The longest template to book usage on, in bytes.
const MAX_TEMPLATE_BYTES: usize = 256;
/// How many days back an account's templates count towards its limit.
const LOOK_BACK_DAYS: u32 = 90;
/// How long an account's templates are cached.
const CACHED_FOR: std::time::Duration = std::time::Duration::from_secs(24 * 60 * 60);
/// The most accounts to cache. Beyond that, the cache is cleared.
const MAX_ACCOUNTS: usize = 10_000;
const METHODS: [&str; 9] = ["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"];

/// Each account's templates outside the catalogue.
#[derive(Debug, Default)]
pub(super) struct OwnTemplates {
    accounts: Mutex<HashMap<KeyHash, KnownLines>>,
    /// Seeded at start, so that clients cannot choose templates whose hashes collide.
    hasher: RandomState,
}

/// The lines are hashes, so that an entry stays small however long the templates are.
#[derive(Debug)]
struct KnownLines {
    lines: HashSet<u64>,
    read_at: Timestamp,
}

impl OwnTemplates {
    /// Whether an account may use a line; `None` when its lines must be read first.
    fn admits(&self, key: &KeyHash, line: (&str, &str), most: usize, now: Timestamp) -> Option<bool> {
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

    fn remember<'l>(&self, key: KeyHash, lines: impl Iterator<Item = (&'l str, &'l str)>, now: Timestamp) {
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

impl Service {
    /// The line to book a request on: its own, or the catch-all when it is over the limit.
    pub(super) async fn bounded_line(
        &self,
        key: &ApiKey,
        template: Arc<str>,
        method: Arc<str>,
        source: ClientSource,
    ) -> UsageLine {
        let listed = self.catalogue.by_template(&method, &template).is_some();
        if listed || self.admits_template(key, &template, &method).await {
            return UsageLine { route_template: template, http_method: method, source };
        }
        let http_method = if METHODS.contains(&&*method) { method } else { OTHER_METHOD.into() };
        UsageLine { route_template: OTHER.into(), http_method, source }
    }

    async fn admits_template(&self, key: &ApiKey, template: &str, method: &str) -> bool {
        if template == OTHER || template.len() > MAX_TEMPLATE_BYTES || template.chars().any(is_invisible) {
            return false;
        }
        let (key, now, most) = (key.hash(), self.clock.now(), self.billing.templates_per_account);
        if let Some(admitted) = self.own_templates.admits(&key, (template, method), most, now) {
            return admitted;
        }
        // If the key is unknown or the store fails, the charge itself reports it.
        let Ok(Some(account)) = self.store.account_by_key(&key).await else { return false };
        let days = DayRange::last_days(now, LOOK_BACK_DAYS);
        let Ok(Some(report)) = self.store.usage_report(&account.id, days).await else { return false };
        let lines = report.by_endpoint.iter().map(|used| (&*used.route_template, &*used.http_method));
        let unlisted = lines
            .filter(|(template, method)| *template != OTHER && self.catalogue.by_template(method, template).is_none());
        self.own_templates.remember(key, unlisted, now);
        self.own_templates.admits(&key, (template, method), most, now).unwrap_or(false)
    }
}
