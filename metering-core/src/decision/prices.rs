//! Records and cancels price versions.

use super::Decided;
use crate::clock::Timestamp;
use crate::prices::{CatalogueHash, NewPriceVersion, PriceHistory, PriceNumber, PriceRecorded, PriceVersion};

/// Decides [`PriceStore::record_prices`](crate::store::PriceStore::record_prices). The accepted change is the version
/// to insert. `history` needs the version in force at the new one's time, everything after it, and the newest version.
pub fn record_prices(new: &NewPriceVersion, history: &PriceHistory) -> Decided<PriceVersion, PriceRecorded> {
    let hash = CatalogueHash::of(&new.catalogue);
    let in_force = history.in_force(new.since);
    if let Some(current) = in_force {
        if new.applied_by.is_none() && current.applied_by.is_some() {
            return Decided::Refused(PriceRecorded::AppliedInForce(current.clone()));
        }
        if current.hash == hash {
            return Decided::Refused(PriceRecorded::Unchanged(current.clone()));
        }
        if new.applied_by.is_some() && current.applied_by.is_some() && current.since == new.since {
            return Decided::Refused(PriceRecorded::SameTime(current.clone()));
        }
    }
    if new.applied_by.is_none() {
        // Nodes start at the same time: another one read its clock later, and recorded the same file first.
        let is_same = |version: &&PriceVersion| version.applied_by.is_none() && version.hash == hash;
        if let Some(same) = history.versions().iter().filter(|version| version.since > new.since).find(is_same) {
            return Decided::Refused(PriceRecorded::Unchanged(same.clone()));
        }
    }
    let last = history.versions().last();
    Decided::Accepted(new.numbered(last.map_or(PriceNumber::FIRST, |last| last.number.next())))
}

/// Decides [`PriceStore::cancel_prices`](crate::store::PriceStore::cancel_prices). The accepted change is the version
/// after it.
///
/// A version that is in force, or was, or is already cancelled, is returned as found.
pub fn cancel_prices(version: Option<PriceVersion>, now: Timestamp) -> Decided<PriceVersion, Option<PriceVersion>> {
    match version {
        Some(version) if version.cancelled_at.is_none() && version.since > now => {
            Decided::Accepted(PriceVersion { cancelled_at: Some(now), ..version })
        }
        found => Decided::Refused(found),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::scene::NOW;
    use super::*;
    use crate::operators::audit::Actor;

    fn later(seconds: u64) -> Timestamp {
        NOW.saturating_add(Duration::from_secs(seconds))
    }

    fn new(catalogue: &str, since: Timestamp, by: Option<&str>) -> NewPriceVersion {
        let applied_by = by.map(|name| Actor::CommandLine(name.to_owned()));
        NewPriceVersion { catalogue: catalogue.into(), since, recorded_at: NOW, applied_by }
    }

    /// Applies the decision to the history. The text has the kind and the number of the version.
    fn record(history: &mut PriceHistory, new: &NewPriceVersion) -> String {
        match record_prices(new, history) {
            Decided::Accepted(version) => {
                let mut versions = history.versions().to_vec();
                versions.push(version.clone());
                *history = PriceHistory::new(versions);
                format!("recorded {}", version.number)
            }
            Decided::Refused(PriceRecorded::Recorded(_)) => unreachable!("a refusal"),
            Decided::Refused(PriceRecorded::Unchanged(version)) => format!("unchanged {}", version.number),
            Decided::Refused(PriceRecorded::AppliedInForce(version)) => format!("applied {}", version.number),
            Decided::Refused(PriceRecorded::SameTime(version)) => format!("same time {}", version.number),
        }
    }

    #[test]
    fn files_count_until_an_applied_version_is_in_force() {
        let mut history = PriceHistory::default();
        // catalogue, seconds later, applied by, outcome
        let table = [
            ("a", 0, None, "recorded 1"),
            ("a", 5, None, "unchanged 1"),
            ("a", 5, Some("jo"), "unchanged 1"),
            ("b", 60, Some("jo"), "recorded 2"),
            ("c", 60, Some("kim"), "same time 2"),
            ("c", 10, None, "recorded 3"),
            ("a", 20, None, "recorded 4"),
            ("a", 59, None, "unchanged 4"),
            ("a", 60, None, "applied 2"),
            ("b", 61, None, "applied 2"),
            ("b", 61, Some("jo"), "unchanged 2"),
            ("a", 90, Some("jo"), "recorded 5"),
            ("d", 70, Some("jo"), "recorded 6"),
        ];
        for (catalogue, seconds, by, outcome) in table {
            assert_eq!(
                record(&mut history, &new(catalogue, later(seconds), by)),
                outcome,
                "{catalogue} {seconds} {by:?}"
            );
        }
    }

    #[test]
    fn a_file_is_recorded_once_by_nodes_that_start_at_the_same_time() {
        let mut history = PriceHistory::default();
        // The second node read its clock before the first one recorded the file.
        let table = [("a", 1, "recorded 1"), ("a", 0, "unchanged 1"), ("b", 0, "recorded 2"), ("a", 2, "unchanged 1")];
        for (catalogue, seconds, outcome) in table {
            assert_eq!(record(&mut history, &new(catalogue, later(seconds), None)), outcome, "{catalogue} {seconds}");
        }
    }

    #[test]
    fn only_a_version_that_has_not_taken_effect_is_cancelled() {
        let version = new("a", later(60), Some("jo")).numbered(PriceNumber::FIRST);
        assert_eq!(cancel_prices(None, NOW), Decided::Refused(None));
        let cancelled = PriceVersion { cancelled_at: Some(later(59)), ..version.clone() };
        assert_eq!(cancel_prices(Some(version.clone()), later(59)), Decided::Accepted(cancelled.clone()));
        assert_eq!(cancel_prices(Some(cancelled.clone()), NOW), Decided::Refused(Some(cancelled)));
        assert_eq!(cancel_prices(Some(version.clone()), later(60)), Decided::Refused(Some(version)));
    }
}
