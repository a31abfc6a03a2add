//! Accounts, as operators see them.

use metering_core::access::{Account, ApiKey, EmailStatus, RateLimits};
use metering_core::chains::Address;
use metering_core::money::{Credits, printed, printed_if_any};
use metering_core::wire::{EmailVerification, IssuedKey};
use serde::{Deserialize, Serialize};

/// An account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AccountDocument {
    /// The account's id.
    pub org_id: String,
    /// The name that its owner gave it.
    pub agent_name: String,
    /// Its owner's email address, if any.
    pub email: Option<String>,
    /// `unchecked`, `pending` or `verified`; null without an address.
    pub email_status: Option<String>,
    /// When the address was verified, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub email_verified_at: Option<String>,
    /// The free credits that wait for the verification.
    #[serde(deserialize_with = "printed_if_any")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<f64>))]
    pub email_free_credits: Option<Credits>,
    /// The wallet that paid for it, if any.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub payer_address: Option<Address>,
    /// `active` or `revoked`.
    pub status: String,
    /// Credits left.
    #[serde(deserialize_with = "printed")]
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credit_balance: Credits,
    /// Credits held for requests in flight, whose cost is not known yet. They are not part of the balance.
    #[serde(default, deserialize_with = "printed")]
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credits_held: Credits,
    /// Credits bought in total.
    #[serde(deserialize_with = "printed")]
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub total_credits_purchased: Credits,
    /// Credits granted in total.
    #[serde(deserialize_with = "printed")]
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub total_credits_granted: Credits,
    /// Credits used in total, minus refunds.
    #[serde(deserialize_with = "printed")]
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub total_credits_used: Credits,
    /// Rate limits on accepted requests; 0 means no limit.
    pub rate_limits: RateLimits,
    /// The limit on the tokens that its requests use per calendar minute; 0 means no limit.
    #[serde(default)]
    pub tokens_per_minute: u32,
    /// When it was created, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub created_at: String,
    /// When it was revoked, if it was, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub revoked_at: Option<String>,
    /// When what was stored of its owner was erased, if it was, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub erased_at: Option<String>,
}

impl From<&Account> for AccountDocument {
    fn from(account: &Account) -> Self {
        Self {
            org_id: account.id.to_string(),
            agent_name: account.agent_name.to_string(),
            email: account.email.as_ref().map(ToString::to_string),
            email_status: EmailVerification::of(account).map(|verification| verification.status.to_owned()),
            email_verified_at: match account.email_status {
                EmailStatus::Verified { at } => Some(at.to_string()),
                EmailStatus::Unchecked | EmailStatus::Pending { .. } => None,
            },
            email_free_credits: match account.email_status {
                EmailStatus::Pending { free_credits } => Some(free_credits),
                EmailStatus::Unchecked | EmailStatus::Verified { .. } => None,
            },
            payer_address: account.payer.map(|payer| payer.address),
            status: if account.revoked_at.is_some() { "revoked" } else { "active" }.to_owned(),
            credit_balance: account.totals.balance,
            credits_held: account.totals.held,
            total_credits_purchased: account.totals.purchased,
            total_credits_granted: account.totals.granted,
            total_credits_used: account.totals.used,
            rate_limits: account.limits,
            tokens_per_minute: account.tokens_per_minute,
            created_at: account.created_at.to_string(),
            revoked_at: account.revoked_at.map(|at| at.to_string()),
            erased_at: account.erased_at.map(|at| at.to_string()),
        }
    }
}

/// A page of accounts, in the order of creation.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AccountsDocument {
    /// The accounts.
    pub accounts: Vec<AccountDocument>,
    /// The value of `after` for the accounts that follow; null when there are none.
    pub next: Option<String>,
}

/// Whose child an account is, and a page of its own children, in the order of creation.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AccountFamilyDocument {
    /// The account that it is a child of; null if it is none.
    pub parent: Option<AccountDocument>,
    /// Its children, closed ones too. A child has none.
    pub accounts: Vec<AccountDocument>,
    /// The value of `after` for the accounts that follow; null when there are none.
    pub next: Option<String>,
}

/// An account to create.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CreateAccountRequest {
    /// Its name: 1 to 64 letters, digits, hyphens or underscores.
    pub agent_name: String,
    /// Its owner's email address. No other active account may have it.
    #[serde(default)]
    pub email: Option<String>,
    /// The credits that it starts with, up to eight decimals.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<f64>))]
    pub credits: Option<Credits>,
    /// Requests per calendar minute; 0 means no limit.
    #[serde(default)]
    pub requests_per_minute: Option<u32>,
    /// Requests per UTC day; 0 means no limit.
    #[serde(default)]
    pub requests_per_day: Option<u32>,
    /// Tokens per calendar minute, on routes that count them; 0 means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_per_minute: Option<u32>,
    /// Why, for the audit log.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// An account with a key that was issued now. The key is in no other response.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CreatedAccountDocument {
    /// The new key.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub api_key: IssuedKey,
    /// The account.
    pub account: AccountDocument,
}

impl CreatedAccountDocument {
    /// The key, and the account that it belongs to.
    #[must_use]
    pub fn new(key: ApiKey, account: &Account) -> Self {
        Self { api_key: key.into(), account: account.into() }
    }
}

/// A grant or a correction.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EntryRequest {
    /// The change of the balance, up to eight decimals: above zero for a grant, not zero for a correction.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credits: Credits,
    /// A sentence for the ledger, which the account's owner can read.
    #[serde(default)]
    pub note: Option<String>,
    /// Why, for the audit log, which only operators read.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// New rate limits. An omitted limit does not change.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LimitsRequest {
    /// Requests per calendar minute; 0 means no limit.
    #[serde(default)]
    pub requests_per_minute: Option<u32>,
    /// Requests per UTC day; 0 means no limit.
    #[serde(default)]
    pub requests_per_day: Option<u32>,
    /// Tokens per calendar minute, on routes that count them; 0 means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_per_minute: Option<u32>,
    /// Why, for the audit log.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}
