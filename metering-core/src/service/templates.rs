//! Which templates usage may be booked on that no catalogue has: so many per account, then a catch-all.
//!
//! A resolver may pass on paths and templates that its clients chose. Each distinct one is a row that lasts, and one
//! more per day in which it is used, so an account gets only so many. The bound is kept in this process and read from
//! the store when an account first needs it, and again each day: it survives a restart. Several nodes do not tell each
//! other about new templates within the day, so a deployment's bound is that number per node. Charges never fail over
//! it, and requests for routes of the catalogue never come here.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::clock::Timestamp;
use crate::key::{ApiKey, KeyHash};
use crate::service::Service;
use crate::unseen::is_unseen;
use crate::usage::{ClientSource, DayRange, UsageLine};

/// What usage is booked on when its own template is too long, or one too many.
pub(super) const OTHER: &str = "(other)";
/// The same, for a method that HTTP does not define.
const OTHER_METHOD: &str = "OTHER";
/// The longest template that is kept, in bytes.
const MAX_TEMPLATE_BYTES: usize = 256;
/// How far back an account's templates are looked for, in days; older ones make room.
const LOOK_BACK_DAYS: u32 = 90;
/// How long what was read is relied on.
const RELIED_ON: std::time::Duration = std::time::Duration::from_secs(24 * 60 * 60);
/// Accounts remembered at most; beyond that, all are forgotten and read again.
const MAX_ACCOUNTS: usize = 10_000;
const METHODS: [&str; 9] = ["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"];

/// The templates of each account that the catalogue does not have.
#[derive(Debug, Default)]
pub(super) struct OwnTemplates {
    accounts: Mutex<HashMap<KeyHash, Known>>,
    /// Drawn at start, so that nobody can choose templates whose hashes collide.
    hasher: RandomState,
}

/// Hashes rather than texts: an account's entry then has the same small size whatever its templates are.
#[derive(Debug)]
struct Known {
    lines: HashSet<u64>,
    read_at: Timestamp,
}

impl OwnTemplates {
    /// Whether an account may book on a line: `None` when its lines must be read first.
    fn admits(&self, key: &KeyHash, line: (&str, &str), most: usize, now: Timestamp) -> Option<bool> {
        let mut accounts = self.lock();
        let known = accounts.get_mut(key).filter(|known| known.read_at.saturating_add(RELIED_ON) > now)?;
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
        accounts.insert(key, Known { lines, read_at: now });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<KeyHash, Known>> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Service {
    /// The line that a resolver's request is booked on: its own, or the catch-all beyond the bounds.
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
        if template == OTHER || template.len() > MAX_TEMPLATE_BYTES || template.chars().any(is_unseen) {
            return false;
        }
        let (key, now, most) = (key.hash(), self.clock.now(), self.billing.templates_per_account);
        if let Some(admitted) = self.own_templates.admits(&key, (template, method), most, now) {
            return admitted;
        }
        // A key that nobody has, or a store in trouble: the charge itself will say so.
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
