//! The codes of payments that were not made. In their own file because `failure` uses them too.

/// The code when the payment exceeds the user's limit.
pub(crate) const LIMIT_CODE: &str = "payment_limit";
/// The code when a payment may not be made for another reason.
pub(crate) const NOT_MADE_CODE: &str = "payment_not_made";
/// The code when an earlier payment for the call prevents this one.
pub(crate) const UNRESOLVED_CODE: &str = "payment_unresolved";
/// The code when the user stopped it.
pub(crate) const INTERRUPTED_CODE: &str = "payment_interrupted";
