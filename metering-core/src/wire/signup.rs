//! Signing up without paying.

use serde::{Deserialize, Serialize};

use crate::account::RateLimits;
use crate::credits::Credits;
use crate::wire::secret::IssuedKey;

/// The body of `POST /signup/initiate`.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct InitiateRequest {
    /// The owner's email address.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub email: Option<String>,
    /// What the account will be called: 1 to 64 of `A-Z a-z 0-9 _ -`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub agent_name: Option<String>,
}

/// The answer to `POST /signup/initiate`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct InitiateAnswer {
    /// The secret to ask for the key with; it is not served again.
    pub session_token: String,
    /// Where a person approves the signup.
    pub verification_url: String,
    /// The same with the code filled in.
    pub verification_url_complete: String,
    /// What the person types there.
    pub user_code: String,
    /// For how many seconds it can be approved.
    pub expires_in: u64,
    /// How many seconds to wait between two questions for the status.
    pub interval: u64,
}

/// The answer to `GET /signup/pending`: what is about to be approved.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PendingAnswer {
    /// The code, as it is shown.
    pub user_code: String,
    /// What the account will be called.
    pub agent_name: String,
    /// The owner's email address.
    pub email: String,
    /// For how many seconds it can be approved.
    pub expires_in: u64,
}

/// The body of `POST /verify`.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ApproveRequest {
    /// The code that the person was given.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub user_code: Option<String>,
    /// Whether the person accepts the terms; nothing else than `true` is accepted.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub tos_accepted: bool,
    /// The answer to the bot challenge.
    pub captcha_token: Option<String>,
}

/// The answer to `POST /verify`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ApproveAnswer {
    /// `approved`.
    pub status: &'static str,
}

/// The answer to `GET /signup/status`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum StatusAnswer {
    /// Nobody has approved it yet.
    Pending {
        /// For how many seconds it can be approved.
        expires_in: u64,
    },
    /// It was not approved in time.
    Expired,
    /// It was approved: the account, and its key, shown this once.
    Approved {
        /// The account's key.
        #[cfg_attr(feature = "openapi", schema(value_type = String))]
        api_key: IssuedKey,
        /// The account's id.
        org_id: String,
        /// Credits to start with.
        #[cfg_attr(feature = "openapi", schema(value_type = f64))]
        credit_balance: Credits,
        /// Caps on accepted requests; 0 means no cap.
        rate_limits: RateLimits,
    },
}
