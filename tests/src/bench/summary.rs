//! What the usage summary of 30 days costs after few and after many requests, and how much room they take.
//!
//! Usage is kept as daily totals, so both must depend on days and routes and not on requests; this is where it would
//! show if they did not.

use std::io::Write;
use std::time::{Duration, Instant};

use metering_core::{ClientSource, Clock, DayRange, Store, SystemClock, Timestamp, UsageLine};

use super::accounts::{Populated, verify};
use super::charges::{charge, require_accepted};
use super::table::{Column, Table};
use super::{Arguments, Failure, figure};
use crate::latency::{Latencies, LatencySamples};

const DAYS: u32 = 30;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Distinct routes that the requests are of; the default catalogue has about as many.
const ROUTES: usize = 20;
/// Charges in one commit.
const BATCH: usize = 8_192;

/// Measures after each number of requests and writes the table.
pub(super) async fn write(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Failure> {
    let mut table = Table::new([
        Column::Figure("Requests"),
        Column::Figure("Summary p50"),
        Column::Figure("Summary p99"),
        Column::Figure("Database"),
    ]);
    for requests in &arguments.requests {
        eprintln!("summary: {requests} requests");
        let populated = Populated::make(&arguments.data_dir, 1).await?;
        record(&populated, requests.get(), SystemClock.now()).await?;
        let summaries = measure(&populated, arguments.time).await?;
        table.row([
            figure::count(requests.get()),
            figure::latency(summaries.p50()),
            figure::latency(summaries.p99()),
            figure::size(populated.bytes()?),
        ]);
    }
    Ok(table.write(&format!("Usage summary of {DAYS} days and {ROUTES} routes, of one account"), out)?)
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
            let batch = next..end.min(next + BATCH);
            next = batch.end;
            let postings: Vec<_> = batch.map(|request| charge(key, &lines[request % ROUTES])).collect();
            let count = postings.len();
            require_accepted(&store.commit(postings, at).await?, count)?;
        }
    }
    verify(&store).await
}

/// Asks for the summary again and again.
async fn measure(populated: &Populated, time: Duration) -> Result<Latencies, Failure> {
    let store = populated.open()?;
    let (id, window) = (&populated.accounts[0].0, DayRange::last_days(SystemClock.now(), DAYS));
    let (mut samples, begun) = (LatencySamples::default(), Instant::now());
    while begun.elapsed() < time {
        let asked = Instant::now();
        let report = store.usage_report(id, window).await?.ok_or("the account is gone")?;
        samples.record(asked.elapsed());
        if report.by_day.is_empty() {
            return Err("a summary of no usage is no figure".into());
        }
    }
    Ok(samples.sorted())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

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

    #[tokio::test]
    async fn each_number_of_requests_is_a_row() {
        let arguments = Arguments::try_parse_from("bench --time 5ms --requests 40,2000".split(' ')).unwrap();
        let mut out = Vec::new();
        write(&arguments, &mut out).await.unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("|       40 |") && text.contains("|    2,000 |"), "{text}");
    }
}
