//! Usage: an account's charges by day and by route, and its recent activity.

mod line;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::access::account::{Account, AccountId};
use crate::access::issued_key::Key;
use crate::access::key_id::{KeyId, KeyNumber};
use crate::access::key_terms::KeyName;
use crate::clock::{Day, Timestamp};
use crate::money::credits::Credits;
use crate::money::ledger::{LedgerKind, PaymentRef};
use line::template_and_model;
pub use line::{ClientSource, UsageLine};

/// One day's calls and credits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DayUsage {
    /// The UTC day.
    pub day: Day,
    /// Accepted requests, including refunded ones.
    pub usage_events: u64,
    /// Their charges, minus refunds.
    pub credits_used: Credits,
}

/// One route's calls and credits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointUsage {
    /// The route's template, and the model, as in [`UsageLine::route_template`].
    pub route_template: Arc<str>,
    /// The HTTP method.
    pub http_method: Arc<str>,
    /// Accepted requests, including refunded ones.
    pub call_count: u64,
    /// Their charges, minus refunds.
    pub credits_used: Credits,
}

impl EndpointUsage {
    /// The route's template, without the model.
    #[must_use]
    pub fn template(&self) -> &str {
        template_and_model(&self.route_template).0
    }

    /// The model, if the route's models have their own prices.
    #[must_use]
    pub fn model(&self) -> Option<&str> {
        template_and_model(&self.route_template).1
    }
}

/// One key's calls and credits, without those of its child keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyTotal {
    /// The key.
    pub key: KeyNumber,
    /// Accepted requests, including refunded ones.
    pub call_count: u64,
    /// Their charges, minus refunds.
    pub credits_used: Credits,
}

/// How reports name a key, which may be revoked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyLabel {
    /// Its number.
    pub number: KeyNumber,
    /// The key that made it.
    pub parent: Option<KeyNumber>,
    /// Its id.
    pub id: KeyId,
    /// Its name.
    pub name: KeyName,
}

impl KeyLabel {
    /// The label of a key.
    #[must_use]
    pub fn of(key: &Key) -> Self {
        Self { number: key.number, parent: key.parent, id: key.id.clone(), name: key.terms.name.clone() }
    }
}

/// The labels of the keys that an account has, and of those that ended and are still kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyLabels(BTreeMap<KeyNumber, KeyLabel>);

impl KeyLabels {
    /// The label of a key.
    #[must_use]
    pub fn get(&self, number: KeyNumber) -> Option<&KeyLabel> {
        self.0.get(&number)
    }

    /// The number of the key with this id.
    #[must_use]
    pub fn number(&self, id: &KeyId) -> Option<KeyNumber> {
        self.0.values().find(|label| label.id == *id).map(|label| label.number)
    }

    /// Id and name of a key, as documents have them.
    #[must_use]
    pub fn id_and_name(&self, number: KeyNumber) -> (String, String) {
        let label = self.get(number);
        label.map_or_else(Default::default, |label| (label.id.to_string(), label.name.to_string()))
    }

    /// Whether a key is `above`, or below it.
    #[must_use]
    pub fn is_at_or_below(&self, number: KeyNumber, above: KeyNumber) -> bool {
        let parent = |label: &&KeyLabel| label.parent.and_then(|parent| self.get(parent));
        std::iter::successors(self.get(number), parent).any(|label| label.number == above)
    }
}

impl FromIterator<KeyLabel> for KeyLabels {
    fn from_iter<I: IntoIterator<Item = KeyLabel>>(labels: I) -> Self {
        Self(labels.into_iter().map(|label| (label.number, label)).collect())
    }
}

/// The usage of some days, read at one moment, so its parts add up exactly.
///
/// ```
/// use std::sync::Arc;
///
/// use metering_core::usage::DayRange;
/// use metering_core::{Charge, Clock, MemoryStore, Service, Store, SystemClock};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = Arc::new(MemoryStore::new());
/// let service = Service::with_defaults(store.clone());
/// let (account, key) = service.open_account("my-agent", "2".parse()?).await?;
/// service.charge(Charge::new(&key, "0.25".parse()?, "GET", "/price")).await?;
///
/// let days = DayRange::last_days(SystemClock.now(), 30);
/// let report = store.usage_report(&account.id, days).await?.ok_or("there is no such account")?;
/// assert_eq!(report.credits_added.to_string(), "2");
/// assert_eq!(&*report.by_endpoint[0].route_template, "/price");
/// assert_eq!(report.by_day[0].credits_used.to_string(), "0.25");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageReport {
    /// The account at that moment.
    pub account: Account,
    /// Days with usage, newest first.
    pub by_day: Vec<DayUsage>,
    /// Routes by credits, most first; then by calls, most first; then by template and method.
    pub by_endpoint: Vec<EndpointUsage>,
    /// Keys with usage, by credits, most first; then by number.
    pub by_key: Vec<KeyTotal>,
    /// The sum of the ledger entries of those days: credits bought and granted.
    pub credits_added: Credits,
}

