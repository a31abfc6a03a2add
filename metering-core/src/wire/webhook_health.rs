//! How the deliveries to a webhook are doing, as its owner sees it.

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::events::{DeliveryCounts, WebhookHealth};

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
    /// When the last event arrived, as RFC 3339; null if none of the last 30 days did.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub last_delivered_at: Option<Timestamp>,
    /// How its deliveries ended whose last attempt was in the last 7 days.
    #[serde(default)]
    pub last_7_days: DeliveryCountsDocument,
}

/// How deliveries to a webhook ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeliveryCountsDocument {
    /// How many were delivered.
    pub delivered: u64,
    /// How many of those were delivered at the first attempt.
    pub at_first_attempt: u64,
    /// How many failed and are retried or parked.
    pub failed: u64,
}

impl DeliveryCountsDocument {
    /// The share of them that was delivered, in readable form: `99.8%`. Rounded down, so only all of them make 100%;
    /// `None` if there was none.
    ///
    /// ```
    /// use metering_core::wire::DeliveryCountsDocument;
    ///
    /// let rate = |delivered, failed| DeliveryCountsDocument { delivered, at_first_attempt: 0, failed }.rate();
    /// assert_eq!(rate(1_999, 1).as_deref(), Some("99.9%"));
    /// assert_eq!((rate(3, 0).as_deref(), rate(0, 2).as_deref(), rate(0, 0)), (Some("100%"), Some("0%"), None));
    /// ```
    #[must_use]
    pub fn rate(&self) -> Option<String> {
        let permille = self.delivered.saturating_mul(1_000).checked_div(self.delivered.saturating_add(self.failed))?;
        let (percent, tenth) = (permille / 10, permille % 10);
        Some(if tenth == 0 { format!("{percent}%") } else { format!("{percent}.{tenth}%") })
    }
}

impl WebhookHealthDocument {
    /// The health of a webhook, with how its recent deliveries ended.
    #[must_use]
    pub fn new(health: &WebhookHealth, recent: DeliveryCounts) -> Self {
        let DeliveryCounts { delivered, at_first_attempt, failed } = recent;
        let (since, last) = health.failing().unzip();
        Self {
            waiting: health.waiting,
            failing_since: since,
            last_status: last.and_then(|last| last.status),
            last_error: last.and_then(|last| last.error.clone()),
            next_attempt_at: health.first.as_ref().map(|first| first.progress.next_at),
            last_delivered_at: health.last_delivered_at,
            last_7_days: DeliveryCountsDocument { delivered, at_first_attempt, failed },
        }
    }
}
