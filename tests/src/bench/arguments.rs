//! Command-line arguments of the benchmark.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};

use crate::program;

/// Measure the cost of charges, and print Markdown tables.
///
/// Build everything with `cargo build --workspace --release`, run `cargo run --release -p metering-tests --bin bench`,
/// and leave the machine alone for about an hour. It starts its own servers on free loopback ports with their own data,
/// and does not touch your data. It uses wrk, Redis and proxies where they are installed, and lists what is missing.
#[derive(Debug, Clone, Parser)]
#[command(name = "bench")]
pub struct Arguments {
    /// Parts to run; all by default
    #[arg(value_enum)]
    parts: Vec<Part>,

    /// Run a tiny version of everything, to test the benchmark itself; changes the defaults of all options below
    #[arg(long)]
    pub quick: bool,

    /// Rounds per figure; the median is printed
    #[arg(long, default_value = "3", default_value_if("quick", "true", "1"))]
    pub rounds: NonZeroUsize,

    /// How long to measure each figure in a round
    #[arg(
        long,
        default_value = "1500ms",
        default_value_if("quick", "true", "200ms"),
        value_parser = positive_duration
    )]
    pub time: Duration,

    /// Numbers of accounts to charge through the store
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "1,1000,10000,100000,1000000",
        default_value_if("quick", "true", "1,200")
    )]
    pub accounts: Vec<NonZeroUsize>,

    /// Batch sizes: numbers of charges per commit
    #[arg(long, value_delimiter = ',', default_value = "1,64,1000,8189")]
    pub batches: Vec<NonZeroUsize>,

    /// Charges that the aged store has recorded before it is measured
    #[arg(long, default_value = "10000000", default_value_if("quick", "true", "20000"))]
    pub charged: NonZeroUsize,

    /// Accounts in the store whose startup and memory are measured
    #[arg(long, default_value = "1000000", default_value_if("quick", "true", "200"))]
    pub stored: NonZeroUsize,

    /// Numbers of API keys to use for HTTP requests
    #[arg(long, value_delimiter = ',', default_value = "1,1000,100000", default_value_if("quick", "true", "200"))]
    pub keys: Vec<NonZeroUsize>,

    /// Numbers of concurrent connections
    #[arg(long, value_delimiter = ',', default_value = "1,16,64,256", default_value_if("quick", "true", "16"))]
    pub connections: Vec<NonZeroUsize>,

    /// Sizes of the upstream's responses through the gateway, in bytes; part `proxies` measures the first
    #[arg(long, value_delimiter = ',', default_value = "1000,64000")]
    pub bodies: Vec<NonZeroUsize>,

    /// Open streams through the gateway
    #[arg(long, default_value = "5000", default_value_if("quick", "true", "50"))]
    pub streams: NonZeroUsize,

    /// How often each open stream gets an event
    #[arg(
        long,
        default_value = "1s",
        default_value_if("quick", "true", "100ms"),
        value_parser = positive_duration
    )]
    pub event_every: Duration,

    /// Numbers of recorded requests at which to measure the usage summary
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "1000,1000000",
        default_value_if("quick", "true", "1000,20000")
    )]
    pub requests: Vec<NonZeroUsize>,

    /// Numbers of accounts on PostgreSQL
    #[arg(long, value_delimiter = ',', default_value = "1,100000", default_value_if("quick", "true", "1,200"))]
    pub database_accounts: Vec<NonZeroUsize>,

    /// Numbers of concurrent clients on PostgreSQL
    #[arg(long, value_delimiter = ',', default_value = "64,256,512", default_value_if("quick", "true", "16"))]
    pub clients: Vec<NonZeroUsize>,

    /// metering-server to measure; the one built with this program by default. Repeat it to compare several builds in
    /// part `gateway`; the other parts measure the first
    #[arg(long = "server", value_name = "PATH")]
    pub servers: Vec<PathBuf>,

    /// Directory for the databases, on the disk to measure; they are deleted afterwards
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    pub data_dir: PathBuf,
}

/// A part of the benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Durable charges per second through the store
    Charges,
    /// Durable holds and captures per second through the store, compared with charges
    Holds,
    /// Durable charges per second through a store that has recorded many, compared with a fresh one
    Aged,
    /// Time to the first charge of a store with a million accounts, and the memory that they take
    Startup,
    /// Requests to a metered route compared with the same route unmetered, and with bare hyper
    Http,
    /// Charged requests with receipts and with the log of postings, compared with neither
    Proof,
    /// Requests through the gateway compared with nginx as a proxy to the same upstream
    Gateway,
    /// Streamed and long responses priced by usage through the gateway compared with nginx as a proxy
    Llm,
    /// Charged requests to a slow upstream while flushes are slow too, compared with the longer of the two
    Overlap,
    /// Proxies that ask our server before they forward, compared with the same proxies plain and with the gateway
    Proxies,
    /// `POST /internal/billing/deduct` compared with Redis `DECRBY`, both flushed to disk
    Deduct,
    /// Memory and processor time of open event streams through the gateway, compared with nginx
    Streams,
    /// Cost of a usage summary, and the size of the database
    Summary,
    /// Durable charges per second on PostgreSQL, compared with one statement per charge
    Postgres,
}

