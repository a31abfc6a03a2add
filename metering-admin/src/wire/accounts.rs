//! Accounts, as operators see them.

use metering_core::access::{Account, ApiKey, EmailStatus, RateLimits};
use metering_core::chains::Address;
use metering_core::money::{Credits, printed, printed_if_any};
use metering_core::wire::{EmailVerification, IssuedKey, NoteDocument};
use serde::{Deserialize, Serialize};

use crate::call::Body;
use crate::wire::document::document;

document! {
    /// An account.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub struct AccountDocument from account: &Account;

    /// The account's id.
    org_id: String = account.id.to_string(),
    /// The name that its owner gave it.
    agent_name: String = account.agent_name.to_string(),
    /// Its owner's email address, if any.
    email: Option<String> = account.email.as_ref().map(ToString::to_string),
    /// `unchecked`, `pending` or `verified`; null without an address.
    email_status: Option<String> = EmailVerification::of(account).map(|verification| verification.status.to_owned()),
    /// When the address was verified, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    email_verified_at: Option<String> = match account.email_status {
        EmailStatus::Verified { at } => Some(at.to_string()),
        EmailStatus::Unchecked | EmailStatus::Pending { .. } => None,
    },
    /// The free credits that wait for the verification.
    #[serde(deserialize_with = "printed_if_any")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<f64>))]
    email_free_credits: Option<Credits> = match account.email_status {
        EmailStatus::Pending { free_credits } => Some(free_credits),
        EmailStatus::Unchecked | EmailStatus::Verified { .. } => None,
    },
    /// The wallet that paid for it, if any.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    payer_address: Option<Address> = account.payer.map(|payer| payer.address),
    /// `active` or `revoked`.
    status: String = if account.revoked_at.is_some() { "revoked" } else { "active" }.to_owned(),
    /// Credits left.
    #[serde(deserialize_with = "printed")]
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    credit_balance: Credits = account.totals.balance,
    /// Credits held for requests in flight, whose cost is still unknown. They are not part of the balance.
    #[serde(default, deserialize_with = "printed")]
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    credits_held: Credits = account.totals.held,
    /// Credits bought in total.
    #[serde(deserialize_with = "printed")]
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    total_credits_purchased: Credits = account.totals.purchased,
    /// Credits granted in total.
    #[serde(deserialize_with = "printed")]
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    total_credits_granted: Credits = account.totals.granted,
    /// Credits used in total, minus refunds.
    #[serde(deserialize_with = "printed")]
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    total_credits_used: Credits = account.totals.used,
    /// Rate limits on accepted requests; 0 means no limit.
    rate_limits: RateLimits = account.limits,
    /// The limit on the tokens that its requests use per calendar minute; 0 means no limit.
    #[serde(default)]
    tokens_per_minute: u32 = account.tokens_per_minute,
    /// When it was created, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    created_at: String = account.created_at.to_string(),
    /// When it was revoked, if it was, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    revoked_at: Option<String> = account.revoked_at.map(|at| at.to_string()),
    /// When the personal data of its owner was erased, if it was, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    erased_at: Option<String> = account.erased_at.map(|at| at.to_string()),
    /// Operators' notes on it, newest first, at most 100: in the responses to `GET /admin/accounts/{id}` and to a new
    /// note.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notes: Vec<NoteDocument> = Vec::new(),
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

/// The parent of an account, and a page of its children, in the order of creation.
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
    /// The key and its account.
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

/// A note on an account.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NoteRequest {
    /// The note: one line of 1 to 500 characters.
    pub note: String,
    /// The reason, for the audit log, if the note does not have it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

impl Body for NoteRequest {
    fn reason(&self) -> &str {
        if self.reason.is_empty() { "A note for other operators" } else { &self.reason }
    }

    fn with_reason(self, reason: &str) -> Self {
        Self { reason: reason.to_owned(), ..self }
    }
}
