//! Version 1: offers in the body of a 402, and payments in `X-PAYMENT`.
//!
//! Its strictest client refuses a whole list for one entry that it cannot read. So networks are left out unless every
//! client has the same name and id for them.

mod network;
mod payload;

use metering_core::chains::TokenUnits;
use metering_core::wire::PayableMembers;
use serde::Serialize;

use crate::offers::{Offer, Offers};
use crate::wire::x402::requirements::{Domain, MAX_TIMEOUT_SECONDS, SCHEME};
use crate::wire::x402::resource::Resource;

pub use network::network_name_v1;
pub use payload::PaymentPayloadV1;

/// The offers of a 402 for clients of version 1: two fields to add to the body, which must have its `error` as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PaymentRequiredV1 {
    /// 1. Offers of version 2 are in the header `PAYMENT-REQUIRED`.
    #[serde(rename = "x402Version")]
    version: u8,
    /// The offers, cheapest first.
    accepts: Vec<RequirementsV1>,
}

/// An offer: `PaymentRequirements` of version 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RequirementsV1 {
    /// `exact`.
    scheme: &'static str,
    /// The chain's name, such as `base`.
    network: &'static str,
    /// The amount to pay, in units of the token.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    max_amount_required: TokenUnits,
    /// The URL that was called.
    resource: String,
    /// What it is.
    description: String,
    /// The media type of its responses.
    mime_type: String,
    /// Who is paid.
    pay_to: String,
    /// How long an authorization may be valid.
    max_timeout_seconds: u32,
    /// The token's contract.
    asset: String,
    /// The domain that its signatures are bound to (EIP-712).
    extra: Domain,
}

impl PaymentRequiredV1 {
    /// The offers whose network has a name in version 1, cheapest first. `None` if there is none: then the body has
    /// neither field.
    #[must_use]
    pub fn new(offers: &Offers, resource: &Resource) -> Option<Self> {
        let accepts: Vec<_> = offers.iter().filter_map(|offer| RequirementsV1::new(offer, resource)).collect();
        (!accepts.is_empty()).then_some(Self { version: 1, accepts })
    }

    /// Its members, for the body of an error.
    #[must_use]
    pub fn members(&self) -> PayableMembers {
        let members = PayableMembers::default().with("x402Version", &self.version);
        members.and_then(|members| members.with("accepts", &self.accepts)).expect("offers have text keys and no floats")
    }
}

impl RequirementsV1 {
    /// This offer, if its network has a name in version 1.
    #[must_use]
    pub fn new(offer: &Offer, resource: &Resource) -> Option<Self> {
        let domain = &offer.asset.domain;
        Some(Self {
            scheme: SCHEME,
            network: network_name_v1(domain.chain_id)?,
            max_amount_required: offer.amount,
            resource: resource.url.clone(),
            description: resource.description.clone(),
            mime_type: resource.mime_type.clone(),
            pay_to: offer.pay_to.to_checksummed(),
            max_timeout_seconds: MAX_TIMEOUT_SECONDS,
            asset: network::asset_text(domain.chain_id, domain.contract),
            extra: domain.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::vectors::{offer, offers, resource, vector};

    #[test]
    fn the_body_is_that_of_the_reference() {
        for file in ["server-messages", "x402-v2-fetch"] {
            let vector = vector(file);
            let body = vector.get("v1_body").unwrap_or(&vector["body"]);
            let cheapest = Offers::new(vec![offers().iter().next().unwrap().clone()]);
            let document = serde_json::to_value(PaymentRequiredV1::new(&cheapest, &resource()).unwrap()).unwrap();
            assert_eq!(document["accepts"], body["accepts"]);
            assert_eq!(document["x402Version"], body["x402Version"]);
        }
    }

    #[test]
    fn only_networks_that_all_clients_know_are_offered() {
        let usdc = "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48";
        let mixed = Offers::new(vec![offer(1, usdc, "0.05"), offer(8_453, usdc, "0.5"), offer(1_514, usdc, "0.06")]);
        let document = serde_json::to_value(PaymentRequiredV1::new(&mixed, &resource()).unwrap()).unwrap();
        let accepts = document["accepts"].as_array().unwrap();
        assert_eq!((accepts.len(), &accepts[0]["network"]), (1, &"base".into()));
        assert_eq!(PaymentRequiredV1::new(&Offers::new(vec![offer(1, usdc, "0.05")]), &resource()), None);
        assert_eq!(PaymentRequiredV1::new(&Offers::default(), &resource()), None);
    }
}
