//! A snapshot of the plan that a purchase bought, for the receipt.

use crate::money::credits::Credits;
use crate::payments::plan::Plan;

/// A plan as it was sold. Plans may change or be removed later; receipts must not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SoldPlan {
    /// The plan's name for people.
    pub label: String,
    /// The bonus in the credits; `None` for a purchase from before bonuses were stored.
    pub bonus_credits: Option<Credits>,
    /// The token's symbol.
    pub token_symbol: String,
    /// How many decimals the token has.
    pub token_decimals: u8,
}

impl SoldPlan {
    /// A plan that is sold now, with a bonus of `bonus_credits`.
    #[must_use]
    pub fn of(plan: &Plan, bonus_credits: Credits) -> Self {
        Self {
            label: plan.label.clone(),
            bonus_credits: Some(bonus_credits),
            token_symbol: plan.token_symbol.clone(),
            token_decimals: plan.token_decimals,
        }
    }
}
