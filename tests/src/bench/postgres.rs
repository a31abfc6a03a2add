//! Durable charges per second on a PostgreSQL instance of the benchmark's own, compared with the plain way to charge.
//!
//! The plain way is what one would write first: for each request one statement, committed by itself, that takes the
//! price from a balance and adds it to a daily total. It is measured alone and behind a small HTTP service. It is
//! compared with as many concurrent callers that charge through the store, and as many connections to one node and to
//! three.
//!
//! All ways are measured in turns within each round, and ratios are taken within a round.

mod accounts;
mod measured;
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
use super::table::{Row, Table};
use super::{Arguments, Failure, interrupt};
use crate::postgres::is_skipped;
use accounts::Accounts;
use measured::Measured;
use nodes::Nodes;
use plain::Plain;
use plain_service::PlainService;

/// How charges are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    Plain,
    PlainService,
    ThroughStore,
    OneNode,
    ThreeNodes,
}

/// The results of a way in all rounds, and its rate as a multiple of the plain way's: alone, and behind HTTP.
struct MethodResults {
    rounds: Rounds<Measured>,
    times_plain: Rounds<f64>,
    times_service: Rounds<f64>,
}

/// Everything needed to run all ways.
struct Bench<'a> {
    accounts: &'a Accounts,
    clients: usize,
    time: Duration,
    plain: Plain,
    service: PlainService,
    store: PostgresStore,
    nodes: Nodes,
}

impl Method {
    /// The plain ways run first, because the others are compared with them.
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

/// Measures all ways at each number of accounts and clients, and writes the table.
pub(super) async fn write(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Failure> {
    let mut table = Table::default();
    if is_skipped() {
        return Ok(());
    }
    let mut version = String::new();
    for count in rising(&arguments.database_accounts) {
        eprintln!("postgres: creating {count} accounts");
        let accounts = Accounts::make(&arguments.data_dir, count).await?;
        version = accounts.version();
        for clients in rising(&arguments.clients) {
            eprintln!("postgres: {count} accounts, {clients} clients");
            for (method, results) in measure(arguments, &accounts, clients).await? {
                table.row(row(count, clients, method, &results));
            }
        }
    }
    Ok(table.write(&format!("Durable charges on PostgreSQL {version}"), out)?)
}

async fn measure(
    arguments: &Arguments,
    accounts: &Accounts,
    clients: usize,
) -> Result<Vec<(Method, MethodResults)>, Failure> {
    let bench = Bench::prepare(accounts, clients, arguments).await?;
    let recorded = verified_calls(&bench.store).await?;
    let mut charged = bench.warm_up().await?;
    let mut methods = Method::ALL.map(|method| (method, Vec::new()));
    for round in 1..=arguments.rounds.get() {
        for (method, measured) in &mut methods {
            interrupt::check()?;
            eprintln!("postgres: round {round}, {}", method.name());
            let found = bench.run(*method).await?;
            charged += if method.is_plain() { 0 } else { found.charges };
            measured.push(found);
        }
    }
    let store = bench.end().await?;
    require_recorded(verified_calls(&store).await?, recorded + charged)?;
    let rates = |method: usize| methods[method].1.iter().map(|found| found.per_second).collect::<Vec<_>>();
    let (plain, service) = (rates(0), rates(1));
    let to_results = |(method, measured): (Method, Vec<Measured>)| {
        let times = |others: &[f64]| Rounds::new(ratios(&measured, others), |ratio| *ratio);
        let (times_plain, times_service) = (times(&plain), times(&service));
        (method, MethodResults { times_plain, times_service, rounds: Rounds::new(measured, |found| found.per_second) })
    };
    Ok(methods.into_iter().map(to_results).collect())
}

impl<'a> Bench<'a> {
    async fn prepare(accounts: &'a Accounts, clients: usize, arguments: &Arguments) -> Result<Self, Failure> {
        let (plain, service) = (Plain::connect(accounts, clients).await?, PlainService::start(accounts, clients)?);
        let (store, nodes) = (accounts.open().await?, Nodes::start(&arguments.servers()?[0], accounts)?);
        Ok(Self { accounts, clients, time: arguments.time, plain, service, store, nodes })
    }

    /// Charges each account in each way, because the first charge of a day inserts a row and all others update it.
    /// Returns how many charges were not the plain way's.
    async fn warm_up(&self) -> Result<u64, Failure> {
        self.plain.charge_each_once(self.accounts).await?;
        let charged = through_store::charge_unevenly(&self.store, self.accounts).await?;
        Ok(charged + self.nodes.charge_each_once(self.clients)?)
    }

    async fn run(&self, method: Method) -> Result<Measured, Failure> {
        let Self { accounts, clients, time, .. } = *self;
        match method {
            Method::Plain => self.plain.run(accounts, time).await,
            Method::PlainService => self.service.run(accounts, clients, time),
            Method::ThroughStore => through_store::run(&self.store, accounts, clients, time).await,
            Method::OneNode => self.nodes.run(accounts, 1, clients, time),
            Method::ThreeNodes => self.nodes.run(accounts, 3, clients, time),
        }
    }

    async fn end(self) -> Result<PostgresStore, Failure> {
        self.plain.require_balanced().await?;
        drop(self.service);
        self.nodes.end()?;
        Ok(self.store)
    }
}

/// The ratio of the measured rate to the other rate, for each round.
#[expect(clippy::float_arithmetic, reason = "ratios for people")]
fn ratios(measured: &[Measured], others: &[f64]) -> Vec<f64> {
    measured.iter().zip(others).map(|(found, other)| found.per_second / other).collect()
}

fn row(accounts: usize, clients: usize, method: Method, results: &MethodResults) -> Row {
    let MethodResults { rounds, times_plain, times_service } = results;
    let times = |ratios: &Rounds<f64>| format!("{:.1}", ratios.median());
    let of_rounds = |ratios: &Rounds<f64>| format!("{:.1}–{:.1}", ratios.slowest(), ratios.fastest());
    Row::default()
        .count("Accounts", accounts)
        .count("Clients", clients)
        .text("Way", method.name())
        .rate("Charges per second", rounds.median().per_second)
        .rate("Slowest round", rounds.slowest().per_second)
        .rate("Fastest round", rounds.fastest().per_second)
        .latency("p50", rounds.median().latencies.p50())
        .latency("p99", rounds.median().latencies.p99())
        .number("Times plain", times(times_plain))
        .number("Of all rounds", of_rounds(times_plain))
        .number("Times plain over HTTP", times(times_service))
        .number("Of all rounds", of_rounds(times_service))
}
