//! The offers of a 402: amounts of a token, and the credits that each buys.

use std::fmt;
use std::str::FromStr;

use metering_core::chains::Address;
use metering_core::chains::TokenDomain;
use metering_core::chains::TokenUnits;
use metering_core::money::Credits;
use metering_core::money::DecimalError;
use metering_core::offers::ExpectedTransfer;
use metering_core::payments::TokenAmount;
use rust_decimal::Decimal;

/// A token that can be paid with signed authorizations (EIP-3009).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Asset {
    /// Its chain, contract, and the domain that its signatures are bound to.
    pub domain: TokenDomain,
    /// Its decimals, as the contract reports them.
    pub decimals: u8,
}

/// An amount to pay, and the credits that it buys.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Offer {
    /// The token.
    pub asset: Asset,
    /// Who is paid.
    pub pay_to: Address,
    /// How many units of the token.
    pub amount: TokenUnits,
    /// How many credits that buys.
    pub credits: Credits,
}

/// Why amounts of a token cannot be offered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OfferError {
    /// The token has fewer decimals.
    #[error("{amount} has more decimal places than the token, which has {decimals}")]
    TooFine {
        /// The amount.
        amount: TokenAmount,
        /// The token's decimals.
        decimals: u8,
    },
    /// The credits cannot be represented exactly, are out of range, or are none.
    #[error("{amount} at {rate} credits per token is not an amount of credits: {problem}")]
    Credits {
        /// The amount.
        amount: TokenAmount,
        /// Credits per token.
        rate: Decimal,
        /// The problem.
        problem: DecimalError,
    },
}

impl Offer {
    /// Offers an amount of a token for `rate` credits per token.
    ///
    /// # Errors
    /// When the amount or its credits cannot be represented exactly, or the amount buys nothing.
    pub fn new(asset: Asset, pay_to: Address, amount: TokenAmount, rate: Decimal) -> Result<Self, OfferError> {
        let decimals = asset.decimals;
        let units = amount.to_units(decimals).ok_or(OfferError::TooFine { amount, decimals })?;
        let wrong = |problem| OfferError::Credits { amount, rate, problem };
        let credits = amount.value().checked_mul(rate).ok_or(DecimalError::OutOfRange).and_then(Credits::from_decimal);
        match credits.map_err(wrong)? {
            credits if credits.is_positive() => Ok(Self { asset, pay_to, amount: units, credits }),
            _ => Err(wrong(DecimalError::OutOfRange)),
        }
    }

    /// The same token at the same rate, for these credits; units are rounded up. `None` if that is zero or out of range.
    #[must_use]
    pub fn for_credits(&self, credits: Credits) -> Option<Self> {
        let atoms = |credits: Credits| u128::try_from(credits.atoms()).ok().filter(|atoms| *atoms > 0);
        let (wanted, bought) = (atoms(credits)?, atoms(self.credits)?);
        let (whole, rest) = (self.amount.get() / bought, self.amount.get() % bought);
        // Both factors of the second product are below 2^63.
        let amount = whole.checked_mul(wanted)?.checked_add((rest * wanted).div_ceil(bought))?;
        Some(Self { asset: self.asset.clone(), pay_to: self.pay_to, amount: TokenUnits::new(amount), credits })
    }

    /// The authorization that takes this offer.
    #[must_use]
    pub const fn expected(&self) -> ExpectedTransfer {
        ExpectedTransfer { to: self.pay_to, value: self.amount }
    }

    /// The chain as x402 and CAIP-2 name it: `eip155:8453`.
    #[must_use]
    pub fn network(&self) -> Network {
        Network(self.asset.domain.chain_id)
    }
}

/// An offer to pay for the usage of a request (the scheme `upto` of x402).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UsageOffer {
    /// The most that the request may cost.
    pub most: Offer,
    /// The facilitator that payments for usage are signed for: the wallet that pays the gas.
    pub facilitator: Address,
}

/// An EVM chain, written as in CAIP-2: `eip155:8453`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Network(pub u64);

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "eip155:{}", self.0)
    }
}

/// The text is not an EVM chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a chain as in CAIP-2, such as eip155:8453")]
pub struct NetworkError;

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let id = text.strip_prefix("eip155:").filter(|id| id.bytes().all(|byte| byte.is_ascii_digit()));
        id.and_then(|id| id.parse().ok()).map(Self).ok_or(NetworkError)
    }
}

/// Offers, cheapest first: stock clients pay the first one that they can.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Offers(Vec<Offer>);

impl Offers {
    /// No offers.
    pub const NONE: Self = Self(Vec::new());

