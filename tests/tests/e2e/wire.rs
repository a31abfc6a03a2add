//! What several tests say about the wire: routes of the default catalogue, and amounts as they are printed.

use metering_core::Credits;
use metering_tests::client::Client;

/// A route of weight 1 of the default catalogue.
pub(crate) const BASE: &str = "/mpp/snapshot/allTrades";

/// The stream of the default catalogue: a hundredth of a credit per connection.
pub(crate) const STREAM: &str = "/mpp/stream/allTrades";

/// Atoms of one credit and of one base call, from the protocol.
pub(crate) const CREDIT: i64 = 7_200_000_000;
pub(crate) const BASE_CALL: i64 = 1_000_000;

/// An amount as the server prints it.
pub(crate) fn amount(atoms: i64) -> String {
    Credits::from_atoms(atoms).to_string()
}

/// The balance of the client's account, as printed.
#[track_caller]
pub(crate) fn balance(client: &Client) -> String {
    client.get("/credits/balance").expect(200).json()["credit_balance"].to_string()
}

/// How many accepted requests the client's account has in today's and yesterday's usage.
#[track_caller]
pub(crate) fn usage_events(client: &Client) -> u64 {
    let summary = client.get("/credits/usage/summary?days=2").expect(200).json();
    summary["totals"]["usage_events"].as_u64().unwrap()
}
