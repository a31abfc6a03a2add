//! Formats token amounts. The plans say what the token of a contract is called.

use std::fmt;

use metering_core::chains::{Address, TokenUnits};
use metering_core::payments::{PaymentTarget, Plan};

/// What the plans say about a token.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token<'a> {
    contract: Address,
    /// A plan that is paid with it; `None` if the plan was removed.
    plan: Option<&'a Plan>,
}

/// An amount of a token, for people.
#[derive(Debug)]
pub(super) struct Amount<'a>(TokenUnits, Token<'a>);

impl<'a> Token<'a> {
    pub(super) fn of(plans: &'a [Plan], target: &PaymentTarget) -> Self {
        let paid_with = |plan: &&Plan| plan.chain_id == target.chain_id && plan.token_contract == target.token;
        Self { contract: target.token, plan: plans.iter().find(paid_with) }
    }

    /// Its symbol, if a plan has it.
    pub(super) fn symbol(self) -> Option<&'a str> {
        self.plan.map(|plan| plan.token_symbol.as_str())
    }

    /// An amount in the token's display unit, if a plan says how many decimals it has.
    pub(super) fn human(self, units: TokenUnits) -> Option<String> {
        self.plan.map(|plan| units.to_human(plan.token_decimals))
    }

    /// An amount with its unit.
    pub(super) fn amount(self, units: TokenUnits) -> Amount<'a> {
        Amount(units, self)
    }
}

impl fmt::Display for Amount<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(units, token) = self;
        match (token.human(*units), token.symbol()) {
            (Some(amount), Some(symbol)) => write!(f, "{amount} {symbol}"),
            _ if token.contract == Address::ZERO => write!(f, "{units} units of the native coin"),
            _ => write!(f, "{units} units of token {}", token.contract),
        }
    }
}
