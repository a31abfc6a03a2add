//! A service that asks for payments, and what it got.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use metering_core::chains::TokenDomain;
use metering_core::wire::x402::PaymentPayload;
use serde_json::{Value, json};

use crate::home::{Home, RunOutput};
use crate::stand_in::{RecordedRequest, Reply, StandIn};

/// A wallet of anvil.
pub(crate) const WALLET_KEY: &str = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d";
pub(crate) const WALLET: &str = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
pub(crate) const SHOP: &str = "0x209693Bc6afc0C5328bA36FaF03C514EF312287C";
pub(crate) const USDC: &str = "0x036CbD53842c5426634e7929541eC2318f3dCF7e";
pub(crate) const TX: &str = "0x4fb186eac8671be3d580252b09eb620e95140339cb5051905932dad888d5dd54";

/// An offer of so many units of USDC on Base Sepolia.
pub(crate) fn offer(units: u64) -> Value {
    json!({"scheme": "exact", "network": "eip155:84532", "amount": units.to_string(), "asset": USDC, "payTo": SHOP,
        "maxTimeoutSeconds": 300, "extra": {"name": "USDC", "version": "2"}})
}

fn encoded(document: &Value) -> String {
    STANDARD.encode(document.to_string())
}

/// A 402 with these offers, as version 2 has it.
pub(crate) fn asks(offers: &[Value]) -> Reply {
    let resource = json!({"url": "https://shop.example/", "description": "", "mimeType": "application/json"});
    let document = json!({"x402Version": 2, "error": "payment_required", "resource": resource, "accepts": offers});
    Reply::error(402, "insufficient_credits").header("payment-required", encoded(&document))
}

/// A reply that says that the payment was executed.
pub(crate) fn settled(reply: Reply) -> Reply {
    let receipt = json!({"success": true, "transaction": TX, "network": "eip155:84532", "payer": WALLET});
    reply.header("payment-response", encoded(&receipt))
}

/// A reply that says that it was not.
pub(crate) fn unsettled(reply: Reply, reason: &str) -> Reply {
    let receipt = json!({"success": false, "errorReason": reason, "transaction": "", "network": "eip155:84532"});
    reply.header("payment-response", encoded(&receipt))
}

/// Runs a command with the wallet.
pub(crate) fn run(home: &Home, args: &[&str]) -> RunOutput {
    home.command(args).env("METERING_CLIENT_WALLET_KEY", WALLET_KEY).output().unwrap().into()
}

/// The payments that a service got, one for each request.
pub(crate) fn payments(service: &StandIn) -> Vec<Option<String>> {
    let payment = |request: &RecordedRequest| request.header("payment-signature").map(str::to_owned);
    service.requests().iter().map(payment).collect()
}

/// Asserts that the wallet has signed this payment of so many units, and returns it.
#[track_caller]
pub(crate) fn assert_signed(header: &str, units: u128) -> PaymentPayload {
    let payment = PaymentPayload::parse(header).unwrap();
    let usdc = TokenDomain {
        name: "USDC".to_owned(),
        version: "2".to_owned(),
        chain_id: 84_532,
        contract: USDC.parse().unwrap(),
    };
    let signed = &payment.signed;
    assert_eq!((signed.chain_id, signed.authorization.value.get()), (84_532, units));
    assert_eq!((signed.authorization.from, signed.authorization.to), (WALLET.parse().unwrap(), SHOP.parse().unwrap()));
    assert!(signed.authorization.is_signed_by_key(&usdc, &signed.signature));
    payment
}
