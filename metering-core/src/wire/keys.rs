//! Keys, as their owners see them. Field names are those of OpenRouter's key API where it has them.

use serde::{Deserialize, Serialize};

use crate::access::budget::BudgetReset;
use crate::access::issued_key::KeyStatus;
use crate::access::key_id::KeyId;
use crate::access::scope::Scopes;
use crate::charging::key_meter::remaining;
use crate::clock::Timestamp;
use crate::money::credits::{Credits, printed, printed_if_any};
use crate::usage::KeyLabels;
use crate::wire::secret::IssuedKey;

pub use requests::{ChangeKeyRequest, CreateKeyRequest, LeakedKeyRequest, RotateKeyRequest};

mod requests;

/// The response to `POST /keys/leaked`.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LeakedKeyResponse {
    /// Whether the secret worked, and no longer does.
    pub disabled: bool,
}

/// Whether a key can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum KeyState {
    /// It can.
    Active,
    /// It was switched off.
    Disabled,
    /// It has expired.
    Expired,
    /// It was reported as leaked, and must be rotated.
    Leaked,
    /// A parent key is not active.
    ParentInactive,
}

/// A key, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct KeyDocument {
    /// Its public id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The visible part of its newest secret: the prefix of all secrets, and the last four characters, as in
    /// `sk_live_…ab12`. Null for a secret that was made before the service stored this, and for an imported one.
    #[serde(default)]
    pub hint: Option<String>,
    /// The key that made it; null for the account's first key.
    pub parent_id: Option<String>,
    /// Whether it can be used.
    pub state: KeyState,
    /// Whether it was switched off.
    pub disabled: bool,
    /// How many credits may be spent with it and with its child keys; null for no limit.
    #[serde(deserialize_with = "printed_if_any")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<f64>))]
    pub limit: Option<Credits>,
    /// The credits remaining of the limit.
    #[serde(deserialize_with = "printed_if_any")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<f64>))]
    pub limit_remaining: Option<Credits>,
    /// When the limit starts again: `daily`, `weekly`, `monthly`, or null for never.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub limit_reset: Option<BudgetReset>,
    /// The next time that it starts again, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub limit_resets_at: Option<Timestamp>,
    /// The event `balance.low` is sent when less than this remains of the limit; null for never.
    #[serde(default, deserialize_with = "printed_if_any")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<f64>))]
    pub alert_below: Option<Credits>,
    /// Credits used with the key itself, minus refunds.
    #[serde(deserialize_with = "printed")]
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub usage: Credits,
    /// Today (UTC).
    #[serde(deserialize_with = "printed")]
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub usage_daily: Credits,
    /// Since Monday.
    #[serde(deserialize_with = "printed")]
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub usage_weekly: Credits,
    /// Since the first day of the month.
    #[serde(deserialize_with = "printed")]
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub usage_monthly: Credits,
    /// The last UTC day with an accepted request, `YYYY-MM-DD`.
    #[cfg_attr(feature = "openapi", schema(format = Date))]
    pub last_used_at: Option<String>,
    /// When it was created, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
    /// When it expires, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub expires_at: Option<Timestamp>,
    /// Its scopes.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>))]
    pub scopes: Scopes,
    /// The routes that it may call; empty for all.
    pub routes: Vec<String>,
    /// The networks that it may be used from; empty for all.
    pub networks: Vec<String>,
    /// Accepted requests per calendar minute (UTC); 0 means no limit of its own.
    pub requests_per_minute: u32,
    /// Accepted requests per UTC day; 0 means no limit of its own.
    pub requests_per_day: u32,
    /// Tokens of requests per calendar minute (UTC); 0 means no limit of its own.
    #[serde(default)]
    pub tokens_per_minute: u32,
    /// Requests and streams in flight in one process of the service; 0 means no limit of its own.
    pub max_in_flight: u32,
    /// When the secret of this request stops working, as RFC 3339: for an access token of OAuth, or a secret that was
    /// replaced. Only in `GET /keys/current`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub secret_expires_at: Option<Timestamp>,
}

/// The response to `GET /keys/{id}`, `GET /keys/current` and `PATCH /keys/{id}`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct KeyResponse {
    /// The key.
    pub data: KeyDocument,
}

/// The response to `GET /keys`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct KeysDocument {
    /// The caller's key and its child keys, oldest first. Fewer than `limit` does not mean that it is the last part.
    pub data: Vec<KeyDocument>,
    /// The value of `after` for the keys that follow; null when there are none.
    pub next: Option<String>,
}

/// The response to `POST /keys` and `POST /keys/{id}/rotate`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct IssuedKeyResponse {
    /// The secret, shown only once.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub key: IssuedKey,
    /// The key.
    pub data: KeyDocument,
}

/// The response to `DELETE /keys/{id}`.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeletedKeyResponse {
    /// Always true.
    pub deleted: bool,
}

/// A key that a recovery did not change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RemainingKeyDocument {
    /// Its public id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its scopes.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>))]
    pub scopes: Scopes,
    /// When it was created, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
}

impl KeyDocument {
    /// A key as it is at `now`, with the parent's id from the account's labels.
    #[must_use]
    pub fn labelled(status: KeyStatus, labels: &KeyLabels, now: Timestamp) -> Self {
        let parent = status.key.parent.and_then(|parent| labels.get(parent)).map(|label| label.id.clone());
        Self::new(status, parent.as_ref(), now)
    }

    /// A key as it is at `now`. `parent` is the id of the key that made it.
    #[must_use]
    pub fn new(status: KeyStatus, parent: Option<&KeyId>, now: Timestamp) -> Self {
        let KeyStatus { key, parents_are_live, spent, usage } = status;
        let terms = key.terms;
        let is_expired = terms.expires_at.is_some_and(|at| at <= now);
        let state = match () {
            () if key.leaked_at.is_some() => KeyState::Leaked,
            () if terms.disabled => KeyState::Disabled,
            () if is_expired => KeyState::Expired,
            () if !parents_are_live => KeyState::ParentInactive,
            () => KeyState::Active,
        };
        let left = terms.budget.map(|budget| {
            let spent = spent.unwrap_or_default().at(&budget, now);
            remaining(&budget, spent.amount)
        });
        let lines = |text: String| text.lines().map(str::to_owned).collect();
        Self {
            id: key.id.to_string(),
            name: terms.name.to_string(),
            hint: key.hint.map(|hint| hint.to_string()),
            parent_id: parent.map(ToString::to_string),
            state,
            disabled: terms.disabled,
            limit: terms.budget.map(|budget| budget.limit),
            limit_remaining: left,
            limit_reset: terms.budget.and_then(|budget| budget.reset),
            limit_resets_at: terms.budget.and_then(|budget| budget.resets_at(now)),
            alert_below: terms.alert_below,
            usage: usage.total,
            usage_daily: usage.daily,
            usage_weekly: usage.weekly,
            usage_monthly: usage.monthly,
            last_used_at: usage.last_used.map(|day| day.to_string()),
            created_at: key.created_at,
            expires_at: terms.expires_at,
            scopes: terms.scopes,
            routes: lines(terms.routes.to_string()),
            networks: lines(terms.networks.to_string().replace(' ', "\n")),
            requests_per_minute: terms.limits.requests_per_minute,
            requests_per_day: terms.limits.requests_per_day,
            tokens_per_minute: terms.tokens_per_minute,
            max_in_flight: terms.max_in_flight,
            secret_expires_at: None,
        }
    }
}
