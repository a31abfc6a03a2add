//! The names of tokens, and amounts of them for people. The plans name the token of a contract; a processor's payment
//! is in a currency.

use std::fmt;

use metering_core::chains::{Address, TokenUnits};
use metering_core::money::Currency;
use metering_core::payments::{PaymentTarget, Plan, ProcessorRef};

/// A token, and what the plans say about it.
///
/// ```
/// use metering_admin::payments::Token;
/// use metering_core::chains::TokenUnits;
/// use metering_core::payments::{PaymentTarget, Plan};
///
/// let plan: Plan = serde_json::from_str(
///     r#"{"id": "starter", "chain_id": 8453, "token_symbol": "USDC", "payment_kind": "erc20", "credits": 10,
///         "token_amount": "5", "token_contract": "0xc0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0",
///         "token_decimals": 6, "label": "Starter"}"#,
/// )?;
/// let recipient = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed".parse()?;
/// let target = PaymentTarget { chain_id: 8453, token: plan.token_contract, recipient };
/// let paid = TokenUnits::new(4_750_000);
/// assert_eq!(Token::of(std::slice::from_ref(&plan), &target).amount(paid).to_string(), "4.75 USDC");
/// // Without a plan that is paid in it, no one says how many decimals the token has.
/// assert!(Token::of(&[], &target).amount(paid).to_string().starts_with("4750000 units of token 0xc0c0"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Token<'a> {
    contract: Address,
    /// Its symbol and its decimals: those of a plan that is paid in it, or of the currency; `None` if every such plan was
    /// removed.
    unit: Option<(&'a str, u8)>,
}

/// An amount of a token, with its unit.
#[derive(Debug, Clone, Copy)]
pub struct NamedAmount<'a>(TokenUnits, Token<'a>);

impl<'a> Token<'a> {
    /// The token that is paid at a target.
    #[must_use]
    pub fn of(plans: &'a [Plan], target: &PaymentTarget) -> Self {
        let paid_with = |plan: &&Plan| plan.chain_id == target.chain_id && plan.token_contract == target.token;
        let of_plan = |plan: &'a Plan| (plan.token_symbol.as_str(), plan.token_decimals);
        let unit = if target.chain_id == ProcessorRef::CHAIN_ID {
            Currency::of_token(&target.token).map(|currency| (currency.code(), currency.decimals()))
        } else {
            plans.iter().find(paid_with).map(of_plan)
        };
        Self { contract: target.token, unit }
    }

    /// Its symbol, if known.
    #[must_use]
    pub fn symbol(self) -> Option<&'a str> {
        self.unit.map(|(symbol, _)| symbol)
    }

    /// Its symbol and decimals, if known.
    pub(super) const fn facts(self) -> Option<(&'a str, u8)> {
        self.unit
    }

    /// An amount in tokens, if the token's decimals are known.
    #[must_use]
    pub fn human(self, units: TokenUnits) -> Option<String> {
        self.unit.map(|(_, decimals)| units.to_human(decimals))
    }

    /// An amount with its unit.
    #[must_use]
    pub const fn amount(self, units: TokenUnits) -> NamedAmount<'a> {
        NamedAmount(units, self)
    }
}

impl fmt::Display for NamedAmount<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(units, token) = self;
        let human = token.human(*units);
        let named = human.as_deref().zip(token.symbol());
        f.write_str(&named_amount(named, &units.to_string(), &token.contract.to_string()))
    }
}

/// An amount with its unit: in tokens with their symbol, if both are known, or else in the smallest unit.
pub(crate) fn named_amount(named: Option<(&str, &str)>, units: &str, contract: &str) -> String {
    match named {
        Some((amount, symbol)) => format!("{amount} {symbol}"),
        None if contract.parse() == Ok(Address::ZERO) => format!("{units} units of the native coin"),
        None => format!("{units} units of token {contract}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn native_coin_without_a_plan_is_counted_in_its_smallest_unit() {
        let target = PaymentTarget { chain_id: 1, token: Address::ZERO, recipient: Address::ZERO };
        let token = Token::of(&[], &target);
        assert_eq!(token.amount(TokenUnits::new(7)).to_string(), "7 units of the native coin");
        assert_eq!((token.symbol(), token.human(TokenUnits::new(7))), (None, None));
    }
}
