//! The plans on sale.

use serde::Serialize;

use crate::catalogue::{Catalogue, Route};
use crate::chains::chain::Chain;
use crate::money::credits::{ATOMS_PER_CREDIT, Credits};
use crate::payments::plan::{PaymentKind, Plan};
use crate::wire::checkout::CardPlanDocument;

/// The response to `GET /credits/plans`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PlansDocument {
    /// Plans on sale, in the order of display.
    pub plans: Vec<PlanDocument>,
    /// Plans that are paid by card, with `POST /credits/checkout`. Absent if the service takes no cards.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cards: Vec<CardPlanDocument>,
    /// The chains they are paid on.
    pub chains: Vec<ChainDocument>,
    /// URL of the terms.
    pub terms_url: String,
    /// Version of the terms that applies.
    pub terms_version: String,
    /// The first chain's id; null when no chain is configured.
    pub primary_chain_id: Option<u64>,
    /// The address to pay on the first chain (EIP-55); null when no chain is configured.
    pub primary_recipient: Option<String>,
    /// The first chain's public RPC URL; null when no chain is configured.
    pub primary_rpc_url: Option<String>,
    /// The value of a credit in requests.
    pub epoch_unit: EpochUnit,
}

/// A plan on sale.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PlanDocument {
    /// The plan's name, unique on its chain.
    pub id: String,
    /// The chain it is paid on.
    pub chain_id: u64,
    /// The token's symbol.
    pub token_symbol: String,
    /// How to pay it.
    pub payment_kind: PaymentKind,
    /// Credits sold.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credits: Credits,
    /// Credits added on top.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub bonus_credits: Credits,
    /// What its credits with the bonus buy, in plain words. Each text is an alternative, such as `1,000 searches` and
    /// `about 330 reports`. Empty when no route has a price.
    pub buys: Vec<String>,
    /// The price in tokens, as a string.
    pub token_amount: String,
    /// The token's contract, in lower case; the zero address for the native coin.
    pub token_contract: String,
    /// The token's decimals.
    pub token_decimals: u8,
    /// The plan's name for people.
    pub label: String,
    /// A sentence about it.
    pub description: String,
    /// The name of a special offer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offer: Option<String>,
    /// The discount from the regular price, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discount_percent: Option<u8>,
    /// Always true: other plans are not listed.
    pub active: bool,
    /// The address to pay (EIP-55).
    pub recipient: String,
    /// A public RPC URL of the chain; empty when there is none to recommend.
    pub rpc_url: String,
}

/// A chain that plans are paid on.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ChainDocument {
    /// The chain's id (EIP-155).
    pub chain_id: u64,
    /// Its name.
    pub name: String,
    /// A public RPC URL; empty when there is none to recommend.
    pub rpc_url: String,
    /// The address to pay (EIP-55).
    pub recipient: String,
    /// How many confirmations a payment needs to be credited: configured, or derived from the chain's measured block
    /// time.
    pub confirmations: u32,
    /// A block explorer for the chain, without a trailing slash; empty when none is known. A transaction's page is
    /// `/tx/` and its hash.
    pub explorer_url: String,
}

/// The value of a credit in requests of weight 1.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EpochUnit {
    /// The price of a request of weight 1.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credits_per_epoch: Credits,
    /// Requests of weight 1 per credit.
    pub epochs_per_credit: i64,
    /// The same price in words.
    pub note: String,
}

impl PlansDocument {
    /// Lists the active plans of `plans` whose chain is configured, and what they buy from `catalogue`. `most_used` are
    /// its routes that customers use most.
    #[must_use]
    pub fn new(
        plans: &[Plan],
        chains: &[Chain],
        catalogue: &Catalogue,
        most_used: &[&Route],
        terms_url: &str,
        terms_version: &str,
    ) -> Self {
        let primary = chains.first();
        let on_sale = plans.iter().filter(|plan| plan.active).filter_map(|plan| {
            let chain = chains.iter().find(|chain| chain.chain_id == plan.chain_id)?;
            Some(PlanDocument::new(plan, chain, catalogue, most_used))
        });
        Self {
            plans: on_sale.collect(),
            cards: Vec::new(),
            chains: chains.iter().map(ChainDocument::from).collect(),
            terms_url: terms_url.to_owned(),
            terms_version: terms_version.to_owned(),
            primary_chain_id: primary.map(|chain| chain.chain_id),
            primary_recipient: primary.map(|chain| chain.recipient.to_checksummed()),
            primary_rpc_url: primary.map(|chain| chain.public_rpc_url.clone()),
            epoch_unit: EpochUnit {
                credits_per_epoch: Credits::BASE_CALL,
                epochs_per_credit: ATOMS_PER_CREDIT / Credits::BASE_CALL.atoms(),
                note: "One credit pays for 7200 requests of weight 1. A request of weight w costs w/7200 credit."
                    .to_owned(),
            },
        }
    }
}

impl PlanDocument {
    fn new(plan: &Plan, chain: &Chain, catalogue: &Catalogue, most_used: &[&Route]) -> Self {
        let credits = plan.credits.checked_add(plan.bonus_credits).unwrap_or(plan.credits);
        Self {
            id: plan.id.clone(),
            chain_id: plan.chain_id,
            token_symbol: plan.token_symbol.clone(),
            payment_kind: plan.payment_kind,
            credits: plan.credits,
            bonus_credits: plan.bonus_credits,
            buys: catalogue.buys(credits, most_used),
            token_amount: plan.token_amount.to_string(),
            token_contract: plan.token_contract.to_string(),
            token_decimals: plan.token_decimals,
            label: plan.label.clone(),
            description: plan.description.clone(),
            offer: plan.offer.clone(),
            discount_percent: plan.discount_percent,
            active: plan.active,
            recipient: plan.recipient.unwrap_or(chain.recipient).to_checksummed(),
            rpc_url: chain.public_rpc_url.clone(),
        }
    }
}

impl From<&Chain> for ChainDocument {
    fn from(chain: &Chain) -> Self {
        Self {
            chain_id: chain.chain_id,
            name: chain.name.clone(),
            rpc_url: chain.public_rpc_url.clone(),
            recipient: chain.recipient.to_checksummed(),
            confirmations: chain.confirmations,
            explorer_url: chain.explorer_url.clone(),
        }
    }
}