    /// These offers. Equal offers, such as the same price in two tokens, keep their order.
    #[must_use]
    pub fn new(mut offers: Vec<Offer>) -> Self {
        offers.sort_by_key(|offer| offer.credits);
        Self(offers)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The offers, cheapest first.
    pub fn iter(&self) -> impl Iterator<Item = &Offer> {
        self.0.iter()
    }

    /// The offers that buy at least this many credits, or, if there is none, the one that buys most.
    #[must_use]
    pub fn covering(&self, missing: Credits) -> Self {
        let covering: Vec<_> = self.iter().filter(|offer| offer.credits >= missing).cloned().collect();
        if covering.is_empty() { Self(self.0.last().cloned().into_iter().collect()) } else { Self(covering) }
    }

    /// The offer of this amount of a token.
    #[must_use]
    pub fn find(&self, chain_id: u64, token: Address, amount: TokenUnits) -> Option<&Offer> {
        let is_it = |offer: &&Offer| {
            let domain = &offer.asset.domain;
            (domain.chain_id, domain.contract, offer.amount) == (chain_id, token, amount)
        };
        self.iter().find(is_it)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAY_TO: Address = Address::from_bytes([9; 20]);

    fn asset(chain_id: u64, decimals: u8) -> Asset {
        let contract = Address::from_bytes([1; 20]);
        let domain = TokenDomain { name: "USDC".to_owned(), version: "2".to_owned(), chain_id, contract };
        Asset { domain, decimals }
    }

    fn offer(amount: &str, rate: &str) -> Result<Offer, OfferError> {
        Offer::new(asset(8_453, 6), PAY_TO, TokenAmount::parse(amount).unwrap(), rate.parse().unwrap())
    }

    #[test]
    fn an_amount_buys_exactly_what_the_rate_says() {
        // amount, credits per token, units, credits
        let table = [
            ("0.05", "1", 50_000, "0.05"),
            ("0.5", "2.5", 500_000, "1.25"),
            ("1", "0.00000001", 1_000_000, "0.00000001"),
        ];
        for (amount, rate, units, credits) in table {
            let offer = offer(amount, rate).unwrap();
            assert_eq!((offer.amount, offer.credits), (TokenUnits::new(units), credits.parse().unwrap()));
            assert_eq!(offer.expected(), ExpectedTransfer { to: PAY_TO, value: offer.amount });
        }
    }

    #[test]
    fn what_cannot_be_exact_is_not_offered() {
        let too_fine = offer("0.0000001", "1");
        assert!(matches!(too_fine, Err(OfferError::TooFine { decimals: 6, .. })), "{too_fine:?}");
        for rate in ["0.00000000001", "0", "-1", "99999999999999999999"] {
            let refused = offer("0.05", rate);
            assert!(matches!(refused, Err(OfferError::Credits { .. })), "{rate}: {refused:?}");
        }
        let text = offer("0.05", "0").unwrap_err().to_string();
        assert!(text.starts_with("0.05 at 0 credits per token"), "{text}");
    }

    #[test]
    fn any_credits_are_sold_at_the_same_rate_and_rounded_up() {
        // amount, rate, credits, units
        let table = [
            ("0.05", "1", "0.02", Some(20_000)),
            ("0.05", "1", "0.05", Some(50_000)),
            ("0.05", "1", "0.0200001", Some(20_001)),
            ("0.05", "3", "0.01", Some(3_334)),
            ("0.05", "1", "0.00000001", Some(1)),
            ("0.05", "1", "0", None),
        ];
        for (amount, rate, credits, units) in table {
            let offer = offer(amount, rate).unwrap();
            let sold = offer.for_credits(credits.parse().unwrap());
            assert_eq!(sold.as_ref().map(|sold| sold.amount.get()), units, "{amount} {rate} {credits}");
            assert!(sold.is_none_or(|sold| sold.credits == credits.parse().unwrap() && sold.asset == offer.asset));
        }
    }

    #[test]
    fn networks_are_read_as_they_are_written() {
        assert_eq!("eip155:8453".parse(), Ok(Network(8_453)));
        assert_eq!(Network(8_453).to_string().parse(), Ok(Network(8_453)));
        for text in
            ["", "8453", "eip155:", "eip155:-1", "eip155:+1", "eip155:1x", "solana:1", "eip155:99999999999999999999"]
        {
            assert_eq!(text.parse::<Network>(), Err(NetworkError), "{text}");
        }
    }

    #[test]
    fn offers_are_sorted_and_found_by_what_is_paid() {
        let offers =
            Offers::new(vec![offer("0.5", "1").unwrap(), offer("0.05", "1").unwrap(), offer("0.1", "0.5").unwrap()]);
        let amounts: Vec<_> = offers.iter().map(|offer| offer.amount.get()).collect();
        assert_eq!(amounts, [50_000, 100_000, 500_000], "the first of two for the same credits stays first");
        let token = Address::from_bytes([1; 20]);
        let find = |chain, token, units| offers.find(chain, token, TokenUnits::new(units)).map(|offer| offer.credits);
        assert_eq!(find(8_453, token, 500_000), "0.5".parse().ok());
        assert_eq!(find(8_453, token, 500_001), None);
        assert_eq!(find(84_532, token, 500_000), None);
        assert_eq!(find(8_453, PAY_TO, 500_000), None);
        let covering = |credits: &str| offers.covering(credits.parse().unwrap()).iter().count();
        assert_eq!((covering("0"), covering("0.05"), covering("0.06"), covering("9")), (3, 3, 1, 1));
        assert!(Offers::default().is_empty() && !offers.is_empty());
        assert_eq!(offers.iter().next().unwrap().network().to_string(), "eip155:8453");
    }
}
