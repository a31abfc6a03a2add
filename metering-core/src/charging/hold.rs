//! Credits that are held for a request whose cost is known only after its response: the rule that settles a hold.
//!
//! A hold is committed like a charge: it lowers the balance, and counts against budgets and rate limits. It is settled
//! once: the response's cost becomes usage, and the rest returns to the balance. A hold has a lease, which the process
//! that serves the request renews. When the lease ends, any process settles the hold by its own rule, so every hold
//! ends.

use std::sync::Arc;
use std::time::Duration;

use crate::access::account::AccountId;
use crate::access::key_id::KeyNumber;
use crate::charging::delivery::Attempt;
use crate::charging::request_id::RequestId;
use crate::charging::tokens::HeldTokens;
use crate::charging::volume::CountedRoute;
use crate::clock::{Month, Timestamp};
use crate::money::credits::Credits;
use crate::named_enum::named_enum;
use crate::random::Randomness;
use crate::random_id::random_id;
use crate::usage::UsageLine;

/// The id of a request: `req_` and 32 lower-case hex digits. The id of a request's hold is random, unless it is
/// [derived from a charge](HoldId::of_charge).
///
/// ```
/// use metering_core::SystemRandomness;
/// use metering_core::charging::HoldId;
///
/// let id = HoldId::generate(&SystemRandomness);
/// assert_eq!(id.to_string().parse(), Ok(id));
/// assert!("req_42".parse::<HoldId>().is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HoldId([u8; 16]);

/// The text is not the id of a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the id of a request is req_ followed by 32 lower-case hex digits")]
pub struct HoldIdError;

random_id!(HoldId, HoldIdError, "req_");

/// Makes a charge a hold: its price is held, and settled later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HoldTerms {
    /// The id, used once. A [`Meter`](crate::Meter) assigns a new one to each charge that it posts.
    pub id: HoldId,
    /// How long the hold stays open unless its lease is renewed. A [`Meter`](crate::Meter) keeps it within
    /// [`HoldTerms::LEASES`].
    pub lease: Duration,
    /// The amount to capture when the cost is not reported, at most the hold.
    pub fallback: Credits,
}

impl HoldTerms {
    /// The shortest and the longest lease. The meter cannot renew a shorter lease in time; a longer one would be held
    /// long after its process has ended.
    pub const LEASES: std::ops::RangeInclusive<Duration> = Duration::from_secs(10)..=Duration::from_secs(86_400);

    /// The terms of a new hold.
    #[must_use]
    pub fn new(randomness: &dyn Randomness, lease: Duration, fallback: Credits) -> Self {
        Self { id: HoldId::generate(randomness), lease, fallback }
    }
}

/// The hold of an accepted charge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// The hold.
    pub id: HoldId,
    /// How much.
    pub amount: Credits,
    /// How long its lease is.
    pub lease: Duration,
}

/// A hold, open or settled. Stores keep a settled one for [`Hold::RETENTION`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// Its id.
    pub id: HoldId,
    /// The account whose credits it holds.
    pub account: AccountId,
    /// The key that the request came with.
    pub key: KeyNumber,
    /// The amount that it holds, or held.
    pub amount: Credits,
    /// The amount to capture when the cost is not reported.
    pub fallback: Credits,
    /// The usage row that its usage is booked on.
    pub line: UsageLine,
    /// The requested path.
    pub request_path: Arc<str>,
    /// When it was opened. Its usage is booked on this day.
    pub created_at: Timestamp,
    /// When its lease ends.
    pub expires_at: Timestamp,
    /// How it was settled; `None` while it is open.
    pub settled: Option<SettledHold>,
    /// The tokens that were counted for it when it was opened; `None` if no limit on tokens applied.
    pub tokens: Option<HeldTokens>,
    /// The name of the upstream that served its request, once it is settled; `None` if its route names none, or none
    /// served it.
    pub upstream: Option<Arc<str>>,
}

/// How a hold was settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettledHold {
    /// The captured amount. More than was held only if the operator allows debts.
    pub captured: Credits,
    /// Why.
    pub reason: SettleReason,
    /// When.
    pub at: Timestamp,
}

named_enum! {
    /// Why a hold was settled.
    pub enum SettleReason {
        /// The cost was reported.
        Report = "report",
        /// The request ended, and no cost was reported.
        NoReport = "no_report",
        /// The request was not served.
        Release = "release",
        /// The lease ended.
        Expiry = "expiry",
    }
}

/// How to update an open hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldAction {
    /// Capture the cost of the request.
    Capture {
        /// The cost, zero or more.
        cost: Credits,
        /// Whether to capture more than is held, if it cost more. The balance and budgets may then go below zero.
        may_exceed: bool,
    },
    /// Capture the hold's fallback: the request has ended, and its cost is not known.
    CaptureFallback,
    /// Capture nothing: the request was not served.
    Release,
    /// Capture the hold's fallback if its lease has ended.
    Expire,
    /// Extend the lease, if it ends earlier than this.
    Renew {
        /// The new end.
        until: Timestamp,
    },
}

