//! Child accounts, as their parent sees them.

use serde::{Deserialize, Serialize};

use crate::access::account::{Account, RateLimits};
use crate::clock::Timestamp;
use crate::money::credits::Credits;
use crate::wire::field::amount;
use crate::wire::secret::IssuedKey;

/// A child account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ChildAccountDocument {
    /// Its id.
    pub org_id: String,
    /// Its name.
    pub agent_name: String,
    /// Credits left.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credit_balance: Credits,
    /// Credits held for requests in flight. They are not part of the balance.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credits_held: Credits,
    /// Credits that it bought itself.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub total_credits_purchased: Credits,
    /// Credits that it was given, minus those taken back.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub total_credits_granted: Credits,
    /// Credits used in total, minus refunds.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub total_credits_used: Credits,
    /// Rate limits on accepted requests; 0 means no limit.
    pub rate_limits: RateLimits,
    /// The limit on the tokens that requests use per calendar minute; 0 means no limit.
    #[serde(default)]
    pub tokens_per_minute: u32,
    /// When it was created, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
    /// When it was closed; null if it is open.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub closed_at: Option<Timestamp>,
}

impl From<&Account> for ChildAccountDocument {
    fn from(account: &Account) -> Self {
        Self {
            org_id: account.id.to_string(),
            agent_name: account.agent_name.to_string(),
            credit_balance: account.totals.balance,
            credits_held: account.totals.held,
            total_credits_purchased: account.totals.purchased,
            total_credits_granted: account.totals.granted,
            total_credits_used: account.totals.used,
            rate_limits: account.limits,
            tokens_per_minute: account.tokens_per_minute,
            created_at: account.created_at,
            closed_at: account.revoked_at,
        }
    }
}

/// The response to `GET /accounts`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ChildAccountsDocument {
    /// Child accounts, oldest first.
    pub data: Vec<ChildAccountDocument>,
    /// Send it as `after` for those that follow; null if there are none.
    pub next: Option<String>,
}

/// The body of `POST /accounts`.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateChildRequest {
    /// Its name: 1 to 64 letters, digits, hyphens or underscores.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub agent_name: Option<String>,
    /// Rate limits on accepted requests, at most those of the parent, which it has by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_limits: Option<RateLimits>,
}

/// The body of `PATCH /accounts/{id}`: one of the members, or both.
#[derive(Debug, Clone, Copy, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ChangeChildRequest {
    /// Its new rate limits on accepted requests, at most those of the parent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_limits: Option<RateLimits>,
    /// Its new limit on the tokens that requests use per calendar minute, at most that of the parent; 0 means no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_minute: Option<u32>,
}

/// The response to `GET` and `PATCH /accounts/{id}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ChildAccountResponse {
    /// The child account.
    pub data: ChildAccountDocument,
}

/// The response to `POST /accounts` and `POST /accounts/{id}/rotate`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct IssuedChildResponse {
    /// The child's first key, shown only once.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub api_key: IssuedKey,
    /// The child account.
    pub data: ChildAccountDocument,
}

/// The body of `POST /accounts/{id}/credits`.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct MoveCreditsRequest {
    /// The credits that the child gets, as text or a number; below zero to take credits back.
    #[serde(default, deserialize_with = "amount")]
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credits: Option<Credits>,
}

/// The response to `POST /accounts/{id}/credits`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MovedCreditsResponse {
    /// Credits that the parent has left.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credit_balance: Credits,
    /// The child account as it is now.
    pub data: ChildAccountDocument,
}

/// The response to `DELETE /accounts/{id}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClosedChildResponse {
    /// Always true.
    pub closed: bool,
    /// Credits that returned to the parent.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credits_returned: Credits,
}

/// A child account's usage in a range of days.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ChildUsageEntry {
    /// The child account.
    pub org_id: String,
    /// Accepted requests, including refunded ones.
    pub usage_events: u64,
    /// Their charges, minus refunds.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credits_used: Credits,
}

/// The usage of all child accounts on one day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ChildrenDay {
    /// The UTC day.
    pub date: String,
    /// Accepted requests, including refunded ones.
    pub usage_events: u64,
    /// Their charges, minus refunds.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credits_used: Credits,
}

/// The response to `GET /accounts/usage`. All of it is read at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ChildrenUsageDocument {
    /// How many UTC days it covers: today and those before it.
    pub window_days: u32,
    /// Each child's usage, in the order of creation; those without usage are left out.
    pub data: Vec<ChildUsageEntry>,
    /// The usage of all of them on each day, oldest first; days without usage are left out.
    pub by_day: Vec<ChildrenDay>,
}
