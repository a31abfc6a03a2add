//! Durable charges per second on a PostgreSQL of the benchmark's own, beside the plain way to charge on one.
//!
//! The plain way is what one writes first: for each request, a statement that takes its price from a balance and adds it
//! to a daily total, committed by itself. It is measured by itself, and behind a small HTTP service. Beside it, as many
//! callers at once charge through the store, and as many connections ask one node and three.
//!
//! All ways are measured in turns within each round, and a ratio is taken within its round.

mod accounts;
mod nodes;
mod plain;
mod plain_service;
mod through_store;

use std::io::Write;
use std::time::Duration;

use metering_postgres::PostgresStore;

use super::accounts::{require_recorded, verified_calls};
use super::arguments::rising;
use super::rounds::Rounds;
use super::table::{Column, Table};
use super::{Arguments, Failure, figure};
use crate::latency::Latencies;
use crate::postgres::is_skipped;
use accounts::Accounts;
use nodes::Nodes;
use plain::Plain;
use plain_service::PlainService;

/// How charges are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Plain,
    PlainService,
    ThroughStore,
    OneNode,
    ThreeNodes,
}

/// What a way did in one round.
struct Measured {
    charges: u64,
    per_second: f64,
    latencies: Latencies,
}

/// What a way did in all rounds, and how often the plain way's rate that was: by itself, and behind HTTP.
struct Figures {
    rounds: Rounds<Measured>,
    times_plain: Rounds<f64>,
    times_service: Rounds<f64>,
}

/// All ways, with what they do it on.
struct Bench<'a> {
    accounts: &'a Accounts,
    clients: usize,
    time: Duration,
    plain: Plain,
    service: PlainService,
    store: PostgresStore,
    nodes: Nodes,
}

impl Way {
    /// The plain ways come first: the others are measured by them.
    const ALL: [Self; 5] = [Self::Plain, Self::PlainService, Self::ThroughStore, Self::OneNode, Self::ThreeNodes];

    fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain, a statement each",
            Self::PlainService => "plain, over HTTP",
            Self::ThroughStore => "through the store",
            Self::OneNode => "over HTTP, one node",
            Self::ThreeNodes => "over HTTP, three nodes",
        }
    }

    fn is_plain(self) -> bool {
        matches!(self, Self::Plain | Self::PlainService)
    }
}

/// Measures all ways at each number of accounts and of clients, and writes their table.
pub(super) async fn write(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Failure> {
    let mut table = Table::new([
        Column::Figure("Accounts"),
        Column::Figure("Clients"),
        Column::Text("Way"),
        Column::Figure("Charges per second"),
        Column::Figure("Slowest round"),
        Column::Figure("Fastest round"),
        Column::Figure("p50"),
        Column::Figure("p99"),
        Column::Figure("Times plain"),
        Column::Figure("Of all rounds"),
        Column::Figure("Times plain over HTTP"),
        Column::Figure("Of all rounds"),
    ]);
    if is_skipped() {
        return Ok(());
    }
    let mut version = String::new();
    for count in rising(&arguments.database_accounts) {
        eprintln!("postgres: making {count} accounts");
        let accounts = Accounts::make(&arguments.data_dir, count).await?;
        version = accounts.version();
        for clients in rising(&arguments.clients) {
            eprintln!("postgres: {count} accounts, {clients} clients");
            for (way, figures) in measure(arguments, &accounts, clients).await? {
                table.row(row(count, clients, way, &figures));
            }
        }
    }
    Ok(table.write(&format!("Durable charges on PostgreSQL {version}"), out)?)
}

async fn measure(arguments: &Arguments, accounts: &Accounts, clients: usize) -> Result<Vec<(Way, Figures)>, Failure> {
    let bench = Bench::prepare(accounts, clients, arguments.time).await?;
    let recorded = verified_calls(&bench.store).await?;
    let mut charged = bench.warm_up().await?;
    let mut ways = Way::ALL.map(|way| (way, Vec::new()));
    for round in 1..=arguments.rounds.get() {
        for (way, measured) in &mut ways {
            eprintln!("postgres: round {round}, {}", way.name());
            let found = bench.run(*way).await?;
            charged += if way.is_plain() { 0 } else { found.charges };
            measured.push(found);
        }
    }
    let store = bench.end().await?;
    require_recorded(verified_calls(&store).await?, recorded + charged)?;
    let rates = |way: usize| ways[way].1.iter().map(|found| found.per_second).collect::<Vec<_>>();
    let (plain, service) = (rates(0), rates(1));
    let figures = |(way, measured): (Way, Vec<Measured>)| {
        let times = |others: &[f64]| Rounds::new(ratios(&measured, others), |ratio| *ratio);
        let (times_plain, times_service) = (times(&plain), times(&service));
        (way, Figures { times_plain, times_service, rounds: Rounds::new(measured, |found| found.per_second) })
    };
    Ok(ways.into_iter().map(figures).collect())
}

impl<'a> Bench<'a> {
    async fn prepare(accounts: &'a Accounts, clients: usize, time: Duration) -> Result<Self, Failure> {
        let (plain, service) = (Plain::connect(accounts, clients).await?, PlainService::start(accounts, clients)?);
        let (store, nodes) = (accounts.open().await?, Nodes::start(accounts)?);
        Ok(Self { accounts, clients, time, plain, service, store, nodes })
    }

    /// Charges each account in each way: the first charge of a day adds a row, all others change it. Counts the charges
    /// that are not the plain way's.
    async fn warm_up(&self) -> Result<u64, Failure> {
        self.plain.charge_each_once(self.accounts).await?;
        let charged = through_store::charge_unevenly(&self.store, self.accounts).await?;
        Ok(charged + self.nodes.ask_each_once(self.clients)?)
    }

    async fn run(&self, way: Way) -> Result<Measured, Failure> {
        let Self { accounts, clients, time, .. } = *self;
        match way {
            Way::Plain => self.plain.run(accounts, time).await,
            Way::PlainService => self.service.run(accounts, clients, time),
            Way::ThroughStore => through_store::run(&self.store, accounts, clients, time).await,
            Way::OneNode => self.nodes.run(accounts, 1, clients, time),
            Way::ThreeNodes => self.nodes.run(accounts, 3, clients, time),
        }
    }

    async fn end(self) -> Result<PostgresStore, Failure> {
        self.plain.require_books().await?;
        drop(self.service);
        self.nodes.end()?;
        Ok(self.store)
    }
}

/// Of each round, how often the other's rate a rate is.
#[expect(clippy::float_arithmetic, reason = "ratios for people")]
fn ratios(measured: &[Measured], others: &[f64]) -> Vec<f64> {
    measured.iter().zip(others).map(|(found, other)| found.per_second / other).collect()
}

fn row(accounts: usize, clients: usize, way: Way, figures: &Figures) -> [String; 12] {
    let Figures { rounds, times_plain, times_service } = figures;
    let rate = |measured: &Measured| figure::rate(measured.per_second);
    let times = |ratios: &Rounds<f64>| format!("{:.1}", ratios.median());
    let of_rounds = |ratios: &Rounds<f64>| format!("{:.1}–{:.1}", ratios.slowest(), ratios.fastest());
    [
        figure::count(accounts),
        figure::count(clients),
        way.name().to_owned(),
        rate(rounds.median()),
        rate(rounds.slowest()),
        rate(rounds.fastest()),
        figure::latency(rounds.median().latencies.p50()),
        figure::latency(rounds.median().latencies.p99()),
        times(times_plain),
        of_rounds(times_plain),
        times(times_service),
        of_rounds(times_service),
    ]
}
