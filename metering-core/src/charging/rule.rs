//! The charge rule, as pure functions: whether a request is accepted, and how that changes its account.

use crate::access::account::Totals;
use crate::charging::charge::MeterState;
use crate::charging::rate::{LimitWindow, RateStatus};
use crate::charging::refusal::Refusal;
use crate::clock::Timestamp;
use crate::money::credits::Credits;

/// The amount that a request takes from the balance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Debit {
    /// Its price.
    Charge(Credits),
    /// The most that it may cost, until its cost is known.
    Hold(Credits),
    /// The same, backed by a signed payment, which is executed once the cost is known.
    Backed(Credits),
    /// Zero: the request is within the free allowance of its route.
    Nothing,
}

impl Debit {
    /// The amount that a request takes at this price. At the price of a volume tier, zero is a free allowance.
    pub(crate) fn of(price: Credits, is_hold: bool, is_by_volume: bool) -> Self {
        match is_hold {
            _ if is_by_volume && price == Credits::ZERO => Self::Nothing,
            true => Self::Hold(price),
            false => Self::Charge(price),
        }
    }

    /// How much.
    pub(crate) const fn amount(self) -> Credits {
        match self {
            Self::Charge(amount) | Self::Hold(amount) | Self::Backed(amount) => amount,
            Self::Nothing => Credits::ZERO,
        }
    }
}

/// Applies one charge or hold: checks the rate limits first, then the balance.
///
/// The rule for a charge is *balance above zero*, not *balance covers the price*: the last accepted request may take
/// the balance below zero, by less than its own price. A hold must be covered in full, because held credits must not be
/// spent twice; one that a signed payment backs may take the balance below zero. A request within a free allowance
/// needs no balance. A refused request changes nothing and does not count towards the limits.
///
/// # Errors
/// Why the request was refused.
///
/// # Panics
/// When the amount is negative: a charge must never give credits away.
pub(crate) fn apply(state: &mut MeterState, taking: Debit, now: Timestamp) -> Result<RateStatus, Refusal> {
    let amount = taking.amount();
    assert!(!amount.is_negative(), "a price is never negative");
    let rate = state.rate_status(now);
    // The day first: when both are reached, waiting for the next minute would not help.
    let Some(day) = rate.day.admit(rate.limits.requests_per_day) else {
        return Err(Refusal::RateLimited { window: LimitWindow::Day, rate });
    };
    let Some(minute) = rate.minute.admit(rate.limits.requests_per_minute) else {
        return Err(Refusal::RateLimited { window: LimitWindow::Minute, rate });
    };
    let Totals { balance, used, held, .. } = state.totals;
    let insufficient = || Refusal::InsufficientCredits { balance, required: amount, rate };
    let is_covered = match taking {
        Debit::Charge(_) => balance.is_positive(),
        Debit::Hold(_) => balance.is_positive() && balance >= amount,
        Debit::Backed(_) | Debit::Nothing => true,
    };
    if !is_covered {
        return Err(insufficient());
    }
    // `used` and `held` would only overflow after more credits were spent than can exist; even then, refusing is safe.
    // Their sum must fit too, since held credits become used.
    used.checked_add(held).and_then(|sum| sum.checked_add(amount)).ok_or_else(insufficient)?;
    let balance = balance.checked_sub(amount).ok_or_else(insufficient)?;
    let sum = |of: Credits| of.checked_add(amount).ok_or_else(insufficient);
    state.totals = match taking {
        Debit::Charge(_) => Totals { balance, used: sum(used)?, ..state.totals },
        Debit::Hold(_) | Debit::Backed(_) => Totals { balance, held: sum(held)?, ..state.totals },
        Debit::Nothing => state.totals,
    };
    state.minute = minute;
    state.day = day;
    Ok(RateStatus { minute, day, ..rate })
}

/// Settles a hold: the captured part is used, and the rest returns to the balance.
///
/// Returns `false`, and changes nothing, when an amount would overflow, now or when the account's other holds are
/// settled. That cannot happen if at most the hold is captured.
#[must_use]
pub(crate) fn apply_settled(state: &mut MeterState, held: Credits, captured: Credits) -> bool {
    let totals = state.totals;
    let settled = || {
        let balance = totals.balance.checked_sub(captured.checked_sub(held)?)?;
        let (used, held) = (totals.used.checked_add(captured)?, totals.held.checked_sub(held)?);
        // Held credits may become used, or return to the balance.
        used.checked_add(held).and(balance.checked_add(held))?;
        Some(Totals { balance, used, held, ..totals })
    };
    let settled = settled();
    state.totals = settled.unwrap_or(totals);
    settled.is_some()
}

/// Applies a refund: credits the price back; the request still counts towards the rate limits.
///
/// Returns `false`, and changes nothing, when an amount would overflow.
#[must_use]
pub(crate) fn apply_refund(state: &mut MeterState, amount: Credits) -> bool {
    let totals = state.totals;
    let refunded = || {
        let (balance, used) = (totals.balance.checked_add(amount)?, totals.used.checked_sub(amount)?);
        // Held credits may return to the balance.
        balance.checked_add(totals.held)?;
        Some(Totals { balance, used, ..totals })
    };
    let refunded = refunded();
    state.totals = refunded.unwrap_or(totals);
    refunded.is_some()
}

#[cfg(test)]
mod tests;
