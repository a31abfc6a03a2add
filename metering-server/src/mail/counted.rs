//! The count of mail.

use crate::operations::metric::counter;

/// Counts a mail of a kind: `sent`, or `failed` if it was given up.
pub(super) fn count(kind: &'static str, outcome: &'static str) {
    counter!(
        "metering_mails_total",
        "Mail sent, or given up on, by kind and outcome",
        "kind" => kind,
        "outcome" => outcome
    )
    .increment(1);
}
