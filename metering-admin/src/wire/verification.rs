//! Whether the books add up.

use metering_core::money::{Credits, printed};
use metering_core::store::{Discrepancy, Verification};
use serde::{Deserialize, Serialize};

/// The result of a verification. The books add up if there are no discrepancies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct VerificationDocument {
    /// How many accounts were checked.
    pub accounts: u64,
    /// Every amount that differs from the sum of ledger and usage.
    pub discrepancies: Vec<DiscrepancyDocument>,
    /// Budgets of keys (`key_spent`) whose period began again, so that less was taken from them than is booked in the
    /// period: a clock was set back by more than a day. No discrepancy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restarted_budgets: Vec<DiscrepancyDocument>,
}

/// An amount that differs from the sum of ledger and usage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DiscrepancyDocument {
    /// The account's id.
    pub org_id: String,
    /// `balance`, `purchased`, `granted`, `used` or `held`; `key_spent` for the budget of a key.
    pub amount: String,
    /// The amount in the account's record, in credits.
    #[serde(deserialize_with = "printed")]
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub recorded: Credits,
    /// The sum of ledger and usage, in credits.
    #[serde(deserialize_with = "printed")]
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub computed: Credits,
}

impl From<&Verification> for VerificationDocument {
    fn from(found: &Verification) -> Self {
        let documents = |found: &[Discrepancy]| found.iter().map(DiscrepancyDocument::from).collect();
        let restarted_budgets = documents(&found.restarted_budgets);
        Self { accounts: found.accounts, discrepancies: documents(&found.discrepancies), restarted_budgets }
    }
}

impl From<&Discrepancy> for DiscrepancyDocument {
    fn from(found: &Discrepancy) -> Self {
        let Discrepancy { account, amount, recorded, computed } = found;
        Self { org_id: account.to_string(), amount: (*amount).to_owned(), recorded: *recorded, computed: *computed }
    }
}
