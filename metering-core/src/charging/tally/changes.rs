//! The changes of a batch: the rows that a backend writes.

use std::sync::Arc;

use crate::access::key_id::KeyNumber;
use crate::charging::charge::MeterState;
use crate::charging::hold::Hold;
use crate::charging::key_meter::KeyMeter;
use crate::charging::posting::Remembered;
use crate::charging::rate::Window;
use crate::charging::request_id::RequestId;
use crate::charging::tokens::TokenScope;
use crate::charging::volume::{CountedRoute, Volume};
use crate::clock::Day;
use crate::events::event::NewEvent;
use crate::money::alert::AlertLevel;
use crate::money::credits::Credits;
use crate::usage::ActivityKind;

/// Everything a batch changes, ordered by row key so that any two commits lock rows in the same order.
#[derive(Debug)]
pub struct Changes<K, L> {
    /// New states of the accounts that changed.
    pub accounts: Vec<(K, MeterState)>,
    /// New meters of the keys that changed: only keys whose terms are counted.
    pub keys: Vec<(K, KeyNumber, KeyMeter)>,
    /// Charged and refunded usage; each change is an entry of recent activity.
    pub usage: Vec<UsageChange<K, L>>,
    /// Results to store. An expired one deletes the stored one.
    pub results: Vec<(K, RequestId, Remembered)>,
    /// New counts of routes with volume tiers.
    pub volumes: Vec<(K, CountedRoute, Volume)>,
    /// New windows of tokens. The batch opens or settles a hold of each of these accounts.
    pub tokens: Vec<(K, TokenScope, Window)>,
    /// Holds that were opened or changed, by id.
    pub holds: Vec<HoldChange<K, L>>,
    /// New alert levels of accounts ([`BalanceAlert::raised`](crate::money::BalanceAlert)). Each of these accounts is
    /// among `accounts` too.
    pub alerts: Vec<(K, AlertLevel)>,
    /// Events to write, in this order.
    pub events: Vec<(K, NewEvent)>,
}

impl<K, L> Changes<K, L> {
    /// Whether there is nothing to write. A batch of refusals may still have to report that a balance or budget is
    /// exhausted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.accounts.is_empty()
            && self.usage.is_empty()
            && self.results.is_empty()
            && self.volumes.is_empty()
            && self.holds.is_empty()
            && self.events.is_empty()
    }
}

impl From<UsageKind> for ActivityKind {
    fn from(kind: UsageKind) -> Self {
        match kind {
            UsageKind::Charged => Self::Usage,
            UsageKind::Refunded => Self::UsageRefund,
            UsageKind::Expired => Self::HoldExpired,
            UsageKind::Released => Self::HoldReleased,
        }
    }
}

/// A hold that a batch opened or changed.
#[derive(Debug, PartialEq, Eq)]
pub struct HoldChange<K, L> {
    /// The account.
    pub account: K,
    /// Route, method and source.
    pub line: L,
    /// Whether the batch opened it.
    pub is_new: bool,
    /// The hold after the batch.
    pub hold: Hold,
}

/// Usage of one line that a batch charged or refunded.
#[derive(Debug, PartialEq, Eq)]
pub struct UsageChange<K, L> {
    /// The account.
    pub account: K,
    /// The UTC day.
    pub day: Day,
    /// Route, method and source.
    pub line: L,
    /// The key that the requests came with.
    pub key: KeyNumber,
    /// How it came about.
    pub kind: UsageKind,
    /// How many requests, zero or more.
    pub calls: u64,
    /// Their price, zero or more.
    pub amount: Credits,
    /// The path of the requests, if it is the same for all.
    pub request_path: Option<Arc<str>>,
}

impl<K, L> UsageChange<K, L> {
    /// Calls to add to the day; refunded calls still count.
    #[must_use]
    pub const fn added_calls(&self) -> u64 {
        match self.kind {
            UsageKind::Charged | UsageKind::Expired | UsageKind::Released => self.calls,
            UsageKind::Refunded => 0,
        }
    }

    /// Credits to add to the day; negative for refunds.
    #[must_use]
    pub const fn added_credits(&self) -> Credits {
        match self.kind {
            UsageKind::Charged | UsageKind::Expired | UsageKind::Released => self.amount,
            // Amounts are not negative, so negation cannot overflow.
            UsageKind::Refunded => Credits::from_atoms(-self.amount.atoms()),
        }
    }
}

/// How usage came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UsageKind {
    /// Accepted requests, and captured holds.
    Charged,
    /// Refunded requests.
    Refunded,
    /// Holds that were captured because their lease ended.
    Expired,
    /// Holds that were released. They cost nothing, and count as calls, as refunded requests do.
    Released,
}

impl UsageKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Charged, Self::Refunded, Self::Expired, Self::Released];
}
