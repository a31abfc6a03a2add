//! How the deliveries to a webhook are doing, as its owner sees it.

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::events::WebhookHealth;

/// How the deliveries to a webhook are doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WebhookHealthDocument {
    /// How many deliveries are pending.
    pub waiting: u64,
    /// Since when the first of them fails, as RFC 3339; null if it does not. The others wait for it.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub failing_since: Option<Timestamp>,
    /// The HTTP status of its last response, if there was one.
    pub last_status: Option<u16>,
    /// Why its last attempt failed.
    pub last_error: Option<String>,
    /// When its next attempt is due, as RFC 3339; null if none is pending.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub next_attempt_at: Option<Timestamp>,
    /// When the newest event that was delivered arrived, as RFC 3339; null if none of the last 30 days did.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub last_delivered_at: Option<Timestamp>,
}

impl From<&WebhookHealth> for WebhookHealthDocument {
    fn from(health: &WebhookHealth) -> Self {
        let (since, last) = health.failing().unzip();
        Self {
            waiting: health.waiting,
            failing_since: since,
            last_status: last.and_then(|last| last.status),
            last_error: last.and_then(|last| last.error.clone()),
            next_attempt_at: health.first.as_ref().map(|first| first.progress.next_at),
            last_delivered_at: health.last_delivered_at,
        }
    }
}
