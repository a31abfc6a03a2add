//! The charge rule: whether a request is accepted, and what that does to its account. Pure.

use std::sync::Arc;

use crate::account::{AccountId, RateLimits, Totals};
use crate::clock::{Day, Timestamp};
use crate::credits::Credits;
use crate::delivery::{DeliveryTerms, IdempotencyKey, Repetition};
use crate::key::KeyHash;
use crate::usage::UsageLine;

/// A request to be charged.
#[derive(Debug, Clone)]
pub struct Charge {
    /// The key that it came with.
    pub key: KeyHash,
    /// Its price, zero or more.
    pub price: Credits,
    /// What its usage is booked on.
    pub line: UsageLine,
    /// The path that was asked for, for the account's recent activity.
    pub request_path: Arc<str>,
    /// Names the request, so that a retry is answered as the first try was and not charged again.
    pub request_id: Option<RequestId>,
    /// Set for a request that is forwarded, whose `request_id` is [that of an idempotency
    /// key](RequestId::of_idempotency_key): a retry is accepted only until a response was delivered.
    pub delivery: Option<DeliveryTerms>,
}

/// A caller's name for a request: 1 to 128 visible ASCII characters, unique within the account for 24 hours.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(String);

/// What the stored form of an idempotency key starts with.
const KEY_PREFIX: &str = "key ";

/// The text is not a request id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be 1 to 128 visible ASCII characters")]
pub struct RequestIdError;

impl RequestId {
    /// How long a request id is remembered.
    pub const REMEMBERED: std::time::Duration = std::time::Duration::from_secs(24 * 60 * 60);

    /// Reads an id.
    ///
    /// # Errors
    /// When the text is empty, too long or has other characters.
    pub fn parse(text: &str) -> Result<Self, RequestIdError> {
        let visible = text.bytes().all(|b| b.is_ascii_graphic());
        if visible && (1..=128).contains(&text.len()) { Ok(Self(text.to_owned())) } else { Err(RequestIdError) }
    }

    /// That of an idempotency key. It has a space, so that it is never the one that a caller gives to a deduction: a client
    /// could otherwise pay for a cheap request, and have an expensive one answered as its retry.
    #[must_use]
    pub fn of_idempotency_key(key: &IdempotencyKey) -> Self {
        Self(format!("{KEY_PREFIX}{}", key.as_str()))
    }

    /// Reads an id back that was stored.
    ///
    /// # Errors
    /// As [`RequestId::parse`].
    pub fn from_stored(text: &str) -> Result<Self, RequestIdError> {
        Self::parse(text.strip_prefix(KEY_PREFIX).unwrap_or(text))?;
        Ok(Self(text.to_owned()))
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// How many requests were accepted in the newest window that had any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Window {
    /// Which window: minutes or days since the Unix epoch.
    pub index: i64,
    /// Requests accepted in it.
    pub count: u32,
}

impl Window {
    /// The window of `index`: fresh if it is newer, or if the clock stepped back to it.
    ///
    /// An `index` that is only a little older (another node's clock lags) counts in the newest window, so that small
    /// differences between clocks give no account a window twice.
    fn at(self, index: i64, stepped_back: bool) -> Self {
        let is_other = if stepped_back { index != self.index } else { index > self.index };
        if is_other { Self { index, count: 0 } } else { self }
    }

    /// One more accepted request, unless `cap` (0: none) is reached.
    fn admit(self, cap: u32) -> Option<Self> {
        let room = cap == 0 || self.count < cap;
        room.then(|| Self { index: self.index, count: self.count.saturating_add(1) })
    }
}

/// All that the rule needs to know of an account, and all that a charge changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeterState {
    /// Its money.
    pub totals: Totals,
    /// Its caps.
    pub limits: RateLimits,
    /// Accepted requests of the minute.
    pub minute: Window,
    /// Accepted requests of the day.
    pub day: Window,
}

