//! Verifying an email address, and replacing a key with a link that was sent there.

use serde::{Deserialize, Serialize};

use crate::access::account::Account;
use crate::access::email_status::EmailStatus;
use crate::money::credits::Credits;
use crate::wire::shown_fields::shown_fields;

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
    /// Of an account that was opened without verification.
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
}

shown_fields!(LinkRequest:);

/// The response to `POST /api-key/sessions/email/account`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LinkAccountResponse {
    /// The account's id.
    pub org_id: String,
    /// The account's name.
    pub agent_name: String,
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
