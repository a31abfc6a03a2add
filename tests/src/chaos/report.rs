//! The findings of a campaign: counters, and every broken promise of the service.

use std::collections::BTreeMap;
use std::fmt;

use super::callers::Count;

/// How many losses are printed in full; the rest is only counted.
const SHOWN: usize = 8;

/// The findings of one run.
#[derive(Debug, Default)]
pub(super) struct Report {
    counters: Vec<(String, u64)>,
    losses: Vec<String>,
    loss_count: u64,
}

impl Report {
    /// Adds to a counter; counters are printed in the order of their first use.
    pub(super) fn add(&mut self, name: &str, count: u64) {
        match self.counters.iter_mut().find(|(known, _)| known == name) {
            Some((_, sum)) => *sum += count,
            None => self.counters.push((name.to_owned(), count)),
        }
    }

    /// Keeps the largest value of a counter.
    pub(super) fn maximum(&mut self, name: &str, value: u64) {
        match self.counters.iter_mut().find(|(known, _)| known == name) {
            Some((_, maximum)) => *maximum = value.max(*maximum),
            None => self.counters.push((name.to_owned(), value)),
        }
    }

    /// A counter's value; 0 if it was never used.
    pub(super) fn counter(&self, name: &str) -> u64 {
        self.counters.iter().find(|(known, _)| known == name).map_or(0, |(_, count)| *count)
    }

    /// Records a broken promise.
    pub(super) fn loss(&mut self, what: impl Into<String>) {
        self.add_losses(1, what);
    }

    fn add_losses(&mut self, count: u64, what: impl Into<String>) {
        self.loss_count += count;
        self.losses.push(what.into());
    }

    /// Compares what callers saw with what is on record: each confirmed charge must be there, and beyond those only
    /// charges with an unknown outcome.
    pub(super) fn compare(&mut self, account: &str, seen: &Count, recorded: u64) {
        let (attempts, charged, unknown) = (seen.attempts(), seen.charged, seen.unknown);
        for (name, count) in [
            ("attempts", attempts),
            ("confirmed", charged),
            ("refused", seen.refused()),
            ("outcome unknown", unknown),
            ("recorded", recorded),
        ] {
            self.add(name, count);
        }
        self.compare_with_bounds(account, charged, charged + unknown, recorded);
        for (code, count) in &seen.refusals {
            self.add(&format!("  {code}"), *count);
        }
    }

    /// Like [`Report::compare`], for bounds that were computed elsewhere.
    pub(super) fn compare_with_bounds(&mut self, account: &str, minimum: u64, maximum: u64, recorded: u64) {
        let (lost, excess) = (minimum.saturating_sub(recorded), recorded.saturating_sub(maximum));
        self.add("lost", lost);
        self.add("charged twice or after a refusal", excess);
        if lost > 0 {
            self.add_losses(
                lost,
                format!("{account}: {lost} confirmed charges are missing ({recorded} of {minimum} on record)"),
            );
        }
        if excess > 0 {
            self.add_losses(
                excess,
                format!("{account}: {excess} charges too many on record ({recorded}, at most {maximum})"),
            );
        }
    }

    pub(super) fn loss_count(&self) -> u64 {
        self.loss_count
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, count) in &self.counters {
            writeln!(f, "  {name:<34} {count:>9}")?;
        }
        let mut alike = BTreeMap::<&str, u64>::new();
        for loss in &self.losses {
            *alike.entry(loss).or_default() += 1;
        }
        for (loss, times) in alike.iter().take(SHOWN) {
            let times = if *times > 1 { format!(" ({times} times)") } else { String::new() };
            writeln!(f, "  LOSS: {loss}{times}")?;
        }
        if alike.len() > SHOWN {
            writeln!(f, "  ... and {} more kinds of loss", alike.len() - SHOWN)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(charged: u64, unknown: u64) -> Count {
        Count { charged, unknown, ..Count::default() }
    }

    #[test]
    fn confirmed_charge_missing_from_record_is_a_loss() {
        let mut report = Report::default();
        report.compare("plain", &seen(10, 3), 9);
        assert_eq!(report.loss_count(), 1);
        assert!(report.to_string().contains("1 confirmed charges are missing"), "{report}");
    }

    #[test]
    fn charges_without_a_response_may_be_on_record_or_not() {
        for recorded in 10..=13 {
            let mut report = Report::default();
            report.compare("plain", &seen(10, 3), recorded);
            assert_eq!(report.loss_count(), 0, "{recorded}");
        }
    }

    #[test]
    fn more_on_record_than_was_sent_is_a_double_charge() {
        let mut report = Report::default();
        report.compare("plain", &seen(10, 3), 15);
        assert_eq!(report.loss_count(), 2);
    }
}