impl Part {
    /// Whether it needs the server binary.
    pub(super) fn serves(self) -> bool {
        !matches!(self, Self::Charges | Self::Holds | Self::Aged)
    }
}

impl Arguments {
    /// The parts to run.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        if self.parts.is_empty() { Part::value_variants() } else { &self.parts }
    }

    /// The servers to measure: at least one.
    ///
    /// # Errors
    /// If one is missing; the message has the command that builds it.
    pub(super) fn servers(&self) -> Result<Vec<PathBuf>, String> {
        if self.servers.is_empty() {
            return Ok(vec![program::find("metering-server")?]);
        }
        match self.servers.iter().find(|server| !server.is_file()) {
            Some(missing) => Err(format!("--server {}: there is no such file", missing.display())),
            None => Ok(self.servers.clone()),
        }
    }
}

/// Each number once, in ascending order: accounts can be added to a database, but not removed.
pub(super) fn rising(numbers: &[NonZeroUsize]) -> Vec<usize> {
    let mut rising: Vec<usize> = numbers.iter().map(|number| number.get()).collect();
    rising.sort_unstable();
    rising.dedup();
    rising
}

fn positive_duration(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(Duration::ZERO) => Err("must be more than zero".to_owned()),
        Ok(duration) => Ok(duration),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Arguments {
        Arguments::try_parse_from(line.split(' ')).unwrap()
    }

    #[test]
    fn all_parts_run_unless_some_are_named() {
        assert_eq!(parse("bench").parts(), Part::value_variants());
        assert_eq!(parse("bench summary").parts(), [Part::Summary]);
        let short = parse("bench --time 50ms --rounds 1 --accounts 1,7 --batches 8");
        assert_eq!(short.time, Duration::from_millis(50));
        assert_eq!(short.accounts.iter().map(|count| count.get()).collect::<Vec<_>>(), [1, 7]);
    }

    #[test]
    fn quick_changes_defaults_but_not_given_values() {
        let (full, quick) = (parse("bench"), parse("bench --quick --keys 3"));
        assert_eq!((full.rounds.get(), full.time), (3, Duration::from_millis(1_500)));
        assert_eq!((quick.rounds.get(), quick.time), (1, Duration::from_millis(200)));
        // full, quick
        let table = [
            (rising(&full.accounts), vec![1, 1_000, 10_000, 100_000, 1_000_000], rising(&quick.accounts), vec![1, 200]),
            (rising(&full.keys), vec![1, 1_000, 100_000], rising(&quick.keys), vec![3]),
            (rising(&full.connections), vec![1, 16, 64, 256], rising(&quick.connections), vec![16]),
            (rising(&full.requests), vec![1_000, 1_000_000], rising(&quick.requests), vec![1_000, 20_000]),
        ];
        for (full, expected_of_full, quick, expected_of_quick) in table {
            assert_eq!((full, quick), (expected_of_full, expected_of_quick));
        }
        assert_eq!(full.batches, quick.batches);
        assert_eq!(full.bodies, quick.bodies);
    }

    #[test]
    fn numbers_are_sorted_and_deduplicated() {
        assert_eq!(rising(&parse("bench --keys 7,1,7,3").keys), [1, 3, 7]);
    }

    #[test]
    fn missing_server_is_named() {
        let own = std::env::current_exe().unwrap();
        let line = format!("bench --server {} --server /no/such/server", own.display());
        let error = parse(&line).servers().unwrap_err();
        assert_eq!(error, "--server /no/such/server: there is no such file");
        assert_eq!(parse(&format!("bench --server {}", own.display())).servers(), Ok(vec![own]));
    }

    #[test]
    fn zero_and_invalid_values_are_rejected() {
        for line in [
            "bench --rounds 0",
            "bench --accounts 0",
            "bench --batches 1,0",
            "bench --stored 0",
            "bench --keys 0",
            "bench --connections 0",
            "bench --bodies 0",
            "bench --streams 0",
            "bench --time 2",
            "bench --time 0s",
            "bench other",
        ] {
            assert!(Arguments::try_parse_from(line.split(' ')).is_err(), "{line}");
        }
    }
}
