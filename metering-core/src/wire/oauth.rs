//! OAuth: requests and responses of the consent page, and responses to clients. Members of clients' documents are named
//! by the RFCs.

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::shown_fields::shown_fields;
use crate::wire::keys::CreateKeyRequest;
use crate::wire::secret::IssuedKey;

/// The parameters of an authorization request (RFC 6749, section 4.1.1), as the client put them in the query of
/// `/oauth/authorize`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuthorizationRequest {
    /// `code`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_type: Option<String>,
    /// The client: the id from its registration, or the URL of its metadata document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// The redirect URI; optional for a client that has only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect_uri: Option<String>,
    /// The requested scopes: any of `call`, `read` and `manage`, separated by spaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// Sent back to the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The base64url of the SHA-256 of the code verifier (RFC 7636).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code_challenge: Option<String>,
    /// `S256`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code_challenge_method: Option<String>,
    /// The resource of the token (RFC 8707): the URL of this service's MCP endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
}

/// The response to `POST /oauth/requests`: the content of the consent page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuthorizationDocument {
    /// The name that the client gives itself.
    pub client_name: String,
    /// The host that vouches for the client; null if it registered here, as any program may.
    pub client_host: Option<String>,
    /// The host that the response goes to.
    pub redirect_host: String,
    /// Whether that is the machine of the browser, where any program may pretend to be this client.
    pub redirects_to_this_machine: bool,
    /// The requested scopes.
    pub scopes: Vec<String>,
    /// The resource of its token.
    pub resource: String,
    /// Why the client cannot have access, if so. It is notified when the browser follows `cancel_url`.
    pub problem: Option<String>,
    /// Where the browser goes if the owner does not consent.
    pub cancel_url: String,
}

/// The body of `POST /oauth/consents`.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ConsentRequest {
    /// The parameters of the client's request.
    #[serde(default)]
    pub authorization: AuthorizationRequest,
    /// The key that the client gets, as in `POST /keys`. By default, its name is the client's, and its scopes are those
    /// that the client requested.
    #[serde(default)]
    pub key: CreateKeyRequest,
}

/// The response to `POST /oauth/consents`.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ConsentResponse {
    /// Where the browser goes: the client's redirect URI with its code, which works once and for 60 seconds.
    pub redirect_to: String,
}

shown_fields!(ConsentResponse:);

/// A program with access to an account, in `GET /account/export`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OAuthGrantDocument {
    /// The client's id, which may be the URL of its metadata document.
    pub client_id: String,
    /// The name that the client gave itself when it registered; null if it did not, or was forgotten.
    pub client_name: Option<String>,
    /// The redirect URI of its code.
    pub redirect_uri: String,
    /// The resource of its token.
    pub resource: String,
    /// The owner's key that gave access.
    pub parent: String,
    /// The terms that the owner consented to, as in `POST /keys`.
    pub terms: CreateKeyRequest,
    /// The client's key; null until its code is redeemed.
    pub key: Option<String>,
    /// When the owner consented, or when the client last got an access token, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub given_at: String,
    /// Until when it can get another access token, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub expires_at: String,
}

/// The response to `POST /oauth/token`.
#[derive(Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TokenResponse {
    /// The access token, which is an API key.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub access_token: IssuedKey,
    /// Always `Bearer`.
    pub token_type: &'static str,
    /// For how many seconds it works.
    pub expires_in: u64,
    /// Replaces the access token. Works once, within 90 days. Token exchange returns none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refresh_token: Option<String>,
    /// Its scopes, separated by spaces.
    pub scope: String,
    /// With token exchange: the type of the token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issued_token_type: Option<&'static str>,
}

shown_fields!(TokenResponse: token_type, expires_in, scope);

/// The response to `POST /oauth/register` (RFC 7591, section 3.2.1).
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RegisteredClientDocument {
    /// The client's id.
    pub client_id: String,
    /// When it registered, in seconds of Unix time.
    pub client_id_issued_at: i64,
    /// Its name.
    pub client_name: String,
    /// Its redirect URIs, without those that cannot be used.
    pub redirect_uris: Vec<String>,
    /// Always `none`: the client has no secret.
    pub token_endpoint_auth_method: &'static str,
    /// Its grant types at the token endpoint.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>))]
    pub grant_types: [&'static str; 2],
    /// Always `code`.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>))]
    pub response_types: [&'static str; 1],
}

/// An error of the token, registration and revocation endpoints (RFC 6749, section 5.2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OAuthErrorBody {
    /// The code, such as `invalid_grant`.
    pub error: &'static str,
    /// The error message: what happened, and what to do.
    pub error_description: String,
}

impl RegisteredClientDocument {
    /// The document of a client that registered at `now`.
    #[must_use]
    pub fn new(id: &str, name: &str, redirect_uris: Vec<String>, now: Timestamp) -> Self {
        Self {
            client_id: id.to_owned(),
            client_id_issued_at: now.unix_seconds(),
            client_name: name.to_owned(),
            redirect_uris,
            token_endpoint_auth_method: "none",
            grant_types: ["authorization_code", "refresh_token"],
            response_types: ["code"],
        }
    }
}
