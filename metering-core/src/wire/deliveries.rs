//! Deliveries of events to webhooks, as the owners of accounts see them.

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::events::{Delivery, DeliveryState, WebhookHealth};

use super::webhooks::EventDocument;

/// The state of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum DeliveryStatus {
    /// It waits for its next attempt, or is in progress.
    Pending,
    /// The webhook responded with a 2xx status.
    Delivered,
    /// No more retries: it failed for three days, or the webhook is gone. It can be resent.
    Parked,
}

/// An event in delivery to a webhook.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeliveryDocument {
    /// Its number.
    pub id: i64,
    /// The webhook.
    pub webhook_id: String,
    /// Its state.
    pub state: DeliveryStatus,
    /// How many attempts were made, including one that is in progress.
    pub attempts: u32,
    /// When the next attempt is due, as RFC 3339, or when the current one is abandoned; null unless it is pending.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub next_attempt_at: Option<Timestamp>,
    /// When the last attempt ended, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub last_attempt_at: Option<Timestamp>,
    /// The HTTP status that the webhook last responded with.
    pub last_status: Option<u16>,
    /// Why the last attempt failed.
    pub last_error: Option<String>,
    /// The delivery that must arrive or be parked first, since a webhook gets an account's events in order. Omitted if it
    /// waits for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<EarlierDeliveryDocument>,
    /// The event.
    pub event: EventDocument,
}

/// The delivery that another one waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EarlierDeliveryDocument {
    /// Its number.
    pub id: i64,
    /// The type of its event, such as `balance.low`.
    #[serde(rename = "type")]
    pub kind: String,
    /// When its event happened, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub timestamp: Timestamp,
}

/// The response to `POST /webhooks/{id}/test` and `POST /webhooks/{id}/deliveries/{delivery}/resend`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeliveryResponse {
    /// The delivery, which is queued.
    pub data: DeliveryDocument,
}

/// The response to `GET /webhooks/{id}/deliveries/{delivery}`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeliveryPayloadResponse {
    /// The delivery.
    pub data: DeliveryDocument,
    /// The body of its requests, byte for byte: the signature is for these bytes.
    pub body: String,
    /// If the last attempt failed: the beginning of the response's body, as text, at most 1,024 bytes. Control characters
    /// are replaced. Omitted if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<String>,
}

/// The response to `GET /webhooks/{id}/deliveries`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeliveriesDocument {
    /// The deliveries, newest first.
    pub data: Vec<DeliveryDocument>,
    /// The value of `after` for the deliveries that follow; null when there are none.
    pub next: Option<String>,
}

impl From<DeliveryState> for DeliveryStatus {
    fn from(state: DeliveryState) -> Self {
        match state {
            DeliveryState::Pending => Self::Pending,
            DeliveryState::Delivered => Self::Delivered,
            DeliveryState::Parked => Self::Parked,
        }
    }
}

impl DeliveryStatus {
    /// The state's name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => DeliveryState::Pending.as_str(),
            Self::Delivered => DeliveryState::Delivered.as_str(),
            Self::Parked => DeliveryState::Parked.as_str(),
        }
    }
}

impl DeliveryDocument {
    /// The delivery, which may wait for others. `None` if the data of its event is not JSON, which stores never hold.
    #[must_use]
    pub fn of(delivery: Delivery, health: &WebhookHealth) -> Option<Self> {
        let waits_for = health.before(&delivery).map(|first| EarlierDeliveryDocument {
            id: first.id.get(),
            kind: first.event.kind.to_string(),
            timestamp: first.event.created_at,
        });
        Some(Self { waits_for, ..Self::new(delivery)? })
    }

    /// The same, without the delivery that it waits for.
    #[must_use]
    pub fn new(delivery: Delivery) -> Option<Self> {
        let Delivery { id, webhook, event, progress } = delivery;
        let (at, status, error) =
            progress.last.map_or((None, None, None), |last| (Some(last.at), last.status, last.error));
        Some(Self {
            id: id.get(),
            webhook_id: webhook.to_string(),
            state: progress.state.into(),
            attempts: progress.attempts,
            next_attempt_at: (progress.state == DeliveryState::Pending).then_some(progress.next_at),
            last_attempt_at: at,
            last_status: status,
            last_error: error,
            waits_for: None,
            event: EventDocument::new(&event)?,
        })
    }
}
