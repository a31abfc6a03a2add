//! The cost of provable bills: charged requests with receipts and with the log of postings, compared with neither.
//!
//! Two servers have copies of the same accounts; one signs and serves the log. Both sign receipts, for requests that ask.

use std::io::Write;
use std::sync::Arc;

use super::accounts::{Populated, verified_calls};
use super::arguments::rising;
use super::generator::{Generator, Target};
use super::http::PATH;
use super::sample::Sample;
use super::serving::{end, server, start};
use super::table::{Row, Table};
use super::tools::Tools;
use super::turns::{Handled, Measured, in_turns};
use super::{Arguments, Failure};
use crate::command::{ProgramOutput, command_at};
use crate::load::request;
use crate::posting_log::PostingLog;
use crate::process::memory;
use crate::program;

/// What is compared.
struct Way {
    /// The index of the server: 1 for the one with the log.
    server: usize,
    target: Target,
    process: u32,
}

const NAMES: [&str; 4] = ["charged", "with receipts", "with the log", "with both"];
/// The yardstick.
const CHARGED: usize = 0;

/// Measures every combination of keys and connections and writes the table.
pub(super) async fn write(arguments: &Arguments, tools: &Tools, out: &mut dyn Write) -> Result<(), Failure> {
    let mut table = Table::default();
    let generator = Generator::choose(tools)?;
    let mut accounts = Populated::make(&arguments.data_dir, 0).await?;
    for keys in rising(&arguments.keys) {
        eprintln!("proof: growing to {keys} accounts");
        accounts.grow_to(keys).await?;
        for (connections, measured) in measure(arguments, &generator, &accounts).await? {
            (0..measured.len()).for_each(|way| table.row(row(keys, connections, way, &measured)));
        }
    }
    Ok(table.write(&format!("Charged requests with receipts and with the log; load from {generator}"), out)?)
}

/// Compares the ways at each number of connections, on copies of the accounts.
async fn measure(
    arguments: &Arguments,
    generator: &Generator,
    accounts: &Populated,
) -> Result<Vec<(usize, Vec<Measured>)>, Failure> {
    let program = &arguments.servers()?[0];
    let data = [accounts.duplicate(&arguments.data_dir)?, accounts.duplicate(&arguments.data_dir)?];
    let log = begin_log(&data[1])?;
    let servers = [
        start(log.only_receipts(server(program, data[0].folder())))?,
        start(log.serve(server(program, data[1].folder())))?,
    ];
    let requests = |headers: &[(&str, &str)]| accounts.requests(|key| request("GET", PATH, Some(key), headers));
    let (plain, asking) = (requests(&[]), requests(&[("Prefer", "metering-receipt")]));
    let way = |server: usize, requests: &Arc<[Vec<u8>]>| Way {
        server,
        target: Target::new(servers[server].address(), Arc::clone(requests)),
        process: servers[server].id(),
    };
    let ways = [way(0, &plain), way(0, &asking), way(1, &plain), way(1, &asking)];
    let mut charged = [Handled::default(); 2];
    for way in [&ways[0], &ways[2]] {
        charged[way.server] = charged[way.server].plus(&way.target.warm_up()?);
    }
    let mut comparisons = Vec::new();
    for connections in rising(&arguments.connections) {
        eprintln!("proof: {} keys, {connections} connections", plain.len());
        let measured = in_turns(arguments.rounds, &ways, |way| {
            let sample = generator.measure(&way.target, connections, arguments.time)?;
            Ok(Sample { memory: memory(&[way.process]), ..sample })
        })?;
        for (way, measured) in ways.iter().zip(&measured) {
            charged[way.server] = charged[way.server].and(measured.handled());
        }
        comparisons.push((connections, measured));
    }
    servers.into_iter().try_for_each(end)?;
    for (data, charged) in data.iter().zip(charged) {
        charged.require_recorded(verified_calls(&data.open()?).await?)?;
    }
    Ok(comparisons)
}

fn begin_log(data: &Populated) -> Result<PostingLog, Failure> {
    let program = program::find("metering")?;
    Ok(PostingLog::begin_by(&data.folder().join("log"), |args| {
        let mut admin = command_at(&program);
        admin.arg("admin").arg("--data").arg(data.folder()).args(args);
        ProgramOutput::of(admin.output().expect("the program can be run"))
    }))
}

fn row(keys: usize, connections: usize, way: usize, measured: &[Measured]) -> Row {
    let (found, sample) = (&measured[way], measured[way].median());
    let of_charged = (way != CHARGED).then(|| found.ratio_to(&measured[CHARGED]));
    Row::default()
        .count("Keys", keys)
        .count("Connections", connections)
        .text("Way", NAMES[way])
        .speed(sample)
        .ratio("Of charged", of_charged)
        .size("Memory", found.memory())
        .generator_busy(sample)
}