/// A posting that changes a hold. A hold that is already settled does not change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldUpdate {
    /// The hold's account.
    pub account: AccountId,
    /// The hold.
    pub id: HoldId,
    /// What to do.
    pub action: HoldAction,
    /// For a [release](HoldAction::Release) or a [fallback](HoldAction::CaptureFallback): which attempt has ended, for
    /// a request with an idempotency key. A release forgets the key. If a later attempt has begun, the hold belongs to
    /// that attempt, and nothing changes.
    pub delivery: Option<Attempt>,
    /// For a release of a hold of a route with volume tiers: the month whose count has the request, if that is known.
    /// Otherwise it is the month in which the hold was opened.
    pub counted_in: Option<Month>,
    /// For a [capture](HoldAction::Capture): the tokens that the request used, which then count instead of those that
    /// were held. If they are not known, the held tokens stay counted.
    pub tokens: Option<u32>,
    /// If the update settles the hold: the name of the upstream that served the request.
    pub upstream: Option<Arc<str>>,
}

impl HoldUpdate {
    /// An update without further details.
    #[must_use]
    pub const fn new(account: AccountId, id: HoldId, action: HoldAction) -> Self {
        Self { account, id, action, delivery: None, counted_in: None, tokens: None, upstream: None }
    }

    /// The route in whose count the update may free a place, if this is its hold: a release, of a route with volume
    /// tiers.
    #[must_use]
    pub fn counted_route(&self, hold: &Hold) -> Option<CountedRoute> {
        matches!(self.action, HoldAction::Release).then(|| CountedRoute::of(&hold.line))
    }

    /// The tokens that the request used; `None` if they are not known, so the held tokens stay counted.
    pub(crate) fn used_tokens(&self) -> Option<u32> {
        match self.action {
            HoldAction::Capture { .. } => self.tokens,
            HoldAction::Release => Some(0),
            HoldAction::CaptureFallback | HoldAction::Expire | HoldAction::Renew { .. } => None,
        }
    }
}

/// The outcome of a [`HoldUpdate`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldUpdated {
    /// The hold after it.
    pub hold: Hold,
    /// The account's balance after it.
    pub balance: Credits,
    /// Whether this update changed the hold.
    pub changed: bool,
    /// The request's cost above the hold, captured or not. Zero unless this update captured.
    pub excess: Credits,
}

impl Hold {
    /// How long a settled hold is kept for look-ups of its request.
    pub const RETENTION: Duration = RequestId::RETENTION;

    /// The hold that an accepted charge opens.
    pub(crate) fn open(
        terms: HoldTerms,
        account: AccountId,
        key: KeyNumber,
        amount: Credits,
        (line, request_path): (UsageLine, Arc<str>),
        tokens: Option<HeldTokens>,
        now: Timestamp,
    ) -> Self {
        let HoldTerms { id, lease, fallback } = terms;
        let (fallback, expires_at) = (fallback.max(Credits::ZERO).min(amount), now.saturating_add(lease));
        let (created_at, settled, upstream) = (now, None, None);
        Self {
            id,
            account,
            key,
            amount,
            fallback,
            line,
            request_path,
            created_at,
            expires_at,
            settled,
            tokens,
            upstream,
        }
    }

    /// The amount that it holds now: zero once it is settled.
    #[must_use]
    pub fn held(&self) -> Credits {
        if self.settled.is_some() { Credits::ZERO } else { self.amount }
    }

    /// When a store may delete it; `None` while it is open.
    #[must_use]
    pub fn forgotten_from(&self) -> Option<Timestamp> {
        self.settled.map(|settled| settled.at.saturating_add(Self::RETENTION))
    }

    /// The hold after an action at `now`, and the request's cost above the hold; `None` if nothing changes.
    pub(crate) fn after(&self, action: HoldAction, now: Timestamp) -> Option<(Self, Credits)> {
        if self.settled.is_some() {
            return None;
        }
        let settled = |captured, reason| {
            let settled = Some(SettledHold { captured, reason, at: now });
            Self { settled, ..self.clone() }
        };
        match action {
            HoldAction::Capture { cost, may_exceed } => {
                let cost = cost.max(Credits::ZERO);
                let excess = cost.checked_sub(self.amount).unwrap_or(Credits::ZERO).max(Credits::ZERO);
                let captured = if may_exceed { cost } else { cost.min(self.amount) };
                Some((settled(captured, SettleReason::Report), excess))
            }
            HoldAction::CaptureFallback => Some((settled(self.fallback, SettleReason::NoReport), Credits::ZERO)),
            HoldAction::Release => Some((settled(Credits::ZERO, SettleReason::Release), Credits::ZERO)),
            HoldAction::Expire if now < self.expires_at => None,
            HoldAction::Expire => Some((settled(self.fallback, SettleReason::Expiry), Credits::ZERO)),
            HoldAction::Renew { until } if until <= self.expires_at => None,
            HoldAction::Renew { until } => Some((Self { expires_at: until, ..self.clone() }, Credits::ZERO)),
        }
    }
}

#[cfg(test)]
mod tests;
