//! The amounts that can be paid with signed authorizations, for people, and the credits that such a payment bought.

use metering_core::money::Credits;
use metering_core::wire::{ChainDocument, PlansDocument};
use serde::Serialize;

use crate::offers::{Offer, Offers};
use crate::wire::x402::MAX_TIMEOUT_SECONDS;

/// The response to `GET /credits/offers`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OffersDocument {
    /// The amounts that can be paid, cheapest first; empty if the service offers nothing, or cannot read the tokens
    /// yet.
    pub offers: Vec<OfferDocument>,
    /// The chains that it is paid on.
    pub chains: Vec<ChainDocument>,
}

/// An amount of a token, and the credits that it buys.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OfferDocument {
    /// The chain it is paid on.
    pub chain_id: u64,
    /// The token's contract (EIP-55).
    pub token_contract: String,
    /// The token's symbol if a plan names it, or else its `name`.
    pub token_symbol: String,
    /// The name that its signatures are bound to (EIP-712).
    pub token_name: String,
    /// The version that its signatures are bound to.
    pub token_version: String,
    /// The amount in tokens, as a string.
    pub token_amount: String,
    /// The amount in the token's smallest unit, as a string.
    pub amount_atomic: String,
    /// Who is paid (EIP-55).
    pub recipient: String,
    /// Credits sold.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credits: Credits,
    /// For how many seconds to sign.
    pub max_timeout_seconds: u32,
}

/// The response to `POST /credits/pay`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BoughtResponse {
    /// The credits that the payment bought, now or when it was sent before.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credited: Credits,
    /// The balance now.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub balance: Credits,
    /// The transaction that executed the payment.
    pub transaction: Option<PaidTransaction>,
    /// The number of its receipt.
    pub receipt_number: Option<String>,
}

/// A transaction that executed a payment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PaidTransaction {
    /// The chain's id (EIP-155).
    pub chain: u64,
    /// Its hash.
    pub hash: String,
}

impl OffersDocument {
    /// Lists `offers`, with chains and symbols from `plans`.
    #[must_use]
    pub fn new(offers: &Offers, plans: &PlansDocument) -> Self {
        let is_used = |chain: &&ChainDocument| offers.iter().any(|offer| offer.network().0 == chain.chain_id);
        Self {
            offers: offers.iter().map(|offer| OfferDocument::new(offer, plans)).collect(),
            chains: plans.chains.iter().filter(is_used).cloned().collect(),
        }
    }
}

impl OfferDocument {
    fn new(offer: &Offer, plans: &PlansDocument) -> Self {
        let (domain, contract) = (&offer.asset.domain, offer.asset.domain.contract.to_string());
        let plan = plans.plans.iter().find(|plan| plan.chain_id == domain.chain_id && plan.token_contract == contract);
        Self {
            chain_id: domain.chain_id,
            token_contract: domain.contract.to_checksummed(),
            token_symbol: plan.map_or_else(|| domain.name.clone(), |plan| plan.token_symbol.clone()),
            token_name: domain.name.clone(),
            token_version: domain.version.clone(),
            token_amount: offer.amount.to_human(offer.asset.decimals),
            amount_atomic: offer.amount.get().to_string(),
            recipient: offer.pay_to.to_checksummed(),
            credits: offer.credits,
            max_timeout_seconds: MAX_TIMEOUT_SECONDS,
        }
    }
}
