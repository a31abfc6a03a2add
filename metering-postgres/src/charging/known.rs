//! A cache of immutable facts: the account and key of a secret or a hold, the account of an id, the numbers of usage
//! lines, and that a log is open. And of what rarely changes: the terms of keys, each with the version of its account
//! that it was read under (`access`).
//!
//! It must never hold whether a key is still live without such a version.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use metering_core::access::{KeyHash, KeyNumber};
use metering_core::charging::{HoldChange, HoldId};
use metering_core::{AccountId, StoreError, UsageLine};
use metering_sql::usage_lines;

use crate::charging::access::{self, Access};
use crate::connection::session::GenericClient;
use crate::error::{Failure, Result, corrupt};
use crate::rows::{all, execute, first, parsed};
use crate::statements::Statements;

/// Maximum number of cached secrets and keys, of cached accounts, and of cached holds. Beyond that, all are cleared, so
/// that memory stays bounded.
const MAX_KEYS: usize = 262_144;

/// The cache of one store.
#[derive(Debug, Default)]
pub(crate) struct Known {
    memory: Mutex<Memory>,
    /// Whether a log was found open. One always is from then on: the next begins when the last one ends.
    has_log: AtomicBool,
}

#[derive(Debug, Default)]
struct Memory {
    access: Access,
    accounts: HashMap<AccountId, i64>,
    lines: foldhash::HashMap<UsageLine, i64>,
    by_number: foldhash::HashMap<i64, UsageLine>,
    /// The accounts and keys of open holds.
    holds: foldhash::HashMap<HoldId, (i64, KeyNumber)>,
}

/// An account and its row number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Numbered {
    pub(crate) number: i64,
    pub(crate) id: AccountId,
}

impl Known {
    /// The cached data of these secrets, of these keys, and of the parent keys of both. Reads secrets that are not
    /// cached yet, with their keys; a secret that does not exist is missing in the result. Use it only with the values
    /// of `meter.access` that it was read under.
    pub(crate) async fn access<C: GenericClient>(
        &self,
        client: &C,
        secrets: &[KeyHash],
        keys: &[(i64, KeyNumber)],
    ) -> Result<Access> {
        let mut known = Access::default();
        let mut unknown: Vec<KeyHash> = {
            let memory = self.memory();
            for secret in secrets {
                let Some(access) = memory.access.secrets.get(secret) else { continue };
                if known.secrets.insert(*secret, Arc::clone(access)).is_none() {
                    known.take_chain(&memory.access, access.account, access.key);
                }
            }
            keys.iter().for_each(|(account, key)| known.take_chain(&memory.access, *account, *key));
            secrets.iter().filter(|secret| !known.secrets.contains_key(*secret)).copied().collect()
        };
        if !unknown.is_empty() {
            unknown.sort_unstable();
            unknown.dedup();
            let (read, _) = access::read(client, &unknown, &[], &[]).await?;
            self.learn(&read);
            known.extend(&read);
        }
        Ok(known)
    }

    /// Caches what was read.
    pub(crate) fn learn(&self, read: &Access) {
        let mut memory = self.memory();
        memory.make_room();
        memory.access.extend(read);
    }

    /// Accounts with their numbers, in the order of `ids`; `None` for one that does not exist.
    pub(crate) async fn accounts<C: GenericClient>(
        &self,
        client: &C,
        ids: &[&AccountId],
    ) -> Result<Vec<Option<Numbered>>> {
        let mut found: Vec<Option<i64>> = {
            let memory = self.memory();
            ids.iter().map(|id| memory.accounts.get(*id).copied()).collect()
        };
        let missing = ids.iter().zip(&found).filter(|(_, found)| found.is_none());
        let unknown: Vec<&str> = missing.map(|(id, _)| id.as_str()).collect();
        if !unknown.is_empty() {
            let mut loaded: HashMap<AccountId, i64> = HashMap::new();
            for row in all(client, "SELECT org_id, id FROM account WHERE org_id = ANY($1)", &[&unknown]).await? {
                loaded.insert(parsed(&row, 0)?, row.try_get(1)?);
            }
            for (id, found) in ids.iter().zip(&mut found) {
                *found = found.or_else(|| loaded.get(*id).copied());
            }
            let mut memory = self.memory();
            memory.make_room();
            memory.accounts.extend(loaded);
        }
        let numbered = |(id, number): (&&AccountId, Option<i64>)| Some(Numbered { number: number?, id: (*id).clone() });
        Ok(ids.iter().zip(found).map(numbered).collect())
    }

    /// The numbers of usage lines, in the order of `lines`. New lines are inserted immediately, outside any
    /// transaction: an unused line is harmless.
    pub(crate) async fn lines<C: GenericClient>(&self, client: &C, lines: &[&UsageLine]) -> Result<Vec<i64>> {
        // Not read back from the cache, which another commit may have cleared.
        let mut numbers: HashMap<&UsageLine, i64> = {
            let memory = self.memory();
            lines.iter().filter_map(|line| Some((*line, *memory.lines.get(*line)?))).collect()
        };
        let new: BTreeSet<&UsageLine> = lines.iter().copied().filter(|line| !numbers.contains_key(line)).collect();
        for line in new {
            let number = number_of(client, line).await?;
            numbers.insert(line, number);
            self.memory().lines.insert(line.clone(), number);
        }
        Ok(lines.iter().map(|line| numbers[line]).collect())
    }

