//! An offer as x402 version 2 writes it.

use metering_core::chains::TokenDomain;
use metering_core::chains::TokenUnits;
use serde::Serialize;

use crate::offers::{Offer, UsageOffer};

/// How long authorizations should be valid, in seconds: just long enough to be executed.
pub const MAX_TIMEOUT_SECONDS: u32 = 300;

/// How long permits for usage should be valid, in seconds: the request must have ended, and its payment must be executed.
pub const UPTO_TIMEOUT_SECONDS: u32 = 3_600;

/// The usual scheme: a signed transfer of exactly the amount.
pub(super) const SCHEME: &str = "exact";
/// Its payment flow (`specs/x402-specification-v2.md`, "Payment Flow Models"): a payment buys credits, and
/// the request is served with them.
pub(super) const PAYMENT_FLOW: &str = "upfront";
/// Its transfer method, which is its default: EIP-3009.
pub(super) const TRANSFER_METHOD: &str = "eip3009";
/// The scheme of payments for usage: a permit to transfer at most the amount (`specs/schemes/upto/scheme_upto_evm.md`).
pub(super) const UPTO_SCHEME: &str = "upto";
/// Its payment flow, which is the default: it is charged after the work.
pub(super) const UPTO_PAYMENT_FLOW: &str = "authorization";
/// Its only transfer method.
pub(super) const UPTO_TRANSFER_METHOD: &str = "permit2";

/// An offer: `PaymentRequirements` of x402 version 2. Every field depends on the offer alone, so a client can send it
/// back unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Requirements {
    scheme: &'static str,
    network: String,
    amount: TokenUnits,
    asset: String,
    pay_to: String,
    max_timeout_seconds: u32,
    extra: Extra,
}

/// How an offer is signed, and when it is charged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Extra {
    #[serde(flatten)]
    domain: Domain,
    /// With `upfront`, payments are settled before their request is served. Without it, clients expect to be charged
    /// afterwards.
    payment_flow: &'static str,
    /// With `upto`: the facilitator that executes it. Clients sign it.
    #[serde(skip_serializing_if = "Option::is_none")]
    facilitator_address: Option<String>,
}

/// The parts of the token's domain (EIP-712) that a client needs. Clients do not guess them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = TokenDomain))]
pub(super) struct Domain {
    /// The domain's name.
    name: String,
    /// The domain's version.
    version: String,
}

impl From<&TokenDomain> for Domain {
    fn from(domain: &TokenDomain) -> Self {
        Self { name: domain.name.clone(), version: domain.version.clone() }
    }
}

impl From<&Offer> for Requirements {
    fn from(offer: &Offer) -> Self {
        let domain = &offer.asset.domain;
        Self {
            scheme: SCHEME,
            network: offer.network().to_string(),
            amount: offer.amount,
            asset: domain.contract.to_checksummed(),
            pay_to: offer.pay_to.to_checksummed(),
            max_timeout_seconds: MAX_TIMEOUT_SECONDS,
            extra: Extra { domain: domain.into(), payment_flow: PAYMENT_FLOW, facilitator_address: None },
        }
    }
}

impl From<&UsageOffer> for Requirements {
    fn from(UsageOffer { most, facilitator }: &UsageOffer) -> Self {
        let facilitator_address = Some(facilitator.to_checksummed());
        Self {
            scheme: UPTO_SCHEME,
            max_timeout_seconds: UPTO_TIMEOUT_SECONDS,
            extra: Extra { domain: (&most.asset.domain).into(), payment_flow: UPTO_PAYMENT_FLOW, facilitator_address },
            ..Self::from(most)
        }
    }
}
