//! Proxies that ask before they forward, compared with the same proxies plain and with our gateway.
//!
//! Each proxy runs with its file of `deploy/proxies`, so that the benchmark measures what operators use. All ways lead
//! to the same upstream, get the same requests with the same keys, and share the machine's cores with the upstream and
//! the load generator. One `metering-server` serves the proxies and is the gateway.

mod fleet;

use std::io::Write;

use super::accounts::Populated;
use super::arguments::rising;
use super::generator::Generator;
use super::table::{Row, Table};
use super::tools::Tools;
use super::turns::{Measured, in_turns};
use super::upstream::Upstream;
use super::{Arguments, Failure};
use fleet::{Fleet, Way, Who};

/// Measures every combination of keys and connections, with the first size of the response, and writes the table.
pub(super) async fn write(arguments: &Arguments, tools: &Tools, out: &mut dyn Write) -> Result<(), Failure> {
    let mut table = Table::default();
    let generator = Generator::choose(tools)?;
    let body = arguments.bodies[0].get();
    let upstream = Upstream::start(tools, &arguments.data_dir, &[body])?;
    let mut accounts = Populated::make(&arguments.data_dir, 0).await?;
    for keys in rising(&arguments.keys) {
        eprintln!("proxies: growing to {keys} accounts");
        accounts.grow_to(keys).await?;
        let mut fleet = Fleet::start(arguments, tools, &accounts, &upstream, body)?;
        fleet.warm_up()?;
        for connections in rising(&arguments.connections) {
            eprintln!("proxies: {keys} keys, {connections} connections");
            let measured = in_turns(arguments.rounds, fleet.ways(), |way| {
                way.with_processor_time(|| generator.measure(&way.target, connections, arguments.time))
            })?;
            fleet.add_charged(&measured);
            for index in 0..measured.len() {
                table.row(row(keys, connections, index, fleet.ways(), &measured));
            }
        }
        fleet.end().await?;
    }
    let title = format!("Proxies that ask before they forward, to {upstream}; load from {generator}");
    Ok(table.write(&title, out)?)
}

fn row(keys: usize, connections: usize, index: usize, ways: &[Way], measured: &[Measured]) -> Row {
    let (way, found) = (&ways[index], &measured[index]);
    let sample = found.median();
    let ratio_to = |yardstick: Who| {
        let yardstick = ways.iter().position(|other| other.who == yardstick).filter(|other| *other != index)?;
        Some(found.ratio_to(&measured[yardstick]))
    };
    let of_plain = way.who.plain().and_then(ratio_to);
    let of_gateway = ratio_to(Who::Gateway);
    Row::default()
        .count("Keys", keys)
        .count("Connections", connections)
        .text("Way", way.who.to_string())
        .speed(sample)
        .ratio("Of plain", of_plain)
        .ratio("Of gateway", of_gateway)
        .latency("CPU per request", sample.processor_time_per_response())
        .generator_busy(sample)
}
