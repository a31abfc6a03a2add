//! The offers of a 402.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::offers::{Offers, UsageOffer};
use crate::wire::fields::Base64;
use crate::wire::x402::bazaar::BAZAAR_EXTENSION;
use crate::wire::x402::identifier::PAYMENT_IDENTIFIER_EXTENSION;
use crate::wire::x402::requirements::Requirements;
use crate::wire::x402::resource::Resource;
use crate::wire::x402::sign_in::SIGN_IN_EXTENSION;

/// The longest header value to send, in bytes. Node refuses responses with more than 16 KiB of headers, and clients
/// send back all extensions in a request header, for which proxies such as nginx have 8 KiB.
pub const MAX_PAYMENT_REQUIRED_BYTES: usize = 6 * 1_024;

/// Which extensions a header loses first when it is too long. All others are in between.
const DROPPED_FIRST: &str = BAZAAR_EXTENSION;
const DROPPED_LAST: [&str; 2] = [PAYMENT_IDENTIFIER_EXTENSION, SIGN_IN_EXTENSION];

/// The offers of a 402: the document of [`PAYMENT_REQUIRED_HEADER`](metering_core::wire::PAYMENT_REQUIRED_HEADER), and the
/// structured content of an MCP result.
///
/// It has no nulls and no empty fields, and its numbers are integers, because some clients refuse all offers otherwise.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PaymentRequired {
    #[serde(rename = "x402Version")]
    version: u8,
    error: String,
    resource: Resource,
    accepts: Vec<Requirements>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    extensions: Map<String, Value>,
}

impl PaymentRequired {
    /// Makes the document, with the cheapest offer first. `error` is a code or a sentence. `extensions` has the results
    /// of this module's functions by name: objects with `info` and `schema`. A client that finds one without them
    /// ignores all.
    ///
    /// The usage offers follow: a client that takes the first one that it can pay then pays a fixed amount.
    ///
    /// `None` if there is no offer: clients refuse an empty list, so such a 402 is sent without the header.
    #[must_use]
    pub fn new(
        offers: &Offers,
        usage: &[UsageOffer],
        resource: Resource,
        error: impl Into<String>,
        extensions: Map<String, Value>,
    ) -> Option<Self> {
        let accepts: Vec<_> =
            offers.iter().map(Requirements::from).chain(usage.iter().map(Requirements::from)).collect();
        (!accepts.is_empty()).then(|| Self { version: 2, error: error.into(), resource, accepts, extensions })
    }

    /// The value of the header: base64 with padding.
    ///
    /// If it would be longer than [`MAX_PAYMENT_REQUIRED_BYTES`], it loses first the extension for catalogues, then the
    /// others, then the description, then the most expensive offers, except the cheapest one.
    #[must_use]
    pub fn header(&self) -> String {
        let mut document = self.clone();
        let mut header = Base64::Standard.encode_json(&document);
        while header.len() > MAX_PAYMENT_REQUIRED_BYTES && document.shorten() {
            header = Base64::Standard.encode_json(&document);
        }
        header
    }

