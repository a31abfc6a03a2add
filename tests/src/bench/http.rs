//! What metering costs an HTTP request: a metered route compared with its unmetered twin.
//!
//! Both are the real server, started with the same flags, and serve the same block of the sample feed to the same
//! requests. The only difference is that the twin's catalogue declares the route free. The load generator shares the
//! machine's cores with the servers. That slows the twin down more, because it serves more requests. Each key is used
//! once beforehand, as in [`super::charges`].

mod catalogue;
mod comparison;

use std::io::Write;
use std::sync::Arc;

use super::accounts::{Populated, require_recorded, verified_calls};
use super::arguments::rising;
use super::charges::SEED;
use super::draws::Draws;
use super::serving::{end, server};
use super::table::{Column, Table};
use super::{Arguments, Failure, format};
use crate::client::Client;
use crate::load::{LoadPlan, LoadResult, Stop, request, run};
use crate::server::Server;
use comparison::{Comparison, Target, compare};

pub(super) use comparison::require_success;

const TEMPLATE: &str = "/mpp/snapshot/allTrades/{block_number}";
/// A block of May 2025. It is always the same block, so every run does the same work.
pub(super) const PATH: &str = "/mpp/snapshot/allTrades/20000000";
/// Connections for using each key once.
const WARM_UP_CONNECTIONS: usize = 64;

/// Measures every combination of keys and connections and writes the table.
pub(super) async fn write(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Failure> {
    let mut table = Table::new([
        Column::Number("Keys"),
        Column::Number("Connections"),
        Column::Number("Metered per second"),
        Column::Number("p50"),
        Column::Number("p99"),
        Column::Number("Unmetered per second"),
        Column::Number("p50"),
        Column::Number("p99"),
        Column::Number("Ratio"),
        Column::Number("Of all rounds"),
        Column::Number("Generator busy"),
    ]);
    let mut metered = Populated::make(&arguments.data_dir, 0).await?;
    let unmetered = Populated::make(&arguments.data_dir, 0).await?;
    let mut accepted = 0;
    for keys in rising(&arguments.keys) {
        eprintln!("http: growing to {keys} accounts");
        metered.grow_to(keys).await?;
        for (connections, comparison) in measure(arguments, &metered, &unmetered, &mut accepted)? {
            table.row(row(keys, connections, &comparison));
        }
        require_recorded(verified_calls(&metered.open()?).await?, accepted)?;
        require_recorded(verified_calls(&unmetered.open()?).await?, 0)?;
    }
    Ok(table.write(&format!("`GET {TEMPLATE}`, metered and unmetered"), out)?)
}

/// Compares the two at each number of connections, and adds the metered server's responses to `accepted`.
fn measure(
    arguments: &Arguments,
    metered: &Populated,
    unmetered: &Populated,
    accepted: &mut u64,
) -> Result<Vec<(usize, Comparison)>, Failure> {
    let catalogue = unmetered.folder().join("catalogue.json");
    std::fs::write(&catalogue, catalogue::with_free_route(TEMPLATE)?)?;
    let requests = requests(metered);
    let metered = server(metered.folder())?.start();
    let twin = server(unmetered.folder())?.set("METERING_CATALOGUE", &catalogue.to_string_lossy()).start();
    require_twins(&metered.client(), &twin.client())?;
    let target = |server: &Server| Target { address: server.address(), requests: Arc::clone(&requests) };
    *accepted += warm_up(&target(&metered))?.responses();
    warm_up(&target(&twin))?;
    let (rounds, mut comparisons) = (arguments.rounds.get(), Vec::new());
    for connections in rising(&arguments.connections) {
        eprintln!("http: {} keys, {connections} connections", requests.len());
        let comparison = compare(&target(&metered), &target(&twin), connections, arguments.time, rounds)?;
        *accepted += comparison.metered_responses;
        comparisons.push((connections, comparison));
    }
    end(metered)?;
    end(twin)?;
    Ok(comparisons)
}

/// One request per key, in an order unrelated to their creation.
fn requests(populated: &Populated) -> Arc<[Vec<u8>]> {
    let keys = populated.accounts.iter().map(|(_, key)| key.expose());
    let mut requests: Vec<_> = keys.map(|key| request("GET", PATH, Some(key), &[])).collect();
    Draws::new(SEED).shuffle(&mut requests);
    requests.into()
}

/// Fails unless the servers are set up as intended: without a key the metered one refuses and the twin serves.
fn require_twins(metered: &Client, unmetered: &Client) -> Result<(), Failure> {
    match (metered.try_send("GET", PATH, None)?.status, unmetered.try_send("GET", PATH, None)?.status) {
        (401, 200) => Ok(()),
        other => Err(format!("without a key, expected 401 and 200, not {other:?}").into()),
    }
}

fn warm_up(target: &Target) -> Result<LoadResult, Failure> {
    let count = u64::try_from(target.requests.len())?;
    let connections = WARM_UP_CONNECTIONS.min(target.requests.len());
    let stop = Stop::AfterRequests(count);
    require_success(run(LoadPlan::new(target.address, connections, stop, Arc::clone(&target.requests))))
}

fn row(keys: usize, connections: usize, comparison: &Comparison) -> [String; 11] {
    let Comparison { metered, unmetered, ratio, ratios: (lowest, highest), .. } = comparison;
    let rate = |side: &LoadResult| format::rate(side.requests_per_second());
    let busy = |side: &LoadResult| format::percent(side.generator_load());
    [
        format::count(keys),
        format::count(connections),
        rate(metered),
        format::latency(metered.latencies.p50()),
        format::latency(metered.latencies.p99()),
        rate(unmetered),
        format::latency(unmetered.latencies.p50()),
        format::latency(unmetered.latencies.p99()),
        format!("{ratio:.2}"),
        format!("{lowest:.2}–{highest:.2}"),
        format!("{} / {}", busy(metered), busy(unmetered)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::{Reply, serve};

    #[tokio::test]
    async fn each_key_has_one_request_in_shuffled_order() {
        let populated = Populated::make(&std::env::temp_dir(), 50).await.unwrap();
        let mut requests: Vec<_> =
            requests(&populated).iter().map(|request| String::from_utf8(request.clone()).unwrap()).collect();
        let in_order: Vec<_> = populated
            .accounts
            .iter()
            .map(|(_, key)| {
                let key = key.expose();
                format!("GET {PATH} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\r\n")
            })
            .collect();
        assert_ne!(requests, in_order);
        requests.sort_by_key(|request| in_order.iter().position(|other| other == request));
        assert_eq!(requests, in_order);
    }

    #[test]
    fn mismatched_servers_are_an_error() {
        let client = |status: &'static str| {
            let response = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
            Client::new(serve(move |_| Reply::Send(vec![response.clone().into_bytes()])))
        };
        let (served, refused, missing) = (client("200 OK"), client("401 Unauthorized"), client("404 Not Found"));
        assert!(require_twins(&refused, &served).is_ok());
        for (metered, unmetered) in [(&served, &served), (&refused, &refused), (&refused, &missing)] {
            assert!(require_twins(metered, unmetered).unwrap_err().to_string().contains("401 and 200"));
        }
    }

    #[test]
    fn warming_up_sends_each_request_once() {
        let address = serve(|_| Reply::Send(vec![b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_vec()]));
        let requests: Vec<_> = (0..200).map(|path| request("GET", &format!("/{path}"), None, &[])).collect();
        let result = warm_up(&Target { address, requests: requests.into() }).unwrap();
        assert_eq!(result.with_status(200), 200);
    }
}