/// A range of UTC days, including both ends.
///
/// ```
/// use metering_core::Timestamp;
/// use metering_core::usage::DayRange;
///
/// let now = Timestamp::from_unix_millis(1_795_248_000_005);
/// let week = DayRange::last_days(now, 7);
/// assert_eq!(week.first.to_string(), "2026-11-15");
/// assert!(week.contains(now.day()));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DayRange {
    /// The first day.
    pub first: Day,
    /// The last day.
    pub last: Day,
}

impl DayRange {
    /// The last `days` days, including the day of `now`; at least one.
    #[must_use]
    pub fn last_days(now: Timestamp, days: u32) -> Self {
        let last = now.day();
        Self { first: last.minus_days(days.saturating_sub(1)), last }
    }

    /// Whether `day` is in the range.
    #[must_use]
    pub fn contains(&self, day: Day) -> bool {
        (self.first..=self.last).contains(&day)
    }
}

/// A stored daily total: the most detailed usage record that is kept permanently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DailyTotal {
    /// The account.
    pub account: AccountId,
    /// The UTC day.
    pub day: Day,
    /// Route, method and source.
    pub line: UsageLine,
    /// The key that the requests came with.
    pub key: KeyNumber,
    /// Accepted requests, including refunded ones.
    pub calls: u64,
    /// Their charges, minus refunds.
    pub credits_used: Credits,
}

/// The subject of an entry of recent activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ActivityKind {
    /// Accepted requests.
    Usage,
    /// Refunds of requests that could not be delivered.
    UsageRefund,
    /// Requests whose holds were captured because their lease ended.
    HoldExpired,
    /// Requests whose holds were released. The amount is zero.
    HoldReleased,
    /// A ledger entry.
    Ledger(LedgerKind),
}

impl ActivityKind {
    /// The kind's name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Usage => "usage",
            Self::UsageRefund => "usage_refund",
            Self::HoldExpired => "hold_expired",
            Self::HoldReleased => "hold_released",
            Self::Ledger(kind) => kind.as_str(),
        }
    }
}

impl fmt::Display for ActivityKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An entry of an account's recent activity.
///
/// Requests of the same line in the same commit may share one entry. Stores keep at least the last
/// [`ACTIVITY_KEPT`] entries of an account and may delete older usage entries. Ledger entries are never deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activity {
    /// Unique within the account, and stable.
    pub id: String,
    /// The subject.
    pub kind: ActivityKind,
    /// The change of the balance: negative for usage.
    pub amount: Credits,
    /// A sentence, for ledger entries.
    pub description: Option<String>,
    /// Route, method and source, for usage and refunds.
    pub line: Option<UsageLine>,
    /// The requested path, if it is the same for all calls of the entry.
    pub request_path: Option<Arc<str>>,
    /// How many requests share the entry; 0 for ledger entries.
    pub calls: u64,
    /// The payment behind it, for purchases.
    pub payment: Option<PaymentRef>,
    /// The key that the requests came with, for usage and refunds.
    pub key: Option<KeyNumber>,
    /// When it was written.
    pub created_at: Timestamp,
}

/// How many entries of recent activity a store keeps for each account, at least.
pub const ACTIVITY_KEPT: u32 = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_today_and_the_days_before_it() {
        let now = Day::from_unix_days(100).start();
        let week = DayRange::last_days(now, 7);
        assert_eq!(week.first, Day::from_unix_days(94));
        assert!(week.contains(Day::from_unix_days(94)) && week.contains(now.day()));
        assert!(!week.contains(Day::from_unix_days(93)) && !week.contains(Day::from_unix_days(101)));
        assert_eq!(DayRange::last_days(now, 0), DayRange::last_days(now, 1));
    }

    #[test]
    fn sources_are_read_by_name_and_anything_else_is_unknown() {
        for source in ClientSource::ALL {
            assert_eq!(ClientSource::from_name(source.as_str()), source);
        }
        assert_eq!(ClientSource::from_name("CLI"), ClientSource::Unknown);
        assert_eq!(ClientSource::from_name(""), ClientSource::Unknown);
    }
}
