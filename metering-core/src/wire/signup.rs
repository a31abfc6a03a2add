//! Signing up without paying.

use serde::{Deserialize, Serialize};

use crate::access::account::RateLimits;
use crate::money::credits::Credits;
use crate::shown_fields::shown_fields;
use crate::wire::email::EmailVerification;
use crate::wire::secret::IssuedKey;

/// The body of `POST /signup/initiate`.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct InitiateRequest {
    /// The owner's email address.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub email: Option<String>,
    /// The name of the new account: 1 to 64 of `A-Z a-z 0-9 _ -`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub agent_name: Option<String>,
}

/// The response to `POST /signup/initiate`.
#[derive(Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct InitiateResponse {
    /// The secret that returns the key once the signup is approved; it is not sent again.
    pub session_token: String,
    /// The page where a person approves the signup.
    pub verification_url: String,
    /// The same with the code filled in.
    pub verification_url_complete: String,
    /// The code the person types there.
    pub user_code: String,
    /// Seconds left to approve it.
    pub expires_in: u64,
    /// Seconds to wait between two polls of the status.
    pub interval: u64,
}

shown_fields!(InitiateResponse: verification_url, expires_in, interval);

/// The response to `GET /signup/pending`: the signup to approve.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PendingResponse {
    /// The code, formatted for display.
    pub user_code: String,
    /// The name of the new account.
    pub agent_name: String,
    /// The owner's email address.
    pub email: String,
    /// Seconds left to approve it.
    pub expires_in: u64,
}

/// The body of `POST /verify`.
#[derive(Clone, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ApproveRequest {
    /// The user code.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub user_code: Option<String>,
    /// Whether the person accepts the terms: `true`, or the text `"true"`. Anything else is a refusal.
    #[serde(default, deserialize_with = "super::field::is_true")]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub tos_accepted: bool,
    /// The solution of the bot challenge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub captcha_token: Option<String>,
}

shown_fields!(ApproveRequest: tos_accepted);

/// The response to `POST /verify`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ApproveResponse {
    /// `approved`.
    pub status: &'static str,
}

/// The response to `GET /signup/status`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum StatusResponse {
    /// It is not approved yet.
    Pending {
        /// Seconds left to approve it.
        expires_in: u64,
    },
    /// It was not approved in time.
    Expired,
    /// It was approved: the account and its key, which is shown only once.
    Approved {
        /// The account's key.
        #[cfg_attr(feature = "openapi", schema(value_type = String))]
        api_key: IssuedKey,
        /// The account's id.
        org_id: String,
        /// The starting balance.
        #[cfg_attr(feature = "openapi", schema(value_type = f64))]
        credit_balance: Credits,
        /// Rate limits on accepted requests; 0 means no limit.
        rate_limits: RateLimits,
        /// Set when the email address must be verified first: its owner follows the link in the mail, and the free
        /// credits come with that.
        #[serde(skip_serializing_if = "Option::is_none")]
        email_verification: Option<EmailVerification>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_accepted_by_true_alone() {
        let accepted = |json: &str| {
            let body = format!(r#"{{"tos_accepted": {json}}}"#);
            serde_json::from_str::<ApproveRequest>(&body).unwrap().tos_accepted
        };
        assert!(accepted("true") && accepted("\"true\""));
        for json in ["false", "\"false\"", "null", "\"\"", "\"yes, later\"", "[true]"] {
            assert!(!accepted(json), "{json}");
        }
        assert!(!serde_json::from_str::<ApproveRequest>("{}").unwrap().tos_accepted);
    }
}
