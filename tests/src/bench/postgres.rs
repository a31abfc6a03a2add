//! Durable charges per second on a PostgreSQL of the benchmark's own, beside the plain way to charge on one.
//!
//! The plain way is what one writes first: for each request, a statement that takes its price from a balance and adds it
//! to a daily total, committed by itself. It is measured without an HTTP server in front of it, which is in its favour.
//! Beside it, as many callers at once charge through the store, and as many connections ask one node and three.
//!
//! All ways are measured in turns within each round, and a ratio is taken within its round.

mod accounts;
mod nodes;
mod plain;
mod through_store;

use std::io::Write;
use std::time::Duration;

use metering_core::Store;

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

/// How charges are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Plain,
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

/// What a way did in all rounds, and how often the plain way's rate that was.
struct Figures {
    rounds: Rounds<Measured>,
    ratios: Rounds<f64>,
}

impl Way {
    /// The plain way comes first: the others are measured by it.
    const ALL: [Self; 4] = [Self::Plain, Self::ThroughStore, Self::OneNode, Self::ThreeNodes];

    fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain, a statement each",
            Self::ThroughStore => "through the store",
            Self::OneNode => "over HTTP, one node",
            Self::ThreeNodes => "over HTTP, three nodes",
        }
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
        Column::Figure("Times the plain way"),
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
    let time = arguments.time;
    let plain = Plain::connect(accounts, clients).await?;
    let store = accounts.open().await?;
    let recorded = verified_calls(&store).await?;
    let nodes = Nodes::start(accounts)?;
    let mut charged = warm_up(accounts, &plain, &store, &nodes, clients).await?;
    let mut rounds = Way::ALL.map(|way| (way, Vec::new(), Vec::new()));
    for round in 0..arguments.rounds.get() {
        let mut plain_rate = 0.0;
        for (way, measured, ratios) in &mut rounds {
            eprintln!("postgres: round {}, {}", round + 1, way.name());
            let found = match way {
                Way::Plain => plain.run(accounts, time).await?,
                Way::ThroughStore => through_store::run(&store, accounts, clients, time).await?,
                Way::OneNode => nodes.run(1, clients, time)?,
                Way::ThreeNodes => nodes.run(3, clients, time)?,
            };
            match way {
                Way::Plain => plain_rate = found.per_second,
                _ => charged += found.charges,
            }
            ratios.push(ratio(found.per_second, plain_rate));
            measured.push(found);
        }
    }
    plain.require_books().await?;
    nodes.end()?;
    require_recorded(verified_calls(&store).await?, recorded + charged)?;
    let figures = |measured, ratios| Figures {
        rounds: Rounds::new(measured, |found: &Measured| found.per_second),
        ratios: Rounds::new(ratios, |ratio| *ratio),
    };
    Ok(rounds.into_iter().map(|(way, measured, ratios)| (way, figures(measured, ratios))).collect())
}

/// Charges each account once, in each way: the first charge of a day adds a row, all others change it. Counts the
/// charges that are not the plain way's.
async fn warm_up(
    accounts: &Accounts,
    plain: &Plain,
    store: &(impl Store + Clone + 'static),
    nodes: &Nodes,
    clients: usize,
) -> Result<u64, Failure> {
    const SHORT: Duration = Duration::from_millis(300);
    plain.charge_each_once(accounts).await?;
    let mut charged = through_store::charge_each_once(store, accounts).await?;
    charged += nodes.run(3, clients, SHORT)?.charges;
    Ok(charged)
}

#[expect(clippy::float_arithmetic, reason = "a ratio for people")]
fn ratio(per_second: f64, plain: f64) -> f64 {
    per_second / plain
}

fn row(accounts: usize, clients: usize, way: Way, figures: &Figures) -> [String; 10] {
    let Figures { rounds, ratios } = figures;
    let rate = |measured: &Measured| figure::rate(measured.per_second);
    let of_rounds = format!("{:.1}–{:.1}", ratios.slowest(), ratios.fastest());
    [
        figure::count(accounts),
        figure::count(clients),
        way.name().to_owned(),
        rate(rounds.median()),
        rate(rounds.slowest()),
        rate(rounds.fastest()),
        figure::latency(rounds.median().latencies.p50()),
        figure::latency(rounds.median().latencies.p99()),
        format!("{:.1}", ratios.median()),
        if way == Way::Plain { "–".to_owned() } else { of_rounds },
    ]
}
