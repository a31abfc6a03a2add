//! `metering mcp --pay`.

use serde_json::json;

use super::shop::{WALLET_KEY, asks, assert_signed, offer, payments, settled};
use crate::home::Home;
use crate::mcp::Client;
use crate::routes::CATALOGUE;
use crate::stand_in::{Reply, StandIn};

#[test]
fn tool_call_is_paid_within_the_limits() {
    let service = StandIn::start();
    service.on("/endpoints.json", Reply::ok(CATALOGUE));
    service
        .on("/mpp/ethPrice", asks(&[offer(50_000)]))
        .on("/mpp/ethPrice", settled(Reply::ok(r#"{"price": "3000.5"}"#)));
    service.on("/mpp/ethPrice", asks(&[offer(50_000)]));
    let (home, _) = Home::of(&service);
    let args = ["mcp", "--pay", "--max", "0.05", "--daily-limit", "0.09"];
    let mut command = home.command(&args);
    let mut client = Client::of(command.env("METERING_CLIENT_WALLET_KEY", WALLET_KEY));
    client.begin();
    let call = json!({ "name": "bds_mpp_ethPrice", "arguments": {} });
    let first = client.call("tools/call", call.clone());
    assert_eq!(first["structuredContent"]["data"]["price"], "3000.5", "{first}");
    let second = client.call("tools/call", call);
    assert_eq!((&second["isError"], &second["structuredContent"]["error"]), (&json!(true), &json!("payment_limit")));
    let (_, code, stderr) = client.end();
    assert_eq!(code, 0, "{stderr}");
    let sent: Vec<_> = payments(&service).into_iter().flatten().collect();
    assert_eq!(sent.len(), 1);
    assert_signed(&sent[0], 50_000);
}
