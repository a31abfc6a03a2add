//! Whether the books add up.

use metering_core::money::{Credits, printed};
use metering_core::store::{Discrepancy, Verification};
use serde::{Deserialize, Serialize};

use crate::wire::document::document;

document! {
    /// The result of a verification. The books add up if there are no discrepancies.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub struct VerificationDocument from found: &Verification;

    /// How many accounts were checked.
    accounts: u64 = found.accounts,
    /// Every amount that differs from the sum of ledger and usage.
    discrepancies: Vec<DiscrepancyDocument> = found.discrepancies.iter().map(Into::into).collect(),
    /// Budgets of keys (`key_spent`) whose period began again, so that less was taken from them than is booked in the
    /// period: a clock was set back by more than a day. No discrepancy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    restarted_budgets: Vec<DiscrepancyDocument> = found.restarted_budgets.iter().map(Into::into).collect(),
}

document! {
    /// An amount that differs from the sum of ledger and usage.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub struct DiscrepancyDocument from found: &Discrepancy;

    /// The account's id.
    org_id: String = found.account.to_string(),
    /// `balance`, `purchased`, `granted`, `used` or `held`; `key_spent` for the budget of a key.
    amount: String = found.amount.to_owned(),
    /// The amount in the account's record, in credits.
    #[serde(deserialize_with = "printed")]
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    recorded: Credits = found.recorded,
    /// The sum of ledger and usage, in credits.
    #[serde(deserialize_with = "printed")]
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    computed: Credits = found.computed,
}
