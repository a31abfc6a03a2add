//! The cost of the usage summary of 30 days after few and after many requests, and their disk space.
//!
//! Usage is kept as daily totals, so both must depend on days and routes, not on requests; this benchmark would show if
//! they did not. The requests are charged through the store, which is faster. The summary is requested over HTTP, as
//! users do. All numbers of requests are measured in turns.

use std::io::Write;
use std::time::Duration;

use metering_core::{ClientSource, Clock, Store, SystemClock, Timestamp, UsageLine};

use super::accounts::{Populated, require_recorded, verified_calls};
use super::arguments::rising;
use super::charges::{charge, require_accepted};
use super::generator::require_success;
use super::rounds::Rounds;
use super::serving::{end, server, start};
use super::table::{Row, Table};
use super::{Arguments, Failure, interrupt};
use crate::client::Client;
use crate::load::{LoadPlan, LoadResult, Stop, request, run};
use crate::server::Server;

const DAYS: u32 = 30;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const PATH: &str = "/credits/usage/summary?days=30";
/// Distinct routes of the requests; the default catalogue has about as many.
const ROUTES: usize = 20;
/// Charges per commit.
const BATCH: usize = 8_192;

/// A server whose only account made a number of requests.
struct Case {
    requests: usize,
    database_bytes: u64,
    summary_request: Vec<u8>,
    rounds: Vec<LoadResult>,
    // In this order: the server ends before its folder is deleted.
    server: Server,
    _populated: Populated,
}

/// Measures after each number of requests and writes the table.
pub(super) async fn write(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Failure> {
    let mut table = Table::default();
    let mut cases = Vec::new();
    for requests in rising(&arguments.requests) {
        eprintln!("summary: {requests} requests");
        cases.push(prepare(arguments, requests).await?);
    }
    for round in 1..=arguments.rounds.get() {
        interrupt::check()?;
        eprintln!("summary: round {round}");
        for case in &mut cases {
            let plan = LoadPlan::new(
                case.server.address(),
                1,
                Stop::After(arguments.time),
                vec![case.summary_request.clone()],
            );
            case.rounds.push(require_success(run(plan))?);
        }
    }
    for case in cases {
        end(case.server)?;
        let rounds = Rounds::new(case.rounds, LoadResult::requests_per_second);
        let median = rounds.median();
        table.row(
            Row::default()
                .count("Requests", case.requests)
                .latency("Summary p50", median.latencies.p50())
                .latency("p99", median.latencies.p99())
                .rate("Summaries per second", median.requests_per_second())
                .size("Database", Some(case.database_bytes)),
        );
    }
    Ok(table.write(&format!("`GET {PATH}` of one account with usage of {ROUTES} routes, one connection"), out)?)
}

/// Records the requests and starts a server that has loaded all of them.
async fn prepare(arguments: &Arguments, requests: usize) -> Result<Case, Failure> {
    let populated = Populated::make(&arguments.data_dir, 1).await?;
    record(&populated, requests, SystemClock.now()).await?;
    let database_bytes = populated.bytes()?;
    let key = &populated.accounts[0].1;
    let summary_request = request("GET", PATH, Some(key.expose()), &[]);
    let server = start(server(&arguments.servers()?[0], populated.folder()))?;
    require_summarised(&server.client_with(key.expose()), requests)?;
    Ok(Case { requests, database_bytes, summary_request, rounds: Vec::new(), server, _populated: populated })
}

/// Fails unless the summary counts the requests. Around midnight the oldest day may already have left the window.
fn require_summarised(client: &Client, requests: usize) -> Result<(), Failure> {
    let response = client.try_send("GET", PATH, None)?;
    let document: serde_json::Value = serde_json::from_slice(&response.body)?;
    let counted = document["totals"]["usage_events"].as_u64();
    let requests = u64::try_from(requests)?;
    let of_a_day = requests.div_ceil(u64::from(DAYS));
    match counted {
        Some(counted) if response.status == 200 && (requests - of_a_day..=requests).contains(&counted) => Ok(()),
        _ => Err(format!("the summary does not count {requests} requests: {}", response.text()).into()),
    }
}

/// Records requests of the first account, spread evenly over the days up to `now` and over the routes.
async fn record(populated: &Populated, requests: usize, now: Timestamp) -> Result<(), Failure> {
    let store = populated.open()?;
    let key = populated.accounts[0].1.hash();
    let lines: Vec<UsageLine> = (0..ROUTES)
        .map(|route| UsageLine {
            route_template: format!("/mpp/route{route}/{{id}}").into(),
            http_method: "GET".into(),
            source: ClientSource::Direct,
        })
        .collect();
    let mut next = 0;
    for days_ago in (0..DAYS).rev() {
        let at = now.saturating_sub(DAY * days_ago);
        let days_done = usize::try_from(DAYS - days_ago)?;
        let end = requests * days_done / usize::try_from(DAYS)?;
        while next < end {
            interrupt::check()?;
            let batch = next..end.min(next + BATCH);
            next = batch.end;
            let postings: Vec<_> = batch.map(|request| charge(key, &lines[request % ROUTES])).collect();
            let count = postings.len();
            require_accepted(&store.commit(postings, at).await?, count)?;
        }
    }
    require_recorded(verified_calls(&store).await?, u64::try_from(requests)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::{Reply, serve};
    use metering_core::usage::DayRange;

    #[tokio::test]
    async fn requests_are_recorded_evenly_over_days_and_routes() {
        let populated = Populated::make(&std::env::temp_dir(), 1).await.unwrap();
        let now = SystemClock.now();
        record(&populated, 60_000, now).await.unwrap();
        let store = populated.open().unwrap();
        let window = DayRange::last_days(now, DAYS);
        let report = store.usage_report(&populated.accounts[0].0, window).await.unwrap().unwrap();
        assert_eq!(report.by_day.iter().map(|day| day.usage_events).collect::<Vec<_>>(), [2_000; 30]);
        assert_eq!(report.by_endpoint.iter().map(|line| line.call_count).collect::<Vec<_>>(), [3_000; ROUTES]);
    }

    #[test]
    fn summary_of_other_usage_is_an_error() {
        // status, events, whether they can be the totals of 60,000 requests
        let table = [
            ("200 OK", "60000", true),
            ("200 OK", "58000", true),
            ("200 OK", "57999", false),
            ("200 OK", "60001", false),
            ("200 OK", "null", false),
            ("500 Internal Server Error", "60000", false),
        ];
        for (status, events, fits) in table {
            let body = format!("{{\"totals\": {{\"usage_events\": {events}}}}}");
            let response = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            let client = Client::new(serve(move |_| Reply::Send(vec![response.clone().into_bytes()])));
            assert_eq!(require_summarised(&client, 60_000).is_ok(), fits, "{status} {events}");
        }
    }
}
