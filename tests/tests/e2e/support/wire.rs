//! Wire-level helpers for several tests: routes of the default catalogue, and amounts in printed form.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use metering_core::Credits;
use metering_tests::client::Client;
use metering_tests::load::{LoadPlan, Stop};
use metering_tests::response::Response;

/// A route of weight 1 of the default catalogue.
pub(crate) const BASE: &str = "/mpp/snapshot/allTrades";

/// The stream of the default catalogue: a hundredth of a credit per connection.
pub(crate) const STREAM: &str = "/mpp/stream/allTrades";

/// Atoms of one credit and of one base call, as the protocol defines them.
pub(crate) const CREDIT: i64 = 7_200_000_000;
pub(crate) const BASE_CALL: i64 = 1_000_000;

/// An amount as the server prints it.
pub(crate) fn amount(atoms: i64) -> String {
    Credits::from_atoms(atoms).to_string()
}

/// The balance of the client's account, as printed.
#[track_caller]
pub(crate) fn balance(client: &Client) -> String {
    client.get("/credits/balance").expect(200).member("credit_balance")
}

/// How many accepted requests the client's account has in today's and yesterday's usage.
#[track_caller]
pub(crate) fn usage_events(client: &Client) -> u64 {
    let summary = client.get("/credits/usage/summary?days=2").expect(200).json();
    summary["totals"]["usage_events"].as_u64().unwrap()
}

/// A load with a long timeout for responses. These tests check responses; a disk that another program keeps busy is not
/// a failure of the server.
pub(crate) fn plan_with_long_timeout(
    address: SocketAddr,
    connections: usize,
    stop: Stop,
    calls: impl Into<Arc<[Vec<u8>]>>,
) -> LoadPlan {
    LoadPlan { timeout: Duration::from_secs(60), ..LoadPlan::new(address, connections, stop, calls) }
}

/// The retry delay of a refusal in seconds; asserts that header and body agree.
#[track_caller]
pub(crate) fn retry_after(refused: &Response) -> u64 {
    let header = refused.header("retry-after").unwrap_or_else(|| panic!("no Retry-After: {}", refused.text()));
    assert_eq!(refused.member("retry_after_sec"), header, "{}", refused.text());
    header.parse().unwrap()
}
