//! What to measure, and for how long.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};

/// Measures what charges cost, and prints tables in Markdown.
///
/// Build it with `--release`, and leave the machine alone while it runs.
#[derive(Debug, Clone, Parser)]
#[command(name = "bench")]
pub struct Arguments {
    /// The parts to run; all of them when none is named
    #[arg(value_enum)]
    parts: Vec<Part>,

    /// How often each figure is measured; the median is what is printed
    #[arg(long, default_value = "3")]
    pub rounds: NonZeroUsize,

    /// How long each figure is measured in a round
    #[arg(long, default_value = "2s", value_parser = positive_duration)]
    pub time: Duration,

    /// Numbers of accounts that charges are spread over
    #[arg(long, value_delimiter = ',', default_value = "1,1000,10000,100000")]
    pub accounts: Vec<NonZeroUsize>,

    /// Numbers of charges in one commit
    #[arg(long, value_delimiter = ',', default_value = "1,64,1000,8189")]
    pub batches: Vec<NonZeroUsize>,

    /// Numbers of requests that a summary is asked for after
    #[arg(long, value_delimiter = ',', default_value = "1000,1000000")]
    pub requests: Vec<NonZeroUsize>,

    /// Where databases are made, and removed again: on the disk that is to be measured
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    pub data_dir: PathBuf,
}

/// A part of the benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Durable charges per second through the store
    Charges,
    /// What a usage summary costs, and the database's size
    Summary,
}

impl Arguments {
    /// The parts to run.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        if self.parts.is_empty() { Part::value_variants() } else { &self.parts }
    }
}

fn positive_duration(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(Duration::ZERO) => Err("must be more than nothing".to_owned()),
        Ok(duration) => Ok(duration),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_parts_run_unless_some_are_named() {
        let parse = |line: &str| Arguments::try_parse_from(line.split(' ')).unwrap();
        assert_eq!(parse("bench").parts(), [Part::Charges, Part::Summary]);
        assert_eq!(parse("bench summary").parts(), [Part::Summary]);
        let short = parse("bench --time 50ms --rounds 1 --accounts 1,7 --batches 8");
        assert_eq!(short.time, Duration::from_millis(50));
        assert_eq!(short.accounts.iter().map(|count| count.get()).collect::<Vec<_>>(), [1, 7]);
    }

    #[test]
    fn figures_of_nothing_are_refused() {
        for line in [
            "bench --rounds 0",
            "bench --accounts 0",
            "bench --batches 1,0",
            "bench --time 2",
            "bench --time 0s",
            "bench other",
        ] {
            assert!(Arguments::try_parse_from(line.split(' ')).is_err(), "{line}");
        }
    }
}
