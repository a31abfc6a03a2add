//! Requests through the gateway, compared with nginx as a proxy to the same upstream.
//!
//! The upstream is nginx with one worker, behind connections that are kept open. All ways get the same requests with
//! the same keys, and share the machine's cores with the upstream and the load generator. Each key is used once
//! beforehand. Only one `metering-server` program works at a time, so several builds can be compared in one run.

mod fleet;
mod ways;

use std::io::Write;

use super::accounts::Populated;
use super::arguments::rising;
use super::generator::Generator;
use super::table::{Row, Table};
use super::tools::Tools;
use super::turns::{Handled, Measured, in_turns};
use super::upstream::Upstream;
use super::{Arguments, Failure, format};
use fleet::Fleet;
use ways::{Kind, Way, ways};

/// Measures every combination of response size, keys and connections, and writes the table.
pub(super) async fn write(arguments: &Arguments, tools: &Tools, out: &mut dyn Write) -> Result<(), Failure> {
    let mut table = Table::default();
    let generator = Generator::choose(tools)?;
    let bodies = rising(&arguments.bodies);
    let upstream = Upstream::start(tools, &arguments.data_dir, &bodies)?;
    let mut accounts = Populated::make(&arguments.data_dir, 0).await?;
    for keys in rising(&arguments.keys) {
        eprintln!("gateway: growing to {keys} accounts");
        accounts.grow_to(keys).await?;
        let mut fleet = Fleet::start(arguments, tools, &accounts, &upstream, &bodies)?;
        for body in &bodies {
            let ways = ways(&fleet, &accounts, *body);
            warm_up(&mut fleet, &ways)?;
            for connections in rising(&arguments.connections) {
                eprintln!("gateway: {body} bytes, {keys} keys, {connections} connections");
                let measured = in_turns(arguments.rounds, &ways, |way| {
                    let sample = generator.measure(&way.target, connections, arguments.time)?;
                    Ok(way.with_memory(sample))
                })?;
                for (way, measured) in ways.iter().zip(&measured).filter(|(way, _)| way.kind.charges()) {
                    fleet.add_charged(way.server, measured.handled());
                }
                for index in 0..ways.len() {
                    table.row(row(*body, keys, connections, index, &ways, &measured));
                }
            }
        }
        fleet.end().await?;
    }
    Ok(table.write(&format!("Through the gateway to {upstream}; load from {generator}"), out)?)
}

/// Uses each key once on each server, because the first charge of a day inserts rows and all others update them.
fn warm_up(fleet: &mut Fleet, ways: &[Way]) -> Result<(), Failure> {
    for way in ways.iter().filter(|way| way.kind == Kind::Charged) {
        fleet.add_charged(way.server, Handled::default().plus(&way.target.warm_up()?));
    }
    Ok(())
}

fn row(body: usize, keys: usize, connections: usize, index: usize, ways: &[Way], measured: &[Measured]) -> Row {
    let (way, found) = (&ways[index], &measured[index]);
    let sample = found.median();
    let ratio_to = |is_yardstick: &dyn Fn(&Way) -> bool| {
        let yardstick = ways.iter().position(is_yardstick).filter(|yardstick| *yardstick != index)?;
        Some(found.ratio_to(&measured[yardstick]))
    };
    let of_nginx = ratio_to(&|other| other.kind == Kind::Nginx);
    let charged = way.kind == Kind::Charged;
    let of_free = ratio_to(&|other| charged && other.kind == Kind::NotMetered && other.server == way.server);
    Row::default()
        .number("Body", format::size(u64::try_from(body).unwrap_or(u64::MAX)))
        .count("Keys", keys)
        .count("Connections", connections)
        .text("Way", &way.name)
        .speed(sample)
        .ratio("Of nginx", of_nginx)
        .ratio("Of not metered", of_free)
        .size("Memory", found.memory())
        .generator_busy(sample)
}