    /// The line with this number.
    pub(crate) async fn line<C: GenericClient>(&self, client: &C, number: i64) -> Result<UsageLine> {
        if let Some(line) = self.memory().by_number.get(&number) {
            return Ok(line.clone());
        }
        let read = usage_lines::numbered(&mut Statements(client), vec![number]).await?;
        let line = read[&number].clone();
        self.memory().by_number.insert(number, line.clone());
        Ok(line)
    }

    /// The key of a hold of this account, if it is cached. Neither ever changes.
    pub(crate) fn key_of_hold(&self, hold: &HoldId, account: i64) -> Option<KeyNumber> {
        let known = self.memory().holds.get(hold).copied();
        known.filter(|(of, _)| *of == account).map(|(_, key)| key)
    }

    /// Keeps the keys of the holds that a batch left open, and forgets those that it settled.
    pub(crate) fn learn_holds(&self, changes: &[HoldChange<i64, i64>]) {
        if changes.is_empty() {
            return;
        }
        let mut memory = self.memory();
        if memory.holds.len() > MAX_KEYS {
            memory.holds.clear();
        }
        for HoldChange { account, hold, .. } in changes {
            if hold.settled.is_none() {
                memory.holds.insert(hold.id, (*account, hold.key));
            } else {
                memory.holds.remove(&hold.id);
            }
        }
    }

    /// Whether a log was found open. `false` is never trusted, only tried: commits check it.
    pub(crate) fn has_log(&self) -> bool {
        self.has_log.load(Ordering::Relaxed)
    }

    /// Notes that a log is open.
    pub(crate) fn found_log(&self) {
        self.has_log.store(true, Ordering::Relaxed);
    }

    /// Clears the cache.
    pub(crate) fn forget(&self) {
        *self.memory() = Memory::default();
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Memory {
    fn make_room(&mut self) {
        if self.access.len() > MAX_KEYS || self.accounts.len() > MAX_KEYS {
            self.access = Access::default();
            self.accounts.clear();
        }
    }
}

/// How often to draw a number for a new line. The chance that a number is taken is one in 2^63 per existing line.
const DRAWS: usize = 3;

/// The numbers of lines, in order. New ones are inserted.
pub(crate) async fn numbers_of<C: GenericClient>(client: &C, lines: &[&UsageLine]) -> Result<Vec<i64>> {
    if lines.is_empty() {
        return Ok(Vec::new());
    }
    let texts: HashMap<Vec<u8>, &UsageLine> = lines.iter().map(|line| (digested(line), *line)).collect();
    let sql = "SELECT u.texts, l.id FROM unnest(CAST($1 AS BYTEA[])) AS u (texts) \
               JOIN usage_line l ON l.digest = sha256(u.texts)";
    let mut numbers: HashMap<Vec<u8>, i64> = HashMap::new();
    for row in all(client, sql, &[&texts.keys().map(Vec::as_slice).collect::<Vec<_>>()]).await? {
        numbers.insert(row.try_get(0)?, row.try_get(1)?);
    }
    for (texts, line) in texts {
        if let Entry::Vacant(unknown) = numbers.entry(texts) {
            unknown.insert(number_of(client, line).await?);
        }
    }
    let number = |line: &&UsageLine| numbers.get(&digested(line)).copied();
    lines.iter().map(|line| number(line).ok_or_else(|| corrupt("a usage line just written is missing"))).collect()
}

/// The number of a line; random if the line is new. Lines are identified by the SHA-256 of their texts, which cannot be
/// made to collide. With a number derived from the texts, a client that chooses the texts could cause collisions.
async fn number_of<C: GenericClient>(client: &C, line: &UsageLine) -> Result<i64> {
    let (texts, find) = (digested(line), "SELECT id FROM usage_line WHERE digest = sha256($1)");
    for _ in 0..DRAWS {
        if let Some(row) = first(client, find, &[&texts]).await? {
            return Ok(row.try_get(0)?);
        }
        let sql = "INSERT INTO usage_line (id, digest, route_template, http_method, source) \
                   VALUES ($1, sha256($2), $3, $4, $5) ON CONFLICT DO NOTHING";
        let (route, method) = (&*line.route_template, &*line.http_method);
        execute(client, sql, &[&draw()?, &texts, &route, &method, &line.source.as_str()]).await?;
    }
    let row = first(client, find, &[&texts]).await?;
    row.ok_or_else(|| corrupt("a usage line has no number"))?.try_get(0).map_err(Failure::from)
}

/// The input of the digest: each text prefixed with its length, exactly as in the migration to version 4.
fn digested(line: &UsageLine) -> Vec<u8> {
    let texts = [&*line.route_template, &*line.http_method, line.source.as_str()];
    let length = |text: &str| u64::try_from(text.len()).unwrap_or(u64::MAX).to_be_bytes();
    texts.iter().flat_map(|text| [&length(text)[..], text.as_bytes()].concat()).collect()
}

fn draw() -> Result<i64> {
    let mut bytes = [0; 8];
    let drawn = getrandom::fill(&mut bytes);
    drawn.map_err(|error| Failure::Store(StoreError::Unavailable(error.to_string().into())))?;
    Ok(i64::from_be_bytes(bytes) & i64::MAX)
}

/// The cache, shared between the store and its batches.
pub(crate) type SharedKnown = Arc<Known>;
