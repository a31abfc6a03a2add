//! Plans sold by card, and the checkout in which they are paid.

use serde::{Deserialize, Serialize};

use crate::money::credits::{Credits, printed};

/// A plan that is sold by card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CardPlanDocument {
    /// The plan's name.
    pub id: String,
    /// Its name for people.
    pub label: String,
    /// The credits that it sells.
    #[serde(deserialize_with = "printed")]
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credits: Credits,
    /// Its price, as a string.
    pub amount: String,
    /// The currency of the price (ISO 4217).
    pub currency: String,
}

/// The body of `POST /credits/checkout`.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CheckoutRequest {
    /// The plan's name.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub plan_id: Option<String>,
    /// Whether the card processor saves the card, so it can be charged for automatic top-ups once these are turned on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub save_card: bool,
}

/// The response to `POST /credits/checkout`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CheckoutResponse {
    /// The page of the card processor where the plan is paid. It expires after a day.
    pub url: String,
    /// The checkout's id at the processor.
    pub session_id: String,
}
