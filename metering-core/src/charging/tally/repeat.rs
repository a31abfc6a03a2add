//! A request whose id is known: how a batch handles it, and whether an earlier attempt still owns its charge.

use crate::charging::delivery::{Attempt, Delivery};
use crate::charging::hold::Hold;
use crate::charging::posting::Remembered;
use crate::clock::Timestamp;

/// How a repeated request is handled. Both variants have the attempt of a request with an idempotency key.
pub(super) enum Repeat {
    /// It has the result of the first one, and is not charged again.
    Same(Option<Delivery>),
    /// Its hold is settled with an unknown cost, so credits are held again.
    Anew(Option<Delivery>),
}

/// Whether a later attempt has taken over the charge of a failed one, and its refund.
pub(super) fn is_taken_over(failed: Option<&Attempt>, known: Option<Remembered>) -> bool {
    let last = known.and_then(|known| known.result.delivery);
    failed.zip(last).is_some_and(|(failed, last)| last.tries != failed.number)
}

/// Whether to refund the charge of a failed attempt. A later attempt may have taken it over. If its result is no longer
/// stored, another attempt has refunded it and forgotten the key, which another charge may use by now.
pub(super) fn is_owed(failed: Option<&Attempt>, known: Option<Remembered>, now: Timestamp) -> bool {
    match (failed, known) {
        (None, _) => true,
        (Some(failed), None) => now >= failed.expires_at,
        (Some(of), Some(known)) => known.expires_at == of.expires_at && !is_taken_over(failed, Some(known)),
    }
}

/// The stored result of a request, if it is still about this hold: the same key can be used for another request later.
pub(super) fn of_hold(known: Option<Remembered>, hold: &Hold) -> Option<Remembered> {
    known.filter(|known| known.result.hold == Some(hold.id))
}
