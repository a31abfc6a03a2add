//! Webhooks, their deliveries, and events, as the owners of accounts see them.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::access::account::AccountId;
use crate::clock::Timestamp;
use crate::events::{Event, Webhook, WebhookSecret, WebhookState};
use crate::money::alert::BalanceAlert;
use crate::money::credits::{Credits, printed_if_any};
use crate::shown_fields::shown_fields;

use super::field::{amount, present};
use super::webhook_health::WebhookHealthDocument;

/// The body of `POST /webhooks`.
#[derive(Clone, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateWebhookRequest {
    /// Where to send events: an https URL with a public host.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub url: Option<String>,
    /// The events to send, such as `balance.low`; all of them if omitted or null.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<String>>,
}

/// The body of `PATCH /webhooks/{id}`. Omitted fields are unchanged.
#[derive(Clone, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ChangeWebhookRequest {
    /// Where to send events: an https URL with a public host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The events to send; null for all of them.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<String>>))]
    pub events: Option<Option<Vec<String>>>,
    /// Whether it is switched off. Events that happen while it is off are never sent to it. False also turns a webhook
    /// back on that is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
}

/// The body of `POST /webhooks/{id}/rotate`.
#[derive(Debug, Clone, Copy, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct RotateWebhookRequest {
    /// For how many more seconds requests are also signed with the old secret, at most a week. A day by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace_seconds: Option<u32>,
}

/// The secret of a webhook, in the response that gives it to its owner. Its debug output does not show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuedWebhookSecret(WebhookSecret);

/// The response to `POST /webhooks` and `POST /webhooks/{id}/rotate`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct IssuedWebhookResponse {
    /// The secret to verify signatures with, shown only once: `whsec_` and base64.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub secret: IssuedWebhookSecret,
    /// The webhook.
    pub data: WebhookDocument,
}

/// The state of a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum WebhookStatus {
    /// Events are sent to it.
    Active,
    /// It was switched off.
    Disabled,
    /// Its URL responded 410 Gone, which switched it off.
    Gone,
}

/// A webhook, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WebhookDocument {
    /// Its id.
    pub id: String,
    /// Where events are sent.
    pub url: String,
    /// The events that are sent; empty for all of them.
    pub events: Vec<String>,
    /// Whether events are sent to it.
    pub state: WebhookStatus,
    /// Until when requests are also signed with the previous secret, as RFC 3339; null if they are not.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub old_secret_expires_at: Option<Timestamp>,
    /// When it was created, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
    /// How its deliveries are doing: in lists of webhooks, and in the response to `GET /webhooks/{id}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<WebhookHealthDocument>,
}

/// The response to `GET /webhooks/{id}` and `PATCH /webhooks/{id}`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WebhookResponse {
    /// The webhook.
    pub data: WebhookDocument,
}

/// The response to `GET /webhooks`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WebhooksDocument {
    /// The account's webhooks, oldest first.
    pub data: Vec<WebhookDocument>,
}

/// The response to `DELETE /webhooks/{id}`.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeletedWebhookResponse {
    /// Always true.
    pub deleted: bool,
}

/// An event. Webhooks receive the same, except that the id is in the header `webhook-id`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EventDocument {
    /// Its id, which never changes.
    pub id: String,
    /// What happened, such as `balance.low`.
    #[serde(rename = "type")]
    pub kind: String,
    /// When it happened, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub timestamp: Timestamp,
    /// The subject. The fields depend on the type.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub data: Box<RawValue>,
}

/// The response to `GET /events`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EventsDocument {
    /// The account's id.
    pub org_id: String,
    /// The events, newest first.
    pub data: Vec<EventDocument>,
    /// The value of `after` for the events that follow; null when there are none.
    pub next: Option<String>,
}

/// The body of `PUT /credits/alert`.
#[derive(Debug, Clone, Copy, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct BalanceAlertRequest {
    /// The event `balance.low` is sent when the balance falls below this, in credits above 0, as text or as a number;
    /// null for never. Required.
    #[serde(default, deserialize_with = "present_amount", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, required))]
    pub below: Option<Option<Credits>>,
    /// Whether low-balance alerts are also mailed to the account's verified address. If omitted, they are, unless that
    /// was turned off. No effect where the response has no `email`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email: Option<bool>,
}

/// The response to `GET /credits/alert` and `PUT /credits/alert`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BalanceAlertDocument {
    /// The account's id.
    pub org_id: String,
    /// The event `balance.low` is sent when the balance falls below this; null for never.
    #[serde(deserialize_with = "printed_if_any")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<f64>))]
    pub below: Option<Credits>,
    /// Whether alerts are mailed to the account's address. Omitted when they cannot be: the address is not verified, or
    /// this service sends no mail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email: Option<bool>,
}

impl IssuedWebhookSecret {
    /// The secret.
    #[must_use]
    pub const fn secret(&self) -> &WebhookSecret {
        &self.0
    }
}

impl From<WebhookSecret> for IssuedWebhookSecret {
    fn from(secret: WebhookSecret) -> Self {
        Self(secret)
    }
}

impl Serialize for IssuedWebhookSecret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.expose())
    }
}

impl<'de> Deserialize<'de> for IssuedWebhookSecret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = zeroize::Zeroizing::new(String::deserialize(deserializer)?);
        WebhookSecret::parse(&text).map(Self).map_err(serde::de::Error::custom)
    }
}

// Without the URL, which may have a secret in it.
shown_fields!(CreateWebhookRequest: events);

// Without the URL, which may have a secret in it.
shown_fields!(ChangeWebhookRequest: events, disabled);

impl WebhookDocument {
    /// The webhook as it is at `now`.
    #[must_use]
    pub fn new(webhook: &Webhook, now: Timestamp) -> Self {
        let old = webhook.secrets.iter().filter_map(|secret| secret.expires_at).filter(|at| now < *at);
        Self {
            id: webhook.id.to_string(),
            url: webhook.terms.url.to_string(),
            events: webhook.terms.kinds.iter().map(|kind| kind.to_string()).collect(),
            state: webhook.state.into(),
            old_secret_expires_at: old.max(),
            created_at: webhook.created_at,
            health: None,
        }
    }
}

impl From<WebhookState> for WebhookStatus {
    fn from(state: WebhookState) -> Self {
        match state {
            WebhookState::Active => Self::Active,
            WebhookState::Disabled => Self::Disabled,
            WebhookState::Gone => Self::Gone,
        }
    }
}

impl WebhookStatus {
    /// The state's name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => WebhookState::Active.as_str(),
            Self::Disabled => WebhookState::Disabled.as_str(),
            Self::Gone => WebhookState::Gone.as_str(),
        }
    }
}

impl EventDocument {
    /// The event. `None` if its data is not JSON, which stores never hold.
    #[must_use]
    pub fn new(event: &Event) -> Option<Self> {
        Some(Self {
            id: event.id().to_string(),
            kind: event.kind.to_string(),
            timestamp: event.created_at,
            data: RawValue::from_string(event.data.clone()).ok()?,
        })
    }
}

impl BalanceAlertDocument {
    /// The alert of an account, and whether it is mailed.
    #[must_use]
    pub fn new(account: &AccountId, alert: BalanceAlert, email: Option<bool>) -> Self {
        Self { org_id: account.to_string(), below: alert.threshold, email }
    }
}

/// Deserializes an amount that must be there, and may be null: of `below` in a request.
///
/// # Errors
/// When it is not an amount.
pub fn present_amount<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<Credits>>, D::Error> {
    amount(deserializer).map(Some)
}

#[cfg(test)]
mod tests;
