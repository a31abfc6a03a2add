//! Chooses the offer to pay: the first one for a known token within the user's limits.

use metering_core::chains::TokenDomain;

use crate::client::paying::amount::Amount;
use crate::client::paying::offers::{Offer, Offered};
use crate::client::paying::tokens::{Token, Tokens};
use crate::failure::Failure;
use crate::table::printable;

/// An authorization must be valid for at least this long: the chain must execute it in that time.
const TIMEOUT_SECONDS_MIN: u64 = 10;

/// How many offers an error explains.
const EXPLAINED_MAX: usize = 4;

/// The limits on a payment for one call.
#[derive(Debug, Clone)]
pub(crate) struct Terms {
    /// The maximum cost of one call.
    pub(crate) max: Amount,
    /// Pay exactly this instead of the first offer.
    pub(crate) exactly: Option<Amount>,
    pub(crate) tokens: Tokens,
}

/// An offer to pay.
#[derive(Debug)]
pub(super) struct Chosen<'o> {
    pub(super) offer: &'o Offer,
    pub(super) token: &'o Token,
    pub(super) amount: Amount,
    /// The domain that the signature is bound to.
    pub(super) domain: TokenDomain,
}

/// The amounts of a 402 that can be paid, for a person to choose from: `0.05 USDC, 0.5 USDC`.
///
/// # Errors
/// When there are none.
pub(crate) fn list_offers(headers: &http::HeaderMap, body: &[u8], tokens: &Tokens) -> Result<String, Failure> {
    let nothing = || Failure::Failed("the service offers no payment by signature".to_owned());
    let offered = Offered::read(headers, body)?.ok_or_else(nothing)?;
    let terms = Terms { max: Amount::MAX, exactly: None, tokens: tokens.clone() };
    let payable = offered.offers.iter().flatten().filter_map(|offer| terms.check(offer).ok());
    let mut amounts: Vec<_> = payable.map(|chosen| format!("{} {}", chosen.amount, chosen.token.symbol)).collect();
    amounts.dedup();
    if amounts.is_empty() { terms.choose(&offered).map(|_| String::new()) } else { Ok(amounts.join(", ")) }
}

/// Why an offer was not chosen.
enum Unpaid {
    /// It costs more than is allowed.
    TooMuch(String),
    Other(String),
}

impl Terms {
    /// The first offer to pay.
    ///
    /// # Errors
    /// [`Failure::OverLimit`] when only the price is too high, [`Failure::NoCredits`] when no offer fits. Explains why
    /// each was not chosen.
    pub(super) fn choose<'o>(&'o self, offered: &'o Offered) -> Result<Chosen<'o>, Failure> {
        let (mut is_too_much, mut why) = (false, Vec::new());
        for offer in &offered.offers {
            let checked = offer.as_ref().map_err(|problem| Unpaid::Other(problem.clone()));
            match checked.and_then(|offer| self.check(offer)) {
                Ok(chosen) => return Ok(chosen),
                Err(Unpaid::TooMuch(problem)) => {
                    is_too_much = true;
                    why.push(problem);
                }
                Err(Unpaid::Other(problem)) => why.push(problem),
            }
        }
        let more = why.len().saturating_sub(EXPLAINED_MAX);
        why.truncate(EXPLAINED_MAX);
        if more > 0 {
            why.push(format!("and {more} more"));
        }
        let why = if why.is_empty() { "there are none".to_owned() } else { printable(&why.join("; ")) };
        let text =
            format!("the service asks for a payment, and none of its offers can be paid: {why}. Nothing was paid");
        Err(if is_too_much { Failure::OverLimit(text) } else { Failure::NoCredits(text) })
    }

