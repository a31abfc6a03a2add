//! An offer as x402 version 2 writes it.

use metering_core::chains::TokenDomain;
use metering_core::chains::TokenUnits;
use serde::Serialize;

use crate::offers::Offer;

/// How long authorizations should be valid, in seconds: just long enough to be executed.
pub const MAX_TIMEOUT_SECONDS: u32 = 300;

/// The only scheme on offer: a signed transfer of exactly the amount.
pub(super) const SCHEME: &str = "exact";
/// The only payment flow on offer (`specs/x402-specification-v2.md`, "Payment Flow Models"): a payment buys credits, and
/// the request is served with them.
pub(super) const PAYMENT_FLOW: &str = "upfront";
/// The only transfer method on offer, and the default of [`SCHEME`]: EIP-3009.
pub(super) const TRANSFER_METHOD: &str = "eip3009";

/// An offer: `PaymentRequirements` of x402 version 2. Every field depends on the offer alone, so that a client can send
/// it back unchanged.
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
    /// Payments are settled before their request is served. Without it, clients expect to be charged afterwards.
    payment_flow: &'static str,
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
            extra: Extra { domain: domain.into(), payment_flow: PAYMENT_FLOW },
        }
    }
}
