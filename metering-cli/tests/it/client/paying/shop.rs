//! A service that asks for payments, and what it got.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use metering_core::chains::TokenDomain;
use metering_pay::wire::x402::PaymentPayload;
use serde_json::{Value, json};

use crate::client::client;
use crate::program::{OTHER as WALLET, OTHER_KEY as WALLET_KEY, Program};
use crate::stand_in::{RecordedRequest, Reply, StandIn};

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

/// A refusal of the payment for this reason.
pub(crate) fn refused(reason: &str) -> Reply {
    unsettled(Reply::error(402, "payment_refused"), reason)
}

/// A reply that says that it was not.
pub(crate) fn unsettled(reply: Reply, reason: &str) -> Reply {
    let receipt = json!({"success": false, "errorReason": reason, "transaction": "", "network": "eip155:84532"});
    reply.header("payment-response", encoded(&receipt))
}

/// The program with a wallet but without a profile, and a shop that responds like this to `$shop/x`.
pub(crate) fn shop(replies: impl IntoIterator<Item = Reply>) -> (Program, StandIn) {
    let (mut program, shop) = (Program::new(), StandIn::start());
    program.set("METERING_CLIENT_WALLET_KEY", WALLET_KEY);
    shop.on_each("/x", replies);
    program.call("shop", shop.url());
    (program, shop)
}

/// The same with a profile for the service, which responds at this path.
pub(crate) fn own_service(path: &str, replies: impl IntoIterator<Item = Reply>) -> (Program, StandIn) {
    let (mut program, service) = client([]);
    program.set("METERING_CLIENT_WALLET_KEY", WALLET_KEY);
    service.on_each(path, replies);
    (program, service)
}

/// A paid call of `$shop/x`.
pub(crate) const CALL: &str = "call $shop/x --pay --max 1";

/// How many payments were sent, and how many different ones.
pub(crate) fn sent(shop: &StandIn) -> (usize, usize) {
    let mut payments: Vec<_> = payments(shop).into_iter().flatten().collect();
    let all = payments.len();
    payments.sort();
    payments.dedup();
    (all, payments.len())
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
