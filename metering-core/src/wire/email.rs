//! Verifying an email address, and replacing a key with a link that was sent there.

use serde::{Deserialize, Serialize};

use crate::access::account::Account;
use crate::access::email_status::EmailStatus;
use crate::money::credits::Credits;
use crate::shown_fields::shown_fields;

/// Whether an account's email address is verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EmailVerification {
    /// `pending`: follow the link in the mail. `unchecked`: the account is older than verification, or was opened
    /// without it. `verified`: lost keys can be replaced by email.
    pub status: &'static str,
    /// The free credits that come with the verification.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub free_credits: Credits,
}

impl EmailVerification {
    /// For an account that was opened without verification.
    pub const UNCHECKED: Self = Self { status: "unchecked", free_credits: Credits::ZERO };

    /// The verification of an account; `None` without an address.
    #[must_use]
    pub fn of(account: &Account) -> Option<Self> {
        account.email.as_ref()?;
        Some(match account.email_status {
            EmailStatus::Unchecked => Self::UNCHECKED,
            EmailStatus::Pending { free_credits } => Self { status: "pending", free_credits },
            EmailStatus::Verified { .. } => Self { status: "verified", free_credits: Credits::ZERO },
        })
    }
}

/// The response to `POST /signup/email/send`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SendLinkResponse {
    /// `sent`, or `verified` if there is nothing to verify.
    pub status: &'static str,
    /// The account's address.
    pub email: String,
    /// Seconds until the link expires.
    pub expires_in: u64,
}

/// The body of `POST /signup/email/verify`, `POST /api-key/recover/email/confirm`, `POST /api-key/sessions/email/account`
/// and `POST /api-key/sessions/email/confirm`.
#[derive(Default, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LinkRequest {
    /// The link's token: the part after `#`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub token: Option<zeroize::Zeroizing<String>>,
    /// The wallet's signature, where the token is that of `POST /api-key/sessions/wallet`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// The account to sign in to, of those that the address or wallet has. May be omitted if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub org_id: Option<String>,
}

shown_fields!(LinkRequest: org_id);

/// An account that a link signs in to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SignInAccount {
    /// The account's id.
    pub org_id: String,
    /// The account's name.
    pub agent_name: String,
    /// The role of the member: `owner`, `billing`, `developer` or `viewer`; null for the account's own address or wallet.
    pub role: Option<String>,
}

/// The response to `POST /api-key/sessions/email/account`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LinkAccountResponse {
    /// The account's id.
    pub org_id: String,
    /// The account's name.
    pub agent_name: String,
    /// All accounts that the link signs in to; the first is the one above.
    pub accounts: Vec<SignInAccount>,
    /// Whether the link accepts an invitation to the account.
    pub joins: bool,
    /// Whether the link is an invitation alone: send its token with an email address to `POST /api-key/sessions/email`, or
    /// with a wallet to `POST /api-key/sessions/wallet`.
    pub needs_identity: bool,
}

/// The response to `POST /signup/email/verify`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct VerifiedResponse {
    /// `verified`.
    pub status: &'static str,
    /// The verified address.
    pub email: String,
    /// The account's id.
    pub org_id: String,
    /// The account's name.
    pub agent_name: String,
    /// The free credits that the account got with it.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credits_granted: Credits,
}

/// The body of `POST /api-key/recover/email` and `POST /api-key/sessions/email`.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RecoverByEmailRequest {
    /// The account's verified email address.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub email: Option<String>,
}

/// The response to `POST /api-key/recover/email` and `POST /api-key/sessions/email`: the same for every address.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RecoverByEmailResponse {
    /// `accepted`.
    pub status: &'static str,
    /// Seconds until the link expires, if one is sent.
    pub expires_in: u64,
}