impl MeterState {
    /// Where the account stands within its caps at `now`, before any further request.
    #[must_use]
    pub fn rate_status(&self, now: Timestamp) -> RateStatus {
        // Both windows belong to the newest reading of a clock that was accepted; its minute says how far back this is.
        let minutes_back = self.minute.index.saturating_sub(now.minute());
        RateStatus {
            limits: self.limits,
            minute: self.minute.at(now.minute(), minutes_back > Self::MINUTES_OF_LAG),
            day: self.day.at(now.day().unix_days(), minutes_back > Self::MINUTES_OF_LAG_AT_MIDNIGHT),
            at: now,
        }
    }

    /// How many minutes a clock may be behind the newest reading and still count in its minute. A larger step back means
    /// that the newest reading was wrong: it must not hold the account until that minute comes.
    const MINUTES_OF_LAG: i64 = 1;
    /// The same for the day. A clock that is corrected by minutes just after midnight does not give a day twice; a
    /// reading that was hours ahead does not hold the account for a day.
    const MINUTES_OF_LAG_AT_MIDNIGHT: i64 = 60;
}

/// Which of the two caps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitWindow {
    /// The calendar minute.
    Minute,
    /// The UTC day.
    Day,
}

impl LimitWindow {
    /// Its name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Minute => "minute",
            Self::Day => "day",
        }
    }
}

/// Where an account stands within its caps, at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateStatus {
    /// The caps.
    pub limits: RateLimits,
    /// Accepted requests of the minute.
    pub minute: Window,
    /// Accepted requests of the day.
    pub day: Window,
    /// The moment.
    pub at: Timestamp,
}

impl RateStatus {
    /// Requests left in the window; `None` without a cap.
    #[must_use]
    pub fn remaining(&self, window: LimitWindow) -> Option<u32> {
        let (cap, used) = match window {
            LimitWindow::Minute => (self.limits.requests_per_minute, self.minute.count),
            LimitWindow::Day => (self.limits.requests_per_day, self.day.count),
        };
        (cap != 0).then(|| cap.saturating_sub(used))
    }

    /// Whole seconds until the window ends, at least one.
    #[must_use]
    pub fn reset_seconds(&self, window: LimitWindow) -> u64 {
        let end = match window {
            LimitWindow::Minute => (self.minute.index + 1).saturating_mul(60_000),
            LimitWindow::Day => Day::from_unix_days(self.day.index + 1).start().unix_millis(),
        };
        let left = end.saturating_sub(self.at.unix_millis());
        u64::try_from(left).unwrap_or(0).div_ceil(1_000).max(1)
    }
}

/// The answer to a charge.
#[derive(Debug, PartialEq, Eq)]
pub enum Decision {
    /// Charged; serve it.
    Accepted(Receipt),
    /// Not charged; do not serve it.
    Refused(Refusal),
}

/// Proof of a charge: what was taken from whom, and what a refund gives back.
///
/// Not `Clone` on purpose: a refund uses it up, so that none can be paid back twice.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Receipt {
    /// Who was charged.
    pub account: AccountId,
    /// How much.
    pub charged: Credits,
    /// The balance after it.
    pub balance: Credits,
    /// What it was booked on.
    pub line: UsageLine,
    /// The UTC day that it was booked on.
    pub day: Day,
    /// The path that was asked for.
    pub request_path: Arc<str>,
    /// Where the account stands within its caps.
    pub rate: RateStatus,
    /// Whether this repeats the answer to an earlier request of the same id, so that nothing was charged now.
    pub repeated: bool,
    /// Which try this is of a request with an idempotency key.
    pub delivery: Option<Try>,
}

/// One try of a request with an idempotency key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Try {
    /// The key.
    pub request: RequestId,
    /// Its number, from 1.
    pub number: u32,
}

/// That a response to a request with an idempotency key was passed on, so that the key is used up.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settlement {
    /// Whose key.
    pub account: AccountId,
    /// The key.
    pub request: RequestId,
    /// What the charge was booked on.
    pub line: UsageLine,
}

