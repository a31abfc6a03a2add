//! The usage of all accounts, for operators.

use metering_core::money::{Credits, printed};
use metering_core::usage::UsageReport;
use metering_core::wire::UsageTotals;
use serde::{Deserialize, Serialize};

/// A page of the usage of all accounts. Each account's totals are from one moment.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AccountsUsageDocument {
    /// Number of UTC days in the window, which ends today.
    pub window_days: u32,
    /// Accounts, oldest first, revoked ones too.
    pub accounts: Vec<AccountUsageDocument>,
    /// The cursor for the accounts that follow; absent when there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// The usage of an account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AccountUsageDocument {
    /// The account's id.
    pub org_id: String,
    /// Its name.
    pub agent_name: String,
    /// Credits left.
    #[serde(deserialize_with = "printed")]
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credit_balance: Credits,
    /// Sums over the window.
    pub totals: UsageTotals,
}

/// The usage of all accounts, as `metering admin usage --json` prints it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AllUsageDocument {
    /// Number of UTC days in the window, which ends today.
    pub window_days: u32,
    /// Sums over the window and all accounts.
    pub totals: UsageTotals,
    /// Accounts, oldest first, revoked ones too.
    pub accounts: Vec<AccountUsageDocument>,
}

impl AccountUsageDocument {
    /// The totals of a report; `None` when a sum is out of range.
    #[must_use]
    pub fn new(report: &UsageReport) -> Option<Self> {
        Some(Self {
            org_id: report.account.id.to_string(),
            agent_name: report.account.agent_name.to_string(),
            credit_balance: report.account.totals.balance,
            totals: UsageTotals::of(report)?,
        })
    }
}

impl AllUsageDocument {
    /// Adds up accounts; `None` when a sum is out of range.
    #[must_use]
    pub fn new(window_days: u32, accounts: Vec<AccountUsageDocument>) -> Option<Self> {
        let totals = UsageTotals::checked_sum(accounts.iter().map(|account| account.totals))?;
        Some(Self { window_days, totals, accounts })
    }
}
