//! Assigning payments, as operators do.

use metering_core::money::Credits;
use serde::{Deserialize, Serialize};

/// A payment to assign.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AssignRequest {
    /// The chain, by the name of its configuration section.
    pub chain: String,
    /// The transaction.
    pub tx_hash: String,
    /// The account to credit.
    pub account: String,
    /// The plan that was bought; its bonus is credited too. Either this or `credits`.
    #[serde(default)]
    pub plan_id: Option<String>,
    /// The credits to add: above zero, up to eight decimals.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<f64>))]
    pub credits: Option<Credits>,
    /// Assign it even if an open quote is waiting for it, which can then no longer be claimed with it.
    #[serde(default)]
    pub despite_quote: bool,
    /// Why, for the audit log and the ledger; the account's owner can read it.
    #[serde(default)]
    pub reason: String,
}
