//! What a statement lacks at its start, because its log began within the period and follows another one.
//!
//! Lines of the log before are not added: they would need a checkpoint of that log, and a restored store has an older tree
//! than the one that was published. So the statement says what it does not cover, and is signed together with that.

use metering_core::Timestamp;
use metering_core::clock::CalendarPeriod;
use metering_core::store::{EpochReason, LogEpoch, origin_epoch};
use metering_core::wire::{AccountStatementDocument, PreviousLogDocument, StatementGapDocument};

use crate::leaf::{Opening, Posting};

/// What a statement from this epoch lacks of a period. A service's first log follows none: earlier postings are in no log.
pub(crate) fn gap_of(epoch: &LogEpoch, period: CalendarPeriod) -> Option<StatementGapDocument> {
    if epoch.began_at <= period.start() || epoch.reason == EpochReason::Init {
        return None;
    }
    let previous = epoch.previous.as_ref().map(|log| PreviousLogDocument {
        origin: log.origin.clone(),
        size: log.size,
        root: log.root_text(),
    });
    let (from, until, reason) = (period.start(), epoch.began_at, epoch.reason.to_string());
    Some(StatementGapDocument { from, until, reason, previous })
}

/// Checks that a page says what it lacks. The origin of a log has the number of its epoch, so a service cannot leave out
/// that there was one before. And the line with the funds that a log begins with says when it began, so a service cannot
/// pretend that this was earlier.
///
/// # Errors
/// What contradicts the period, which begins at `start`.
pub(super) fn check(
    page: &AccountStatementDocument,
    start: Timestamp,
    origin: &str,
    lines: &[Opening],
) -> Result<(), &'static str> {
    if lines.iter().any(|line| line.posting == Posting::Opening && line.at > page.from) {
        return Err("it claims to begin before its log did");
    }
    match &page.gap {
        Some(gap) if gap.from != start || gap.until != page.from || page.from <= start => {
            Err("what it lacks is not between its start and that of its log")
        }
        None if page.from > start && origin_epoch(origin) > Some(1) => {
            Err("it does not say what it lacks before its log began")
        }
        _ => Ok(()),
    }
}
