//! The vectors in `tests/vectors/payments`, and the offers that their clients saw.

use metering_core::chains::Address;
use metering_core::chains::TokenDomain;
use metering_core::payments::TokenAmount;
use serde_json::Value;

use crate::offers::{Asset, Offer, Offers};
use crate::wire::fields::Base64;
use crate::wire::x402::Resource;

/// When they were recorded, in seconds since 1970.
pub(super) const NOW: i64 = 1_750_000_000;
const USDC: &str = "0x036CbD53842c5426634e7929541eC2318f3dCF7e";
const PAY_TO: &str = "0x209693Bc6afc0C5328bA36FaF03C514EF312287C";

macro_rules! vectors {
    ($($name:literal),* $(,)?) => {
        /// The vector in this file.
        pub(super) fn vector(name: &str) -> Value {
            let text = match name {
                $($name => include_str!(concat!("../../tests/vectors/payments/", $name, ".json")),)*
                _ => panic!("there is no vector {name}"),
            };
            serde_json::from_str(text).unwrap()
        }
    };
}

vectors!(
    "mpp-evm-authorization",
    "mpp-evm-authorization-pympp",
    "mpp-evm-payment-authorization-header",
    "server-messages",
    "siwx",
    "x402-v1-py-httpx",
    "x402-v1-via-x402fetch",
    "x402-v1-x402-fetch",
    "x402-v1-x402-fetch-localaccount",
    "x402-v2-axios",
    "x402-v2-fetch",
    "x402-v2-mppx",
    "x402-v2-payment-identifier",
    "x402-v2-py-httpx",
    "x402-v2-upto",
);

/// The key that signed them.
pub(super) fn payer() -> Address {
    "0x70997970C51812dc3A010C7d01b50e0d17dc79C8".parse().unwrap()
}

pub(super) fn usdc() -> TokenDomain {
    offer(84_532, USDC, "0.05").asset.domain
}

pub(super) fn offer(chain_id: u64, token: &str, amount: &str) -> Offer {
    let contract = token.parse().unwrap();
    let domain = TokenDomain { name: "USDC".to_owned(), version: "2".to_owned(), chain_id, contract };
    let asset = Asset { domain, decimals: 6 };
    Offer::new(asset, PAY_TO.parse().unwrap(), TokenAmount::parse(amount).unwrap(), 1.into()).unwrap()
}

pub(super) fn offers() -> Offers {
    Offers::new(vec![offer(84_532, USDC, "0.5"), offer(84_532, USDC, "0.05")])
}

pub(super) fn resource() -> Resource {
    Resource {
        url: "https://api.example.com/v1/quote?symbol=ETH".to_owned(),
        description: "Quote".to_owned(),
        mime_type: "application/json".to_owned(),
    }
}

/// The JSON of a header of x402.
pub(super) fn decoded(header: &str) -> Value {
    assert_eq!(header.len() % 4, 0, "it has padding");
    Base64::Standard.decode_json("header", header).unwrap()
}

/// A header of x402 with this JSON.
pub(super) fn header_of(document: &Value) -> String {
    Base64::Standard.encode_json(document)
}

/// The document with another value in a place, which may be a new member.
pub(super) fn mutated(document: &Value, pointer: &str, value: Value) -> Value {
    let mut document = document.clone();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    document.pointer_mut(parent).unwrap()[name] = value;
    document
}