    fn check<'o>(&'o self, offer: &'o Offer) -> Result<Chosen<'o>, Unpaid> {
        let other = |problem: String| Err(Unpaid::Other(problem));
        let (chain, asset) = (offer.chain_id, offer.asset.to_checksummed());
        let Some(token) = self.tokens.find(chain, offer.asset) else {
            return other(format!("the token {asset} on chain {chain} is not known (--token allows it)"));
        };
        let domain = match (&token.domain, &offer.name, &offer.version) {
            (Some((name, version)), theirs, their_version)
                if theirs.as_ref().is_none_or(|theirs| theirs == name)
                    && their_version.as_ref().is_none_or(|theirs| theirs == version) =>
            {
                (name.clone(), version.clone())
            }
            (Some(_), ..) => return other(format!("it names another token than {} at {asset}", token.symbol)),
            (None, Some(name), Some(version)) => (name.clone(), version.clone()),
            (None, ..) => return other(format!("it lacks the name and version of {asset}")),
        };
        if offer.timeout_seconds < TIMEOUT_SECONDS_MIN {
            return other(format!("it expires after {} s, too soon to be executed", offer.timeout_seconds));
        }
        let Some(amount) = Amount::of(offer.amount, token.decimals) else {
            return other(format!("its amount, {} units, is too large", offer.amount));
        };
        if let Some(exactly) = self.exactly.filter(|exactly| *exactly != amount) {
            return other(format!("{amount} {} is not {exactly}", token.symbol));
        }
        if amount > self.max {
            return Err(Unpaid::TooMuch(format!("{amount} {} is more than {}", token.symbol, self.max)));
        }
        let domain = TokenDomain { name: domain.0, version: domain.1, chain_id: chain, contract: offer.asset };
        Ok(Chosen { offer, token, amount, domain })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const USDC: &str = "0x036CbD53842c5426634e7929541eC2318f3dCF7e";
    const OTHER: &str = "0x1111111111111111111111111111111111111111";

    fn offer(chain: &str, asset: &str, amount: &str) -> Value {
        json!({"scheme": "exact", "network": chain, "maxAmountRequired": amount, "asset": asset,
            "payTo": "0x209693Bc6afc0C5328bA36FaF03C514EF312287C", "maxTimeoutSeconds": 60,
            "extra": {"name": "USDC", "version": "2"}})
    }

    fn offered(offers: &[Value]) -> Offered {
        let body = json!({"x402Version": 1, "accepts": offers}).to_string();
        Offered::read(&http::HeaderMap::new(), body.as_bytes()).unwrap().unwrap()
    }

    fn terms(max: &str, tokens: &[&str]) -> Terms {
        let tokens = Tokens::with(tokens.iter().map(|token| token.parse().unwrap()));
        Terms { max: max.parse().unwrap(), exactly: None, tokens }
    }

    #[test]
    fn the_first_offer_within_the_limit_is_chosen() {
        let offers = offered(&[
            offer("base", USDC, "1"),
            offer("base-sepolia", OTHER, "1"),
            offer("base-sepolia", USDC, "250001"),
            offer("base-sepolia", USDC, "250000"),
            offer("base-sepolia", USDC, "1"),
        ]);
        let terms = terms("0.25", &[]);
        let chosen = terms.choose(&offers).unwrap();
        assert_eq!((chosen.offer.amount.get(), chosen.amount.to_string()), (250_000, "0.25".to_owned()));
        assert_eq!((chosen.domain.name.as_str(), chosen.domain.chain_id), ("USDC", 84_532));
        let exactly = Terms { exactly: "0.000001".parse().ok(), ..terms.clone() };
        assert_eq!(exactly.choose(&offers).unwrap().offer.amount.get(), 1);
    }

    #[test]
    fn offers_that_cost_too_much_are_named() {
        let failure = terms("0.249999", &[]).choose(&offered(&[offer("base-sepolia", USDC, "250000")])).unwrap_err();
        assert!(matches!(&failure, Failure::OverLimit(text) if text.contains("0.25 USDC is more than 0.249999")));
    }

    #[test]
    fn only_tokens_with_a_known_price_are_paid() {
        let unknown = offered(&[offer("base-sepolia", OTHER, "1")]);
        let failure = terms("1", &[]).choose(&unknown).unwrap_err();
        assert!(matches!(&failure, Failure::NoCredits(text) if text.contains("is not known")), "{failure}");
        // The user's decimals determine the amount.
        let allowed = terms("1", &["84532:0x1111111111111111111111111111111111111111:0"]);
        assert_eq!(allowed.choose(&unknown).unwrap().amount, Amount::ONE);
        let two = offered(&[offer("base-sepolia", OTHER, "2")]);
        assert!(matches!(allowed.choose(&two), Err(Failure::OverLimit(_))));
    }

    #[test]
    fn misleading_offers_are_not_paid() {
        let with = |pointer: &str, value: Value| {
            let mut offer = offer("base-sepolia", USDC, "1");
            *offer.pointer_mut(pointer).unwrap() = value;
            offered(&[offer])
        };
        // change, error message
        let table = [
            (with("/extra/name", json!("Gold")), "another token"),
            (with("/extra/version", json!("1")), "another token"),
            (with("/maxTimeoutSeconds", json!(9)), "too soon"),
            (with("/maxAmountRequired", json!("340282366920938463463374607431768211455")), "too large"),
        ];
        for (offers, why) in table {
            let failure = terms("1", &[]).choose(&offers).unwrap_err();
            assert!(failure.to_string().contains(why), "{failure}");
        }
        // A token whose domain is not known cannot be signed for without it.
        let mut bare = offer("base-sepolia", OTHER, "1");
        bare["extra"] = json!(null);
        let allowed = terms("1", &["84532:0x1111111111111111111111111111111111111111:6"]);
        assert!(allowed.choose(&offered(&[bare])).unwrap_err().to_string().contains("lacks the name"));
        // A known one can.
        assert!(terms("1", &[]).choose(&with("/extra", json!(null))).is_ok());
        assert!(terms("1", &[]).choose(&offered(&[])).unwrap_err().to_string().contains("there are none"));
    }
}
