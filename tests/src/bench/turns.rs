//! Measures several ways in turns, and compares them within each round.
//!
//! A machine drifts by more between two runs than the difference of interest, so ways are never compared across
//! rounds. The order is reversed in every other round.

use std::num::NonZeroUsize;

use super::rounds::Rounds;
use super::sample::Sample;
use super::{Failure, format, interrupt};

/// One way's samples, one for each round.
#[derive(Debug)]
pub(super) struct Measured {
    samples: Vec<Sample>,
}

/// The ratio of two ways' rates, or of other figures: the median of all rounds, and the extremes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ratio {
    pub(super) median: f64,
    pub(super) lowest: f64,
    pub(super) highest: f64,
}

/// Measures each way once per round, and returns the results in the order of `ways`.
///
/// # Errors
/// The first failure of `measure`.
pub(super) fn in_turns<W>(
    rounds: NonZeroUsize,
    ways: &[W],
    mut measure: impl FnMut(&W) -> Result<Sample, Failure>,
) -> Result<Vec<Measured>, Failure> {
    let mut measured: Vec<_> = ways.iter().map(|_| Measured { samples: Vec::new() }).collect();
    for round in 0..rounds.get() {
        for way in order(round, ways.len()) {
            interrupt::check()?;
            measured[way].samples.push(measure(&ways[way])?);
        }
    }
    Ok(measured)
}

pub(super) fn order(round: usize, ways: usize) -> Vec<usize> {
    if round.is_multiple_of(2) { (0..ways).collect() } else { (0..ways).rev().collect() }
}

impl Measured {
    /// The round with the median rate.
    pub(super) fn median(&self) -> &Sample {
        Rounds::new(self.samples.iter().collect(), |sample: &&Sample| sample.rate()).median()
    }

    /// The most memory of all rounds.
    pub(super) fn memory(&self) -> Option<u64> {
        self.samples.iter().filter_map(|sample| sample.memory).max()
    }

    /// The ratio of its rate to that of `yardstick`, taken within each round.
    pub(super) fn ratio_to(&self, yardstick: &Self) -> Ratio {
        let rounds = self.samples.iter().zip(&yardstick.samples);
        Ratio::of_rounds(rounds.map(|(own, other)| format::ratio(own.rate(), other.rate())).collect())
    }

    /// The samples of all rounds, in their order.
    pub(super) fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// How many requests the server handled, at least and at most.
    pub(super) fn handled(&self) -> Handled {
        self.samples.iter().fold(Handled::default(), |sum, sample| sum.plus(sample))
    }
}

/// How many requests a server handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Handled {
    /// Requests that got a response.
    pub(super) responses: u64,
    /// Requests that may have been handled, but whose response was not awaited.
    pub(super) cut_off: u64,
}

impl Handled {
    pub(super) fn plus(self, sample: &Sample) -> Self {
        self.and(Self { responses: sample.responses, cut_off: sample.cut_off })
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self { responses: self.responses + other.responses, cut_off: self.cut_off + other.cut_off }
    }

    /// Fails unless the number of recorded calls fits.
    pub(super) fn require_recorded(self, recorded: u64) -> Result<(), Failure> {
        let Self { responses, cut_off } = self;
        if (responses..=responses + cut_off).contains(&recorded) {
            return Ok(());
        }
        let more = if cut_off == 0 { String::new() } else { format!(", up to {cut_off} more were cut off") };
        Err(format!("{responses} requests were accepted{more}, but {recorded} are on record").into())
    }
}

impl Ratio {
    /// # Panics
    /// If there is no round.
    pub(super) fn of_rounds(ratios: Vec<f64>) -> Self {
        let ratios = Rounds::new(ratios, |ratio| *ratio);
        Self { median: *ratios.median(), lowest: *ratios.slowest(), highest: *ratios.fastest() }
    }

    pub(super) fn median_text(ratio: Option<Self>) -> String {
        ratio.map_or_else(|| format::NONE.to_owned(), |ratio| format!("{:.2}", ratio.median))
    }

    pub(super) fn range_text(ratio: Option<Self>) -> String {
        ratio.map_or_else(|| format::NONE.to_owned(), |ratio| format!("{:.2}–{:.2}", ratio.lowest, ratio.highest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn sample(responses: u64) -> Sample {
        Sample { responses, cut_off: 2, elapsed: Duration::from_secs(1), ..Sample::default() }
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        // The machine is ten times as fast in the last round.
        let mut rates = [(60, 100), (70, 100), (500, 1_000)].into_iter();
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        let mut current = (0, 0);
        let measured = in_turns(NonZeroUsize::new(3).unwrap(), &["ours", "theirs"], |way| {
            let (queue, other) = if *way == "ours" { (&mut ours, &mut theirs) } else { (&mut theirs, &mut ours) };
            if queue.len() == other.len() {
                current = rates.next().unwrap();
            }
            let rate = if *way == "ours" { current.0 } else { current.1 };
            queue.push(rate);
            Ok(sample(rate))
        });
        let measured = measured.unwrap();
        let ratio = measured[0].ratio_to(&measured[1]);
        assert_eq!(ratio, Ratio { median: 0.6, lowest: 0.5, highest: 0.7 });
        assert_eq!(measured[0].median().responses, 70);
        assert_eq!(measured[0].handled(), Handled { responses: 630, cut_off: 6 });
        assert_eq!([Ratio::median_text(Some(ratio)), Ratio::range_text(Some(ratio))], ["0.60", "0.50–0.70"]);
        assert_eq!([Ratio::median_text(None), Ratio::range_text(None)], ["–", "–"]);
    }

    #[test]
    fn every_other_round_is_reversed() {
        let mut seen = Vec::new();
        let ways = ["a", "b", "c"];
        in_turns(NonZeroUsize::new(3).unwrap(), &ways, |way| {
            seen.push(*way);
            Ok(sample(1))
        })
        .unwrap();
        assert_eq!(seen.concat(), "abccbaabc");
    }

    #[test]
    fn a_failure_ends_the_run() {
        let failed = in_turns(NonZeroUsize::MIN, &[1, 2], |_| Err("no".into()));
        assert_eq!(failed.unwrap_err().to_string(), "no");
    }

    #[test]
    fn recorded_calls_must_fit_the_responses() {
        let handled = Handled { responses: 7, cut_off: 0 }.plus(&sample(3));
        // recorded, fits
        for (recorded, fits) in [(9, false), (10, true), (12, true), (13, false)] {
            assert_eq!(handled.require_recorded(recorded).is_ok(), fits, "{recorded}");
        }
        let error = handled.require_recorded(13).unwrap_err().to_string();
        assert_eq!(error, "10 requests were accepted, up to 2 more were cut off, but 13 are on record");
    }
}
