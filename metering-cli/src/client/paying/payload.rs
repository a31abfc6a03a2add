//! Payments in x402's format, for the header of a request.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use metering_core::chains::WalletSignature;
use metering_core::offers::Authorization;
use metering_core::wire::{PAYMENT_SIGNATURE_HEADER, X_PAYMENT_HEADER};
use metering_pay::wire::x402::PAYMENT_IDENTIFIER_EXTENSION;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::client::paying::offers::{Offer, Offered, Version};
use crate::failure::Failure;

/// The longest header to send, in bytes. It contains the service's offers, and few servers accept a longer one.
const HEADER_BYTES_MAX: usize = 32 * 1024;

/// A header.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) name: &'static str,
    pub(super) value: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PayloadV2<'p> {
    #[serde(rename = "x402Version")]
    version: u8,
    payload: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    extensions: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource: Option<&'p RawValue>,
    accepted: &'p RawValue,
}

/// The header that accepts an offer.
///
/// # Errors
/// When it would be too long.
pub(super) fn header(
    offered: &Offered,
    offer: &Offer,
    authorization: &Authorization,
    signature: &WalletSignature,
) -> Result<Header, Failure> {
    let signed = json!({
        "signature": format!("0x{}", hex::encode(signature.as_bytes())),
        "authorization": {
            "from": authorization.from.to_checksummed(),
            "to": authorization.to.to_checksummed(),
            "value": authorization.value,
            "validAfter": authorization.valid_after.to_string(),
            "validBefore": authorization.valid_before.to_string(),
            "nonce": authorization.nonce.to_string(),
        },
    });
    let (name, json) = match &offered.version {
        Version::V1 => {
            let payload = json!({"x402Version": 1, "scheme": "exact", "network": offer.network, "payload": signed});
            (X_PAYMENT_HEADER, serde_json::to_vec(&payload))
        }
        Version::V2 { resource, extensions } => {
            let extensions = extensions.as_deref().map(|extensions| identified(extensions, authorization));
            let resource = resource.as_deref();
            let payload = PayloadV2 { version: 2, payload: signed, extensions, resource, accepted: &offer.raw };
            (PAYMENT_SIGNATURE_HEADER, serde_json::to_vec(&payload))
        }
    };
    let json = json.map_err(|error| Failure::Failed(format!("cannot serialize the payment: {error}")))?;
    let value = STANDARD.encode(json);
    if value.len() > HEADER_BYTES_MAX {
        let problem = "the service's offers are too long to be sent back with a payment; nothing was paid";
        return Err(Failure::Failed(problem.to_owned()));
    }
    Ok(Header { name, value })
}

/// The extensions to send back: unchanged, except that a service that supports payment ids gets one, so that it can
/// repeat its response when the payment is sent again.
fn identified(extensions: &RawValue, authorization: &Authorization) -> Box<RawValue> {
    let with_id = || {
        let mut map: BTreeMap<String, Box<RawValue>> = serde_json::from_str(extensions.get()).ok()?;
        let mut extension: Value = serde_json::from_str(map.get(PAYMENT_IDENTIFIER_EXTENSION)?.get()).ok()?;
        let id = format!("pay_{}", hex::encode(&authorization.nonce.as_bytes()[..16]));
        extension.get_mut("info")?.as_object_mut()?.insert("id".to_owned(), id.into());
        map.insert(PAYMENT_IDENTIFIER_EXTENSION.to_owned(), to_raw_value(&extension).ok()?);
        to_raw_value(&map).ok()
    };
    with_id().unwrap_or_else(|| extensions.to_owned())
}

#[cfg(test)]
mod tests {
    use metering_pay::wire::x402::{PaymentPayload, PaymentPayloadV1};

    use super::*;

    const V1: &str = r#"{"x402Version": 1, "accepts": [{"scheme": "exact", "network": "base-sepolia",
        "maxAmountRequired": "50000", "asset": "0x036CbD53842c5426634e7929541eC2318f3dCF7e", "maxTimeoutSeconds": 60,
        "payTo": "0x209693Bc6afc0C5328bA36FaF03C514EF312287C"}]}"#;
    const V2: &str = r#"{"x402Version": 2, "resource": {"url": "https://a/", "more": 1.10},
        "accepts": [{"scheme": "exact", "network": "eip155:84532", "amount": "50000", "weight": 1.10,
            "asset": "0x036CbD53842c5426634e7929541eC2318f3dCF7e", "maxTimeoutSeconds": 60,
            "payTo": "0x209693Bc6afc0C5328bA36FaF03C514EF312287C", "extra": {"name": "USDC", "version": "2"}}],
        "extensions": {"other": {"info": {"n": 1.10}, "schema": {}},
            "payment-identifier": {"info": {"required": true}, "schema": {}}}}"#;

    fn offered(document: &str) -> Offered {
        let mut headers = http::HeaderMap::new();
        if document.contains("\"x402Version\": 2") {
            headers.insert("payment-required", STANDARD.encode(document).parse().unwrap());
        }
        Offered::read(&headers, document.as_bytes()).unwrap().unwrap()
    }

    fn payment(document: &str) -> (Header, Authorization) {
        let offered = offered(document);
        let offer = offered.offers[0].as_ref().unwrap();
        let authorization = Authorization {
            from: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8".parse().unwrap(),
            to: offer.pay_to,
            value: offer.amount,
            valid_after: 0,
            valid_before: 1_750_000_300,
            nonce: metering_core::offers::AuthorizationNonce::from_bytes([0xab; 32]),
        };
        let signature = WalletSignature::from_bytes(vec![7; 65]).unwrap();
        (header(&offered, offer, &authorization, &signature).unwrap(), authorization)
    }

    #[test]
    fn services_read_the_payment_that_was_signed() {
        let (header, authorization) = payment(V2);
        assert_eq!(header.name, "payment-signature");
        let read = PaymentPayload::parse(&header.value).unwrap();
        assert_eq!(read.signed.authorization, authorization);
        assert_eq!((read.signed.chain_id, read.signed.signature.as_bytes()), (84_532, &[7; 65][..]));
        assert_eq!(read.resource.as_deref(), Some("https://a/"));
        assert_eq!(read.identifier.unwrap().as_str(), format!("pay_{}", "ab".repeat(16)));

        let (header, authorization) = payment(V1);
        assert_eq!(header.name, "x-payment");
        let read = PaymentPayloadV1::parse(&header.value).unwrap();
        let printed = format!("{read:?}");
        assert!(printed.contains(&authorization.nonce.to_string()), "{printed}");
    }

    #[test]
    fn what_the_service_wrote_is_sent_back_as_it_is() {
        let (header, _) = payment(V2);
        let text = String::from_utf8(STANDARD.decode(header.value).unwrap()).unwrap();
        assert_eq!(text.matches("1.10").count(), 3, "{text}");
        assert!(text.contains(r#""required":true"#) && text.contains(r#""weight": 1.10"#), "{text}");
    }

    #[test]
    fn payment_that_no_server_would_accept_is_not_signed() {
        let long = V2.replace("https://a/", &format!("https://a/{}", "x".repeat(HEADER_BYTES_MAX)));
        let offered = offered(&long);
        let (_, authorization) = payment(V2);
        let signature = WalletSignature::from_bytes(vec![7; 65]).unwrap();
        assert!(header(&offered, offered.offers[0].as_ref().unwrap(), &authorization, &signature).is_err());
    }
}
