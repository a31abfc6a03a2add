//! The cost of an open event stream through the gateway, compared with nginx: memory and processor time.
//!
//! The upstream, on bare hyper, sends each stream an event now and then. Clients and upstream are parts of this
//! process, so the figures are the proxy's alone.

mod clients;
mod descriptors;
mod events;
mod proxy;

use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use super::accounts::Populated;
use super::bare::Listener;
use super::rounds::Rounds;
use super::table::{Row, Table};
use super::tools::Tools;
use super::{Arguments, Failure, format, interrupt};
use crate::process::{busy, memory};
use clients::Clients;
use proxy::Proxy;

/// Streams per key, as many as the server allows by default.
const STREAMS_PER_KEY: usize = 16;
/// Events per stream while the processor time is measured, at least.
const EVENTS: u32 = 3;

/// The result of one round of a proxy.
#[derive(Debug, Clone, Copy)]
struct Cost {
    memory_before: u64,
    memory_per_stream: u64,
    /// Processor time per stream and second.
    busy_per_stream: Duration,
    /// The share of one core for all streams.
    busy: f64,
    events_per_second: f64,
    /// How long it took until every stream was open and had its first event.
    opening: Duration,
}

/// Measures each proxy and writes the table.
pub(super) async fn write(arguments: &Arguments, tools: &Tools, out: &mut dyn Write) -> Result<(), Failure> {
    let mut table = Table::default();
    let streams = descriptors::streams_that_fit(arguments.streams.get())?;
    let event_every = arguments.event_every;
    let upstream = Listener::serve(move |_| events::response(event_every))?;
    let accounts = Populated::make(&arguments.data_dir, streams.div_ceil(STREAMS_PER_KEY)).await?;
    let names: &[&str] = if tools.nginx.is_some() { &[proxy::NGINX, proxy::GATEWAY] } else { &[proxy::GATEWAY] };
    let mut rounds: Vec<_> = names.iter().map(|_| Vec::new()).collect();
    for round in 1..=arguments.rounds.get() {
        for (name, costs) in names.iter().zip(&mut rounds) {
            interrupt::check()?;
            eprintln!("streams: round {round}, {name}");
            let proxy = Proxy::start(name, arguments, tools, &accounts, upstream.address(), streams)?;
            costs.push(measure(arguments, &proxy, &accounts, streams)?);
            proxy.end(streams + 1).await?;
        }
    }
    for (name, costs) in names.iter().zip(rounds) {
        table.row(row(name, streams, &costs));
    }
    let every = humantime::format_duration(event_every);
    Ok(table.write(&format!("Open event streams, with an event every {every} on each"), out)?)
}

#[expect(clippy::float_arithmetic, reason = "figures for people")]
fn measure(arguments: &Arguments, proxy: &Proxy, accounts: &Populated, streams: usize) -> Result<Cost, Failure> {
    let requests = accounts.requests(proxy::request_with);
    // The first stream makes the proxy allocate what all share.
    drop(Clients::open(proxy.address(), &requests, 1)?);
    let ids = proxy.processes();
    let gone = || "the proxy has ended";
    let memory_before = memory(&ids).ok_or_else(gone)?;
    let opening = Instant::now();
    let clients = Clients::open(proxy.address(), &requests, streams)?;
    let opening = opening.elapsed();
    let (started, events_before, busy_before) = (Instant::now(), clients.events(), busy(&ids).ok_or_else(gone)?);
    thread::sleep(arguments.time.max(arguments.event_every * EVENTS));
    let busy = busy(&ids).ok_or_else(gone)?.saturating_sub(busy_before);
    let (events, spent) = (clients.events() - events_before, started.elapsed());
    let memory_after = memory(&ids).ok_or_else(gone)?;
    clients.require_open()?;
    let share = busy.as_secs_f64() / spent.as_secs_f64();
    Ok(Cost {
        memory_before,
        memory_per_stream: memory_after.saturating_sub(memory_before) / u64::try_from(streams)?,
        busy_per_stream: Duration::from_secs_f64(share / streams as f64),
        busy: share,
        events_per_second: format::per_second(usize::try_from(events)?, spent),
        opening,
    })
}

/// The median of each figure.
fn row(name: &str, streams: usize, costs: &[Cost]) -> Row {
    let median = |figure: fn(&Cost) -> f64| *Rounds::new(costs.to_vec(), figure).median();
    let busy = median(|cost| cost.busy);
    Row::default()
        .text("Way", name)
        .count("Streams", streams)
        .size("Memory before", Some(median(|cost| cost.memory_before as f64).memory_before))
        .size("Memory per stream", Some(median(|cost| cost.memory_per_stream as f64).memory_per_stream))
        .latency("CPU per stream and second", Some(busy.busy_per_stream))
        .number("CPU", format::percent(Some(busy.busy)))
        .rate("Events per second", median(|cost| cost.events_per_second).events_per_second)
        .latency("Until all are open", Some(median(|cost| cost.opening.as_secs_f64()).opening))
}
