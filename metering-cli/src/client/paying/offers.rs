//! Reads the offers of a 402 (x402, versions 1 and 2). The service's bytes are kept where they must be sent back.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use metering_core::chains::{Address, TokenUnits};
use metering_core::wire::PAYMENT_REQUIRED_HEADER;
use metering_pay::offers::Network;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::client::paying::tokens::chain_of_name;
use crate::failure::Failure;

/// The longest header to read, in bytes. Other clients refuse a quarter of that.
const HEADER_BYTES_MAX: usize = 64 * 1024;
/// The maximum number of offers to read.
const OFFERS_MAX: usize = 100;

/// The offers of a 402.
#[derive(Debug)]
pub(super) struct Offered {
    pub(super) version: Version,
    /// In the service's order, except that offers charged before the request is served come last. An offer that cannot
    /// be paid has the reason.
    pub(super) offers: Vec<Result<Offer, String>>,
}

/// The version of x402, and the data that its payments send back in addition to the offer.
#[derive(Debug)]
pub(super) enum Version {
    V1,
    V2 { resource: Option<Box<RawValue>>, extensions: Option<Box<RawValue>> },
}

/// An offer that can be signed.
#[derive(Debug)]
pub(super) struct Offer {
    pub(super) chain_id: u64,
    /// The chain, by the service's name for it.
    pub(super) network: String,
    pub(super) asset: Address,
    pub(super) pay_to: Address,
    pub(super) amount: TokenUnits,
    pub(super) timeout_seconds: u64,
    /// Whether the payment is executed before the request is served.
    is_upfront: bool,
    /// The token's domain (EIP-712), according to the service.
    pub(super) name: Option<String>,
    pub(super) version: Option<String>,
    /// The offer as the service wrote it.
    pub(super) raw: Box<RawValue>,
}

#[derive(Deserialize)]
struct Document {
    #[serde(rename = "x402Version")]
    version: u64,
    accepts: Vec<Box<RawValue>>,
    resource: Option<Box<RawValue>>,
    extensions: Option<Box<RawValue>>,
}

