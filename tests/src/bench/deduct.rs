//! `POST /internal/billing/deduct` compared with Redis `DECRBY`: both reply once the charge is flushed to disk.
//!
//! Redis flushes once per turn of its event loop, so commands that arrive together share a flush, as charges here do.
//! It only subtracts, without rate limits, usage totals or a check of the balance.

mod redis;

use std::io::Write;
use std::sync::Arc;

use serde_json::json;

use super::accounts::{Populated, verified_calls};
use super::arguments::rising;
use super::generator::{Generator, Target};
use super::http::PATH;
use super::sample::Sample;
use super::serving::{BILLING_SECRET, BILLING_SECRET_SETTING, end, server, start};
use super::table::{Row, Table};
use super::tools::Tools;
use super::turns::{Handled, Measured, in_turns};
use super::{Arguments, Failure, format};
use crate::load::request_with_json;
use crate::process::memory;
use crate::server::Server;
use redis::Redis;

/// A way to charge durably.
enum Way<'a> {
    Deduct { target: Target, server: &'a Server },
    Redis(&'a Redis),
}

/// Measures every combination of keys and connections and writes the table.
pub(super) async fn write(arguments: &Arguments, tools: &Tools, out: &mut dyn Write) -> Result<(), Failure> {
    let mut table = Table::default();
    let (generator, program) = (Generator::choose(tools)?, arguments.servers()?.swap_remove(0));
    let redis = tools.redis.as_ref().map(|programs| Redis::start(programs, &arguments.data_dir)).transpose()?;
    let (mut accounts, mut charged) = (Populated::make(&arguments.data_dir, 0).await?, Handled::default());
    for keys in rising(&arguments.keys) {
        eprintln!("deduct: growing to {keys} accounts");
        accounts.grow_to(keys).await?;
        let server = start(server(&program, accounts.folder()).set(BILLING_SECRET_SETTING, BILLING_SECRET))?;
        let deduct = Target::new(server.address(), requests(&accounts));
        charged = charged.plus(&deduct.warm_up()?);
        let deduct = Way::Deduct { target: deduct, server: &server };
        let ways: Vec<_> = [deduct].into_iter().chain(redis.as_ref().map(Way::Redis)).collect();
        for connections in rising(&arguments.connections) {
            eprintln!("deduct: {keys} keys, {connections} connections");
            let measured = in_turns(arguments.rounds, &ways, |way| match way {
                Way::Deduct { target, server } => {
                    let sample = generator.measure(target, connections, arguments.time)?;
                    Ok(Sample { memory: memory(&[server.id()]), ..sample })
                }
                Way::Redis(redis) => redis.measure(keys, connections, arguments.time),
            })?;
            charged = charged.and(measured[0].handled());
            table.row(row(keys, connections, &measured[0], measured.get(1)));
        }
        drop(ways);
        end(server)?;
        charged.require_recorded(verified_calls(&accounts.open()?).await?)?;
    }
    let title = format!("`POST /internal/billing/deduct`, and Redis with `appendfsync always`; load from {generator}");
    Ok(table.write(&title, out)?)
}

/// A deduct with each key.
pub(super) fn requests(accounts: &Populated) -> Arc<[Vec<u8>]> {
    let body = json!({"path": PATH, "method": "GET"});
    let secret = [("X-BDS-Internal-Billing-Secret", BILLING_SECRET)];
    accounts.requests(|key| request_with_json("POST", "/internal/billing/deduct", Some(key), &secret, &body))
}

fn row(keys: usize, connections: usize, deduct: &Measured, redis: Option<&Measured>) -> Row {
    let (sample, other) = (deduct.median(), redis.map(Measured::median));
    let ratio = redis.map(|redis| deduct.ratio_to(redis));
    let busy = |sample: Option<&Sample>| format::percent(sample.and_then(|sample| sample.generator_busy));
    Row::default()
        .count("Keys", keys)
        .count("Connections", connections)
        .rate("Deducts per second", sample.rate())
        .latency("p50", sample.p50)
        .latency("p99", sample.p99)
        .number(
            "Redis `DECRBY` per second",
            other.map_or_else(|| format::NONE.to_owned(), |other| format::rate(other.rate())),
        )
        .latency("p50", other.and_then(|other| other.p50))
        .latency("p99", other.and_then(|other| other.p99))
        .ratio("Ratio", ratio)
        .size("Memory", deduct.memory())
        .number("Generators busy", format!("{} / {}", busy(Some(sample)), busy(other)))
}
