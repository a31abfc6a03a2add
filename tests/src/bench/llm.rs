//! Requests priced by usage through the gateway, compared with nginx as a proxy to the same upstream: what a hold, a
//! report and its capture cost.
//!
//! A language model's response is streamed, through the route of `deploy/llm`. A long response in one piece goes through
//! routes that differ only in where its cost is: nowhere, in a header, or in the body, which has to be read for it.
//! Clients, upstream and proxies share the machine's cores. Each key is used once beforehand.

mod fleet;
mod upstream;

use std::io::Write;

use super::accounts::Populated;
use super::arguments::rising;
use super::bare::Listener;
use super::generator::Generator;
use super::table::{Row, Table};
use super::tools::Tools;
use super::turns::{Measured, in_turns};
use super::{Arguments, Failure, format};
use fleet::{Fleet, Place, Way};

/// Keys that send requests, each of a separate account.
const KEYS: usize = 1_000;

/// Measures each number of connections, and writes the table.
pub(super) async fn write(arguments: &Arguments, tools: &Tools, out: &mut dyn Write) -> Result<(), Failure> {
    let mut table = Table::default();
    let generator = Generator::choose(tools)?;
    let upstream = Listener::serve(upstream::respond())?;
    let keys = if arguments.quick { KEYS / 10 } else { KEYS };
    let accounts = Populated::make(&arguments.data_dir, keys).await?;
    let mut fleet = Fleet::start(arguments, tools, accounts, upstream.address())?;
    fleet.warm_up()?;
    for connections in rising(&arguments.connections) {
        eprintln!("llm: {connections} connections");
        let measured = in_turns(arguments.rounds, fleet.ways(), |way| {
            way.measure(|target| generator.measure(target, connections, arguments.time))
        })?;
        fleet.add_charged(&measured);
        for index in 0..measured.len() {
            table.row(row(connections, index, fleet.ways(), &measured));
        }
    }
    fleet.end().await?;
    let title = format!("Requests priced by usage, to bare hyper, {} keys; load from {generator}", format::count(keys));
    Ok(table.write(&title, out)?)
}

fn row(connections: usize, index: usize, ways: &[Way], measured: &[Measured]) -> Row {
    let (way, found) = (&ways[index], &measured[index]);
    let sample = found.median();
    let ratio_to = |place: Place| {
        let is_yardstick = |other: &Way| other.request == way.request && other.place == place;
        let yardstick = ways.iter().position(is_yardstick).filter(|yardstick| *yardstick != index)?;
        Some(found.ratio_to(&measured[yardstick]))
    };
    let of_nginx = ratio_to(Place::Nginx);
    let of_header = if way.place == Place::Body { ratio_to(Place::Header) } else { None };
    Row::default()
        .count("Connections", connections)
        .text("Request", way.to_string())
        .speed(sample)
        .ratio("Of nginx", of_nginx)
        .ratio("Of header", of_header)
        .latency("CPU per request", sample.processor_time_per_response())
        .generator_busy(sample)
}