/// The fields that are read first: other schemes and networks have other fields.
#[derive(Deserialize)]
struct Kind {
    scheme: String,
    network: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Fields {
    #[serde(alias = "maxAmountRequired")]
    amount: String,
    asset: String,
    pay_to: String,
    max_timeout_seconds: u64,
    extra: Option<Extra>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Extra {
    name: Option<String>,
    version: Option<String>,
    payment_flow: Option<String>,
    asset_transfer_method: Option<String>,
}

impl Offered {
    /// Reads a 402; `None` if it offers nothing.
    ///
    /// # Errors
    /// When it has offers that cannot be read. If the header cannot be read, the body is not used instead.
    pub(super) fn read(headers: &HeaderMap, body: &[u8]) -> Result<Option<Self>, Failure> {
        let Some(header) = headers.get(PAYMENT_REQUIRED_HEADER) else { return Self::of_body(body) };
        let wrong = |why: &str| {
            Failure::Failed(format!(
                "the service asks for a payment in a form that cannot be read ({why}); nothing was paid"
            ))
        };
        if header.len() > HEADER_BYTES_MAX {
            return Err(wrong("PAYMENT-REQUIRED is too long"));
        }
        let json = STANDARD.decode(header.as_bytes()).map_err(|_| wrong("PAYMENT-REQUIRED is not base64"))?;
        let document: Document =
            serde_json::from_slice(&json).map_err(|_| wrong("PAYMENT-REQUIRED is not a document of x402"))?;
        if document.version != 2 {
            return Err(wrong("PAYMENT-REQUIRED is not of version 2"));
        }
        if document.accepts.len() > OFFERS_MAX {
            return Err(wrong("it has too many offers"));
        }
        let Document { accepts, resource, extensions, .. } = document;
        let mut offers: Vec<_> = accepts.into_iter().map(|raw| Offer::read(raw, network_of_v2)).collect();
        offers.sort_by_key(|offer| offer.as_ref().is_ok_and(|offer| offer.is_upfront));
        Ok(Some(Self { version: Version::V2 { resource, extensions }, offers }))
    }

    fn of_body(body: &[u8]) -> Result<Option<Self>, Failure> {
        let document: Option<Document> = serde_json::from_slice(body).ok();
        let Some(document) = document.filter(|document| document.version == 1) else { return Ok(None) };
        if document.accepts.len() > OFFERS_MAX {
            return Err(Failure::Failed("the service makes too many offers to read; nothing was paid".to_owned()));
        }
        let offers = document.accepts.into_iter().map(|raw| Offer::read(raw, chain_of_name)).collect();
        Ok(Some(Self { version: Version::V1, offers }))
    }
}

fn network_of_v2(text: &str) -> Option<u64> {
    text.parse::<Network>().ok().map(|network| network.0)
}

impl Offer {
    fn read(raw: Box<RawValue>, chain_id: impl Fn(&str) -> Option<u64>) -> Result<Self, String> {
        let Kind { scheme, network } = serde_json::from_str(raw.get()).map_err(|_| malformed("scheme and network"))?;
        if scheme != "exact" {
            return Err(format!("the scheme {scheme:?} is not supported"));
        }
        let chain_id = chain_id(&network).ok_or_else(|| format!("the network {network:?} is not supported"))?;
        let fields: Fields = serde_json::from_str(raw.get()).map_err(|_| malformed("its fields"))?;
        let extra = fields.extra.unwrap_or_default();
        if let Some(method) = extra.asset_transfer_method.filter(|method| method != "eip3009") {
            return Err(format!("the transfer method {method:?} is not supported"));
        }
        let is_upfront = extra.payment_flow.as_deref() == Some("upfront");
        if let Some(flow) = extra.payment_flow.filter(|flow| !matches!(flow.as_str(), "authorization" | "upfront")) {
            return Err(format!("the payment flow {flow:?} is not supported"));
        }
        let amount: TokenUnits = fields.amount.parse().map_err(|_| malformed("amount"))?;
        if amount == TokenUnits::ZERO {
            return Err(malformed("amount"));
        }
        Ok(Self {
            chain_id,
            network,
            asset: fields.asset.parse().map_err(|_| malformed("asset"))?,
            pay_to: fields.pay_to.parse().ok().filter(is_somebody).ok_or_else(|| malformed("payTo"))?,
            amount,
            timeout_seconds: fields.max_timeout_seconds,
            is_upfront,
            name: extra.name,
            version: extra.version,
            raw,
        })
    }
}

fn malformed(field: &str) -> String {
    format!("{field} cannot be read")
}

/// Tokens sent to the zero address are lost; most contracts refuse it.
fn is_somebody(address: &Address) -> bool {
    address.as_bytes() != &[0; 20]
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const USDC: &str = "0x036CbD53842c5426634e7929541eC2318f3dCF7e";
    const SHOP: &str = "0x209693Bc6afc0C5328bA36FaF03C514EF312287C";

    fn offer() -> Value {
        json!({"scheme": "exact", "network": "eip155:84532", "amount": "50000", "asset": USDC, "payTo": SHOP,
            "maxTimeoutSeconds": 300, "extra": {"name": "USDC", "version": "2"}})
    }

    fn header(document: &Value) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(PAYMENT_REQUIRED_HEADER, STANDARD.encode(document.to_string()).parse().unwrap());
        headers
    }

    fn with(field: &str, value: Value) -> Value {
        let mut offer = offer();
        *offer.pointer_mut(field).unwrap() = value;
        offer
    }

    #[test]
    fn offers_of_both_versions_are_read() {
        let document = json!({"x402Version": 2, "accepts": [offer()], "resource": {"url": "https://a/"}, "error": "e"});
        let offered = Offered::read(&header(&document), b"").unwrap().unwrap();
        let Version::V2 { resource, extensions } = &offered.version else { panic!("{offered:?}") };
        assert_eq!(resource.as_ref().unwrap().get(), r#"{"url":"https://a/"}"#);
        assert!(extensions.is_none());
        let read = offered.offers[0].as_ref().unwrap();
        assert_eq!((read.chain_id, read.amount.get(), read.timeout_seconds), (84_532, 50_000, 300));
        assert_eq!(read.raw.get(), offer().to_string(), "as it was written");

        let v1 = json!({"scheme": "exact", "network": "base-sepolia", "maxAmountRequired": "50000", "asset": USDC,
            "payTo": SHOP, "maxTimeoutSeconds": 60, "resource": "https://a/", "description": "", "extra": null});
        let body = json!({"x402Version": 1, "error": "insufficient_credits", "accepts": [v1]}).to_string();
        let offered = Offered::read(&HeaderMap::new(), body.as_bytes()).unwrap().unwrap();
        assert!(matches!(offered.version, Version::V1));
        assert_eq!(offered.offers[0].as_ref().unwrap().chain_id, 84_532);
    }

    #[test]
    fn an_entry_that_cannot_be_paid_does_not_spoil_the_others() {
        let table = [
            (with("/scheme", json!("upto")), "scheme \"upto\""),
            (with("/network", json!("solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp")), "network \"solana"),
            (with("/amount", json!(50_000)), "fields"),
            (with("/amount", json!("0")), "amount"),
            (with("/amount", json!("-1")), "amount"),
            (with("/amount", json!("1.5")), "amount"),
            (with("/asset", json!("0x12")), "asset"),
            (with("/payTo", json!("0x036cbD53842c5426634e7929541eC2318f3dCF7e")), "payTo"),
            (with("/payTo", json!("0x0000000000000000000000000000000000000000")), "payTo"),
            (with("/maxTimeoutSeconds", json!(1.5)), "fields"),
            (with("/maxTimeoutSeconds", json!(-1)), "fields"),
            (with("/extra", json!({"assetTransferMethod": "permit2"})), "permit2"),
            (with("/extra", json!({"paymentFlow": "escrow"})), "escrow"),
            (json!("exact"), "scheme and network"),
        ];
        let mut accepts: Vec<_> = table.iter().map(|(offer, _)| offer.clone()).collect();
        accepts.push(offer());
        let document = json!({"x402Version": 2, "accepts": accepts});
        let offered = Offered::read(&header(&document), b"").unwrap().unwrap();
        for (read, (offer, why)) in offered.offers.iter().zip(&table) {
            let error = read.as_ref().unwrap_err();
            assert!(error.contains(why), "{offer}: {error}");
        }
        assert!(offered.offers.last().unwrap().is_ok());
    }

    #[test]
    fn offers_that_are_charged_first_come_last() {
        let upfront = with("/extra", json!({"paymentFlow": "upfront"}));
        let document = json!({"x402Version": 2, "accepts": [upfront, offer(), with("/amount", json!("60000"))]});
        let offered = Offered::read(&header(&document), b"").unwrap().unwrap();
        let flows: Vec<_> = offered.offers.iter().map(|offer| offer.as_ref().unwrap().is_upfront).collect();
        assert_eq!(flows, [false, false, true]);
        assert_eq!(offered.offers[0].as_ref().unwrap().amount.get(), 50_000);
    }

    #[test]
    fn a_header_that_cannot_be_read_is_an_error_whatever_the_body_says() {
        let body = json!({"x402Version": 1, "accepts": []}).to_string();
        let mut long = HeaderMap::new();
        long.insert(PAYMENT_REQUIRED_HEADER, "A".repeat(HEADER_BYTES_MAX + 1).parse().unwrap());
        let mut url_safe = HeaderMap::new();
        url_safe.insert(PAYMENT_REQUIRED_HEADER, "e30_".parse().unwrap());
        let many = json!({"x402Version": 2, "accepts": vec![offer(); OFFERS_MAX + 1]});
        for headers in [
            long,
            url_safe,
            header(&json!({"x402Version": 1, "accepts": [offer()]})),
            header(&json!({"x402Version": 2})),
            header(&json!([])),
            header(&many),
        ] {
            assert!(Offered::read(&headers, body.as_bytes()).is_err(), "{headers:?}");
        }
    }

    #[test]
    fn a_402_without_offers_offers_nothing() {
        for body in ["", "<html>", "{}", r#"{"x402Version": 2, "accepts": []}"#, r#"{"error": "insufficient_credits"}"#]
        {
            assert!(Offered::read(&HeaderMap::new(), body.as_bytes()).unwrap().is_none(), "{body}");
        }
    }
}
