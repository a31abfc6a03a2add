//! The cost of metering an HTTP request: a metered route compared with its unmetered twin, and both with bare hyper.
//!
//! Metered and unmetered are the real server, started with the same flags, and serve the same block of the sample feed
//! to the same requests. The only difference is that the twin's catalogue declares the route free. Bare hyper sends the
//! same response without parsing the request. The load generator shares the machine's cores with the servers. That
//! slows the faster ones down more, because they serve more requests. Each key is used once beforehand, as in
//! [`super::charges`].

mod catalogue;

use std::io::Write;

use super::accounts::{Populated, require_recorded, verified_calls};
use super::arguments::rising;
use super::bare::{Listener, whole};
use super::generator::{Generator, Target};
use super::sample::Sample;
use super::serving::{end, server, start};
use super::table::{Row, Table};
use super::tools::Tools;
use super::turns::{Handled, Measured, in_turns};
use super::{Arguments, Failure};
use crate::client::Client;
use crate::load::request;
use crate::process::memory;
use crate::server::Server;

const TEMPLATE: &str = "/mpp/snapshot/allTrades/{block_number}";
/// A block of May 2025. It is always the same block, so every run does the same work.
pub(super) const PATH: &str = "/mpp/snapshot/allTrades/20000000";

/// What is compared.
struct Way {
    target: Target,
    /// The id of a server's process; none for bare hyper, which runs in this one.
    process: Option<u32>,
}

/// The ways' names, and their places in a list of them.
const NAMES: [&str; 3] = ["metered", "unmetered", "bare hyper"];
const METERED: usize = 0;
const UNMETERED: usize = 1;
const HYPER: usize = 2;

/// Measures every combination of keys and connections and writes the table.
pub(super) async fn write(arguments: &Arguments, tools: &Tools, out: &mut dyn Write) -> Result<(), Failure> {
    let mut table = Table::default();
    let generator = Generator::choose(tools)?;
    let mut metered = Populated::make(&arguments.data_dir, 0).await?;
    let unmetered = Populated::make(&arguments.data_dir, 0).await?;
    let mut charged = Handled::default();
    for keys in rising(&arguments.keys) {
        eprintln!("http: growing to {keys} accounts");
        metered.grow_to(keys).await?;
        for (connections, measured) in measure(arguments, &generator, &metered, &unmetered, &mut charged)? {
            (0..measured.len()).for_each(|way| table.row(row(keys, connections, way, &measured)));
        }
        charged.require_recorded(verified_calls(&metered.open()?).await?)?;
        require_recorded(verified_calls(&unmetered.open()?).await?, 0)?;
    }
    let title = format!("`GET {TEMPLATE}`, metered, unmetered, and from bare hyper; load from {generator}");
    Ok(table.write(&title, out)?)
}

/// Compares the ways at each number of connections, and adds the metered server's requests to `charged`.
fn measure(
    arguments: &Arguments,
    generator: &Generator,
    metered: &Populated,
    unmetered: &Populated,
    charged: &mut Handled,
) -> Result<Vec<(usize, Vec<Measured>)>, Failure> {
    let program = &arguments.servers()?[0];
    let catalogue = unmetered.folder().join("catalogue.json");
    std::fs::write(&catalogue, catalogue::with_free_route(TEMPLATE)?)?;
    let metered_server = start(server(program, metered.folder()))?;
    let twin = start(server(program, unmetered.folder()).set("METERING_CATALOGUE", &catalogue.to_string_lossy()))?;
    require_twins(&metered_server.client(), &twin.client())?;
    let hyper = bare_copy(&twin.client())?;
    let requests = metered.requests(|key| request("GET", PATH, Some(key), &[]));
    let way = |address, server: Option<&Server>| Way {
        target: Target::new(address, requests.clone()),
        process: server.map(Server::id),
    };
    let ways = [
        way(metered_server.address(), Some(&metered_server)),
        way(twin.address(), Some(&twin)),
        way(hyper.address(), None),
    ];
    *charged = charged.plus(&ways[METERED].target.warm_up()?);
    ways[UNMETERED].target.warm_up()?;
    let mut comparisons = Vec::new();
    for connections in rising(&arguments.connections) {
        eprintln!("http: {} keys, {connections} connections", requests.len());
        let measured = in_turns(arguments.rounds, &ways, |way| {
            let sample = generator.measure(&way.target, connections, arguments.time)?;
            Ok(Sample { memory: way.process.and_then(|process| memory(&[process])), ..sample })
        })?;
        *charged = charged.and(measured[METERED].handled());
        comparisons.push((connections, measured));
    }
    end(metered_server)?;
    end(twin)?;
    Ok(comparisons)
}

/// Bare hyper, with the response of a server to requests without a key.
fn bare_copy(unmetered: &Client) -> Result<Listener, Failure> {
    let response = unmetered.try_send("GET", PATH, None)?;
    let content_type = response.header("content-type").unwrap_or("application/json").to_owned();
    let body = hyper::body::Bytes::from(response.body);
    Listener::serve(move |_| whole(&content_type, body.clone()))
}

/// Fails unless the servers are set up as intended: without a key the metered one refuses and the twin serves.
fn require_twins(metered: &Client, unmetered: &Client) -> Result<(), Failure> {
    match (metered.try_send("GET", PATH, None)?.status, unmetered.try_send("GET", PATH, None)?.status) {
        (401, 200) => Ok(()),
        other => Err(format!("without a key, expected 401 and 200, not {other:?}").into()),
    }
}

fn row(keys: usize, connections: usize, way: usize, measured: &[Measured]) -> Row {
    let (found, sample) = (&measured[way], measured[way].median());
    let of_unmetered = (way == METERED).then(|| found.ratio_to(&measured[UNMETERED]));
    let of_hyper = (way != HYPER).then(|| found.ratio_to(&measured[HYPER]));
    Row::default()
        .count("Keys", keys)
        .count("Connections", connections)
        .text("Way", NAMES[way])
        .speed(sample)
        .ratio("Of unmetered", of_unmetered)
        .ratio("Of bare hyper", of_hyper)
        .size("Memory", found.memory())
        .generator_busy(sample)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::{Reply, serve};

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
    fn bare_hyper_sends_the_same_response() {
        let response = "HTTP/1.1 200 OK\r\ncontent-type: text/x\r\ncontent-length: 2\r\n\r\nhi";
        let server = Client::new(serve(move |_| Reply::Send(vec![response.as_bytes().to_vec()])));
        let copy = bare_copy(&server).unwrap();
        let copied = Client::new(copy.address()).get("/");
        assert_eq!((copied.text().as_str(), copied.header("content-type")), ("hi", Some("text/x")));
    }
}
