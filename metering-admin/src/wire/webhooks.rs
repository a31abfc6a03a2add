//! Balance alerts, as operators set them. Webhooks and deliveries look to operators as they do to their owners.

use metering_core::money::Credits;
use metering_core::wire::BalanceAlertRequest;
use serde::{Deserialize, Serialize};

/// Sets the balance below which the event `balance.low` of an account is sent.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AccountAlertRequest {
    /// The balance, in credits above 0, as text or as a number; null for never. Required.
    #[serde(
        default,
        deserialize_with = "metering_core::wire::present_amount",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, required))]
    pub below: Option<Option<Credits>>,
    /// Why, for the audit log.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

impl AccountAlertRequest {
    /// The same without the reason.
    #[must_use]
    pub const fn alert(&self) -> BalanceAlertRequest {
        BalanceAlertRequest { below: self.below, email: None }
    }
}