/// A charge to be paid back, because what was accepted could not be delivered.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refund {
    /// Who is paid back.
    pub account: AccountId,
    /// How much.
    pub amount: Credits,
    /// What the charge was booked on.
    pub line: UsageLine,
    /// The UTC day that the charge was booked on; the refund is booked on the same.
    pub day: Day,
    /// The path that was asked for.
    pub request_path: Arc<str>,
    /// Which try failed, of a request with an idempotency key: the key is forgotten with the refund.
    pub delivery: Option<Try>,
}

impl Receipt {
    /// The refund of this charge; `None` when there is nothing to pay back.
    ///
    /// A further try of a request with an idempotency key stands for the charge of its first, and pays that back.
    #[must_use]
    pub fn into_refund(self) -> Option<Refund> {
        let Self { account, charged, line, day, request_path, repeated, delivery, .. } = self;
        let owed = delivery.is_some() || (charged.is_positive() && !repeated);
        owed.then_some(Refund { account, amount: charged, line, day, request_path, delivery })
    }

    /// What to record once a response is passed on; `None` without an idempotency key.
    #[must_use]
    pub fn settlement(&self) -> Option<Settlement> {
        let Try { request, .. } = self.delivery.clone()?;
        Some(Settlement { account: self.account.clone(), request, line: self.line.clone() })
    }
}

/// Why a charge was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The key is nobody's, or was revoked: the two are not told apart.
    UnknownKey,
    /// A cap is reached.
    RateLimited {
        /// Which.
        window: LimitWindow,
        /// Where the account stands.
        rate: RateStatus,
    },
    /// The request's idempotency key is known, and another try is not due.
    Repeated(Repetition),
    /// The balance is not above zero.
    InsufficientCredits {
        /// The balance.
        balance: Credits,
        /// The request's price.
        required: Credits,
        /// Where the account stands within its caps.
        rate: RateStatus,
    },
}

/// Applies one charge: caps first, then the balance.
///
/// The rule is *balance above zero*, not *balance covers the price*: the last accepted request may take the balance
/// below zero, by less than its own price. A refused charge changes nothing, and is not counted by the caps.
///
/// # Errors
/// Why the charge is refused.
///
/// # Panics
/// When `price` is negative: a charge must never give credits away.
pub(crate) fn apply(state: &mut MeterState, price: Credits, now: Timestamp) -> Result<RateStatus, Refusal> {
    assert!(!price.is_negative(), "a price is never negative");
    let rate = state.rate_status(now);
    // The day first: when both are reached, waiting for the next minute would not help.
    let Some(day) = rate.day.admit(rate.limits.requests_per_day) else {
        return Err(Refusal::RateLimited { window: LimitWindow::Day, rate });
    };
    let Some(minute) = rate.minute.admit(rate.limits.requests_per_minute) else {
        return Err(Refusal::RateLimited { window: LimitWindow::Minute, rate });
    };
    let insufficient = || Refusal::InsufficientCredits { balance: state.totals.balance, required: price, rate };
    if !state.totals.balance.is_positive() {
        return Err(insufficient());
    }
    // `used` would overflow only after more credits than can exist were spent; refusing is the safe answer even then.
    let used = state.totals.used.checked_add(price).ok_or_else(insufficient)?;
    let balance = state.totals.balance.checked_sub(price).ok_or_else(insufficient)?;
    state.totals.used = used;
    state.totals.balance = balance;
    state.minute = minute;
    state.day = day;
    Ok(RateStatus { minute, day, ..rate })
}

/// Applies a refund: the price comes back, the request stays counted.
///
/// Returns `false`, and changes nothing, when an amount would overflow.
#[must_use]
pub(crate) fn apply_refund(state: &mut MeterState, amount: Credits) -> bool {
    match (state.totals.balance.checked_add(amount), state.totals.used.checked_sub(amount)) {
        (Some(balance), Some(used)) => {
            state.totals.balance = balance;
            state.totals.used = used;
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
