//! Inputs of the model. Help texts name the source of each default.

use clap::Parser;
use clap::builder::RangedU64ValueParser;

use super::batch_cost::BatchCost;

/// Calculate and simulate a cluster of groups of accounts, and print a Markdown table.
///
/// The cluster is a proposal (docs/adr/0056-groups-of-accounts-over-citus.md), not built yet: this is a model. Each row
/// changes one input. What it shows is in docs/scaling.md.
#[derive(Debug, Clone, Parser)]
#[command(name = "cluster-model")]
pub struct Arguments {
    /// Charges a second over all accounts (the size in question)
    #[arg(long, default_value = "1000000", value_parser = whole(100_000_000))]
    pub(super) charges_per_second: u64,

    /// Accounts (the size in question)
    #[arg(long, default_value = "100000000", value_parser = whole(1_000_000_000_000))]
    pub(super) accounts: u64,

    /// Share of the charges that one account makes (Zipf's law with exponent 1 over 100,000,000 accounts has 0.053)
    #[arg(long, default_value = "0.05", value_parser = share)]
    pub(super) hottest_share: f64,

    /// Exponent of Zipf's law for all others; 0 makes them equally busy (1 as in docs/performance.md)
    #[arg(long, default_value = "1", value_parser = exponent)]
    pub(super) zipf_exponent: f64,

    /// Groups (ADR 56 offers at most 256)
    #[arg(long, default_value = "64", value_parser = count(4_096))]
    pub(super) groups: usize,

    /// Database machines that have groups (an assumption)
    #[arg(long, default_value = "8", value_parser = count(4_096))]
    pub(super) workers: usize,

    /// Cores of a worker (an assumption)
    #[arg(long, default_value = "16", value_parser = count(4_096))]
    pub(super) cores: usize,

    /// Nodes: machines with our server (an assumption)
    #[arg(long, default_value = "16", value_parser = count(4_096))]
    pub(super) nodes: usize,

    /// Processor time of a commit, as ACCOUNTS:MICROSECONDS (measured: ADR 56, a schema per group, from its worker)
    #[arg(long, default_value = "1:1350,8:1612,64:3277")]
    pub(super) batch_cost: BatchCost,

    /// Processor time of one more charge of an account in a commit (measured: docs/performance.md, p50 of one account
    /// through the store on PostgreSQL with 64 and 512 clients)
    #[arg(long, default_value = "850", value_parser = whole(1_000_000_000))]
    pub(super) repeat_nanos: u64,

    /// Largest commit, in charges (default of `meter.batch`)
    #[arg(long, default_value = "8192", value_parser = count(1_000_000))]
    pub(super) max_batch: usize,

    /// Round trips of a commit (docs/scaling.md: two, and one if the node wrote all of its accounts last)
    #[arg(long, default_value = "2", value_parser = whole(1_000))]
    pub(super) round_trips: u64,

    /// A network round trip between node and worker (an estimate for two zones of one region)
    #[arg(long, default_value = "500", value_parser = whole(1_000_000_000))]
    pub(super) round_trip_micros: u64,

    /// A flush of a worker's disk (measured: docs/performance.md, p50)
    #[arg(long, default_value = "218", value_parser = whole(1_000_000_000))]
    pub(super) flush_micros: u64,

    /// Disk for an account (measured: docs/scaling.md, with full activity)
    #[arg(long, default_value = "43000", value_parser = whole(1_000_000_000))]
    pub(super) account_bytes: u64,

    /// PostgreSQL's log for a charge (measured: docs/scaling.md)
    #[arg(long, default_value = "350", value_parser = whole(1_000_000_000))]
    pub(super) log_bytes: u64,

    /// Processor time of a node for a charge over HTTP (measured: docs/scaling.md)
    #[arg(long, default_value = "39", value_parser = whole(1_000_000_000))]
    pub(super) node_micros: u64,

    /// Bytes a second that a move copies (an estimate)
    #[arg(long, default_value = "100000000", value_parser = whole(1_000_000_000_000))]
    pub(super) copy_bytes_per_second: u64,

    /// Simulated time before anything is counted
    #[arg(long, default_value = "500", value_parser = whole(10_000_000))]
    pub(super) warm_up_millis: u64,

    /// Simulated time that is counted
    #[arg(long, default_value = "1000", value_parser = whole(10_000_000))]
    pub(super) window_millis: u64,

    /// Seed of the simulated arrivals
    #[arg(long, default_value = "20261130")]
    pub(super) seed: u64,
}

impl Arguments {
    /// Groups are placed in turn.
    pub(super) fn worker_of(&self, group: usize) -> usize {
        group % self.workers
    }

    /// The longest list of groups on one worker.
    pub(super) fn groups_of_a_worker(&self) -> usize {
        self.groups.div_ceil(self.workers)
    }

    /// Processor time of a commit.
    #[expect(clippy::float_arithmetic, reason = "times of a model, not money")]
    pub(super) fn commit_micros(&self, accounts: f64, charges: f64) -> f64 {
        self.batch_cost.micros(accounts) + self.repeat_nanos as f64 / 1e3 * (charges - accounts)
    }

    /// The part of a commit that the network takes.
    pub(super) fn network_micros(&self) -> u64 {
        self.round_trips * self.round_trip_micros
    }
}

fn whole(most: u64) -> RangedU64ValueParser<u64> {
    RangedU64ValueParser::new().range(1..=most)
}

fn count(most: u64) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=most)
}

fn share(text: &str) -> Result<f64, String> {
    between(text, 1.0)
}

fn exponent(text: &str) -> Result<f64, String> {
    between(text, 3.0)
}

fn between(text: &str, most: f64) -> Result<f64, String> {
    let number = text.parse::<f64>().map_err(|error| format!("{error}"))?;
    if (0.0..=most).contains(&number) { Ok(number) } else { Err(format!("must be from 0 to {most}")) }
}