    /// The document as JSON: `structuredContent` of a result of MCP (`specs/transports-v2/mcp.md`).
    ///
    /// # Panics
    /// Never: every key is text.
    #[must_use]
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).expect("every key is text")
    }

    /// Removes the part that clients need least; `false` if nothing is left to remove.
    fn shorten(&mut self) -> bool {
        let others = self.extensions.keys().find(|name| !DROPPED_LAST.contains(&name.as_str())).cloned();
        let first = self.extensions.contains_key(DROPPED_FIRST).then(|| DROPPED_FIRST.to_owned());
        let last = || DROPPED_LAST.into_iter().find(|name| self.extensions.contains_key(*name)).map(str::to_owned);
        if let Some(name) = first.or(others).or_else(last) {
            self.extensions.remove(&name);
        } else if !self.resource.description.is_empty() {
            self.resource.description.clear();
        } else if self.accepts.len() > 1 {
            self.accepts.pop();
        } else {
            return false;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::wire::vectors::{decoded, offers, resource, vector};

    fn with_extensions(names: &[(&str, usize)]) -> PaymentRequired {
        let extension = |size: usize| json!({"info": {"text": "x".repeat(size)}, "schema": {}});
        let extensions = names.iter().map(|(name, size)| ((*name).to_owned(), extension(*size))).collect();
        PaymentRequired::new(&offers(), &[], resource(), "insufficient_credits", extensions).unwrap()
    }

    /// The extensions that are left in the header.
    fn left(required: &PaymentRequired) -> Vec<String> {
        let header = required.header();
        assert!(header.len() <= MAX_PAYMENT_REQUIRED_BYTES, "{}", header.len());
        let document = decoded(&header);
        document["extensions"].as_object().map_or_else(Vec::new, |map| map.keys().cloned().collect())
    }

    #[test]
    fn the_document_is_the_one_of_the_reference_encoder() {
        for file in ["server-messages", "x402-v2-fetch"] {
            let vector = vector(file);
            let recorded = &vector["payment_required"];
            let mut expected = recorded.clone();
            // The vectors are older than payment flows.
            for offer in expected["accepts"].as_array_mut().unwrap() {
                offer["extra"]["paymentFlow"] = json!("upfront");
            }
            let extensions = expected["extensions"].as_object().unwrap().clone();
            let error = expected["error"].as_str().unwrap();
            let required = PaymentRequired::new(&offers(), &[], resource(), error, extensions).unwrap();
            assert_eq!(required.to_value(), expected);
            assert_eq!(decoded(&required.header()), expected);
            assert_eq!(&decoded(vector["payment_required_header"].as_str().unwrap()), recorded);
        }
    }

    #[test]
    fn offers_for_usage_come_last_and_are_as_a_published_client_signs_them() {
        let expected = &vector("x402-v2-upto")["payment_required"]["accepts"][0];
        let most = offers().iter().next().unwrap().for_credits("0.02".parse().unwrap()).unwrap();
        let usage = [UsageOffer { most, facilitator: metering_core::chains::Address::from_bytes([0x99; 20]) }];
        let required = PaymentRequired::new(&offers(), &usage, resource(), "payment_required", Map::new()).unwrap();
        let document = required.to_value();
        let mut last = document["accepts"].as_array().unwrap().last().unwrap().clone();
        assert_eq!(last["extra"].as_object_mut().unwrap().remove("paymentFlow"), Some(json!("authorization")));
        assert_eq!(&last, expected);
        assert_eq!(document["accepts"][0]["scheme"], "exact");
    }

    #[test]
    fn nothing_is_null_and_no_offer_is_no_document() {
        let required = with_extensions(&[]).to_value();
        assert_eq!(required.get("extensions"), None);
        assert!(!required.to_string().contains("null"), "{required}");
        assert_eq!(PaymentRequired::new(&Offers::default(), &[], resource(), "e", Map::new()), None);
    }

    #[test]
    fn a_long_header_loses_extensions_in_order() {
        let (id, sign_in) = ("payment-identifier", "sign-in-with-x");
        let all = |size| with_extensions(&[("bazaar", size), ("zzz", 100), (id, 100), (sign_in, 100)]);
        assert_eq!(left(&all(100)), ["bazaar", id, sign_in, "zzz"]);
        assert_eq!(left(&all(5_000)), [id, sign_in, "zzz"]);
        assert_eq!(left(&with_extensions(&[("bazaar", 9), ("zzz", 5_000), (id, 9), (sign_in, 9)])), [id, sign_in]);
        assert_eq!(left(&with_extensions(&[(id, 9), (sign_in, 5_000)])), [""; 0]);
        assert_eq!(left(&with_extensions(&[(id, 5_000), (sign_in, 9)])), [sign_in]);
    }

    #[test]
    fn a_long_header_keeps_the_cheapest_offer() {
        let many: Vec<_> = (0..20).flat_map(|_| offers().iter().cloned().collect::<Vec<_>>()).collect();
        let long = Resource { description: "long ".repeat(1_000), ..resource() };
        let required = PaymentRequired::new(&Offers::new(many), &[], long, "e", Map::new()).unwrap();
        assert!(required.header().len() <= MAX_PAYMENT_REQUIRED_BYTES);
        let document = decoded(&required.header());
        assert_eq!(document["resource"]["description"], "");
        assert_eq!(document["accepts"][0]["amount"], "50000");
        assert!(document["accepts"].as_array().unwrap().len() > 1);
        let endless = Resource { url: format!("https://x/{}", "y".repeat(9_000)), ..resource() };
        let required = PaymentRequired::new(&offers(), &[], endless, "e", Map::new()).unwrap();
        assert_eq!(decoded(&required.header())["accepts"].as_array().unwrap().len(), 1);
    }
}
