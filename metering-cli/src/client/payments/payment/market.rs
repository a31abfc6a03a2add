//! The plans on sale, with the fields that a payer needs.

use metering_client::Client;
use metering_core::chains::Address;
use metering_core::payments::{PaymentKind, TokenAmount};
use serde::Deserialize;

use crate::client::money::amount::Amount;
use crate::failure::Failure;

/// The response to `GET /credits/plans`.
#[derive(Debug, Deserialize)]
pub(crate) struct Market {
    plans: Vec<Offer>,
    chains: Vec<ChainOffer>,
}

/// A plan on sale.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Offer {
    pub(crate) id: String,
    pub(crate) chain_id: u64,
    pub(crate) token_symbol: String,
    pub(crate) payment_kind: PaymentKind,
    pub(crate) credits: Amount,
    pub(crate) bonus_credits: Amount,
    pub(crate) token_amount: TokenAmount,
    /// The zero address for the chain's native coin.
    pub(crate) token_contract: Address,
    pub(crate) token_decimals: u8,
    pub(crate) recipient: Address,
    /// A public RPC URL of the chain; empty if the service names none.
    #[serde(default)]
    pub(crate) rpc_url: String,
}

#[derive(Debug, Deserialize)]
struct ChainOffer {
    chain_id: u64,
    name: String,
    #[serde(default)]
    confirmations: u64,
}

impl Market {
    /// Requests the plans from the service.
    pub(crate) async fn fetch(client: &Client) -> Result<Self, Failure> {
        Ok(client.get("/credits/plans").await?.json()?)
    }

    /// The plan with this id; on this chain, if one is named by its id or name.
    pub(crate) fn offer(&self, plan: &str, chain: Option<&str>) -> Result<&Offer, Failure> {
        let of_chain = |offer: &&Offer| chain.is_none_or(|chain| self.is_called(offer.chain_id, chain));
        let found: Vec<_> = self.plans.iter().filter(|offer| offer.id == plan).filter(of_chain).collect();
        match found.as_slice() {
            [offer] => Ok(offer),
            [] => {
                let there = chain.map(|chain| format!(" on chain {chain}")).unwrap_or_default();
                let problem = format!("no plan {plan:?} is on sale{there}; `metering plans` lists all plans");
                Err(Failure::NotFound(problem))
            }
            several => {
                let chains: Vec<_> = several.iter().map(|offer| offer.chain_id.to_string()).collect();
                let problem =
                    format!("plan {plan:?} is sold on several chains; choose with --chain: {}", chains.join(", "));
                Err(Failure::Usage(problem))
            }
        }
    }

    /// How many confirmations a payment on that chain needs, according to the service.
    pub(crate) fn confirmations(&self, chain_id: u64) -> u64 {
        let chain = self.chains.iter().find(|chain| chain.chain_id == chain_id);
        chain.map_or(1, |chain| chain.confirmations.max(1))
    }

    /// The chain's name, or its id if it has none.
    pub(crate) fn chain_name(&self, chain_id: u64) -> String {
        let chain = self.chains.iter().find(|chain| chain.chain_id == chain_id && !chain.name.is_empty());
        chain.map_or_else(|| format!("chain {chain_id}"), |chain| format!("{} (chain {chain_id})", chain.name))
    }

    fn is_called(&self, chain_id: u64, text: &str) -> bool {
        let named = |chain: &ChainOffer| chain.chain_id == chain_id && chain.name.eq_ignore_ascii_case(text);
        text == chain_id.to_string() || self.chains.iter().any(named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn market() -> Market {
        let plan = |id: &str, chain_id: u64| {
            format!(
                r#"{{"id":"{id}","chain_id":{chain_id},"token_symbol":"ETH","payment_kind":"native_value","credits":4,
                "bonus_credits":0,"token_amount":"0.0025","token_decimals":18,
                "token_contract":"0x0000000000000000000000000000000000000000",
                "recipient":"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"}}"#
            )
        };
        let plans = [plan("coin", 1), plan("coin", 8453), plan("only", 1)].join(",");
        let chains = r#"{"chain_id":1,"name":"Ethereum","confirmations":12},{"chain_id":8453,"name":"base"}"#;
        serde_json::from_str(&format!(r#"{{"plans":[{plans}],"chains":[{chains}]}}"#)).unwrap()
    }

    #[test]
    fn plan_is_found_by_id_and_by_chain_if_ambiguous() {
        // plan, chain, chain id found or exit code
        let table = [
            ("only", None, Ok(1)),
            ("coin", None, Err(2)),
            ("coin", Some("1"), Ok(1)),
            ("coin", Some("ethereum"), Ok(1)),
            ("coin", Some("base"), Ok(8453)),
            ("only", Some("base"), Err(4)),
            ("none", None, Err(4)),
            ("coin", Some("2"), Err(4)),
        ];
        for (plan, chain, expected) in table {
            let market = market();
            let found = market.offer(plan, chain);
            let found = found.map(|offer| offer.chain_id).map_err(|failure| failure.exit_code());
            assert_eq!(found, expected, "{plan} {chain:?}");
        }
    }

    #[test]
    fn payment_needs_the_confirmations_of_the_service_and_at_least_one() {
        assert_eq!((market().confirmations(1), market().confirmations(8453), market().confirmations(5)), (12, 1, 1));
    }
}
