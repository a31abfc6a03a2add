//! OAuth: the consent page's calls, and the endpoints of clients.

use http::StatusCode;
use metering_core::access::Caller;
use metering_core::service::{OAuth, OAuthError, TokenForm};
use metering_core::wire::{
    AuthorizationDocument, AuthorizationRequest, ConsentRequest, ConsentResponse, ErrorBody, OAuthErrorBody,
    RegisteredClientDocument, TokenResponse,
};
use serde::Serialize;

use crate::api::app::App;
use crate::api::keys::parent_key;
use crate::endpoints::Request;
use crate::endpoints::body::read;
use crate::http::{Problem, Reply, json, no_oauth};
use crate::oauth::{RESOURCE_METADATA, ResourceMetadata, ServerMetadata, published};
use crate::operations::metrics::counted;

/// A client's metadata at registration. Other members are ignored.
#[derive(Debug, utoipa::ToSchema)]
#[allow(dead_code, reason = "describes what `OAuthClient` reads")]
struct RegistrationRequest {
    /// Where responses to it may go: `https`, or `http` on its own machine.
    redirect_uris: Vec<String>,
    /// Its name, for people.
    client_name: Option<String>,
}

/// The form of `POST /oauth/token`. Each `grant_type` needs some of it.
#[derive(Debug, utoipa::ToSchema)]
#[allow(dead_code, reason = "describes what `TokenForm` reads")]
struct TokenRequest {
    /// `authorization_code`, `refresh_token` or `urn:ietf:params:oauth:grant-type:token-exchange`.
    grant_type: String,
    /// With a code or a refresh token.
    client_id: Option<String>,
    /// The authorization code.
    code: Option<String>,
    /// The code verifier.
    code_verifier: Option<String>,
    /// Where the code was sent.
    redirect_uri: Option<String>,
    /// The refresh token.
    refresh_token: Option<String>,
    /// The resource that the token is for, as in the authorization request.
    resource: Option<String>,
    /// For token exchange: the key to make a narrower one of.
    subject_token: Option<String>,
    /// For token exchange: `urn:ietf:params:oauth:token-type:access_token`.
    subject_token_type: Option<String>,
    /// For token exchange: the scopes of the new key, separated by spaces.
    scope: Option<String>,
}

/// The form of `POST /oauth/revoke`.
#[derive(Debug, utoipa::ToSchema)]
#[allow(dead_code, reason = "describes what `TokenForm` reads")]
struct RevocationRequest {
    /// An access token or a refresh token.
    token: String,
}

pub(crate) async fn describe_authorization(app: &App, request: Request) -> Result<AuthorizationDocument, Problem> {
    let (oauth, issuer) = offered(app, &request)?;
    // It may cause a document to be fetched.
    app.limits.verification(&request.client()?)?;
    let asked: AuthorizationRequest = read(&request.body)?;
    Ok(oauth.describe(&asked, &issuer).await?)
}

pub(crate) async fn consent(app: &App, request: Request) -> Result<ConsentResponse, Problem> {
    let (oauth, issuer) = offered(app, &request)?;
    let parent = parent_key(app, &request).await?;
    let sender = request.sender()?;
    let member = Caller::from(&sender).member();
    let wanted: ConsentRequest = read(&request.body)?;
    Ok(counted("oauth_consent", oauth.consent(&parent, member, &wanted, &issuer).await)?)
}

/// Register a client
///
/// For programs that have no client id metadata document (RFC 7591). A registration is forgotten after a day without a
/// token, and 180 days after its last use.
#[utoipa::path(post, path = "/oauth/register", operation_id = "oauth_register", tag = "oauth",
    request_body = RegistrationRequest,
    responses(
        (status = 201, description = "The client, which has no secret", body = RegisteredClientDocument),
        (status = 400, description = "`invalid_redirect_uri`, `invalid_client_metadata`", body = OAuthErrorBody),
        (status = 404, description = "`not_found`: this service offers no OAuth", body = ErrorBody),
        (status = 429, description = "`rate_limited`", body = ErrorBody),
    )
)]
pub(crate) async fn oauth_register(app: &App, request: Request) -> Result<Reply, Problem> {
    let (oauth, _) = offered(app, &request)?;
    app.limits.verification(&request.client()?)?;
    let registered = oauth.register(&request.body).await;
    reply(StatusCode::CREATED, registered)
}

/// Get an access token
///
/// For an authorization code, a refresh token, or another key (token exchange, RFC 8693). The access token is an API key
/// that works for an hour.
#[utoipa::path(post, path = "/oauth/token", operation_id = "oauth_token", tag = "oauth",
    request_body(content = TokenRequest, content_type = "application/x-www-form-urlencoded"),
    responses(
        (status = 200, description = "The token", body = TokenResponse),
        (status = 400, description = "`invalid_request`, `invalid_grant`, `invalid_scope`, `invalid_target`, \
            `unsupported_grant_type`", body = OAuthErrorBody),
        (status = 404, description = "`not_found`: this service offers no OAuth", body = ErrorBody),
        (status = 429, description = "`rate_limited`", body = ErrorBody),
        (status = 503, description = "`storage_unavailable`, `outcome_unknown`", body = ErrorBody),
    )
)]
pub(crate) async fn oauth_token(app: &App, request: Request) -> Result<Reply, Problem> {
    let (oauth, issuer) = offered(app, &request)?;
    let form = match TokenForm::parse(&request.body) {
        Ok(form) => form,
        Err(error) => return refused(error),
    };
    if !form.is_exchange() {
        if let Some(key) = oauth.refreshed_key(&form).await? {
            app.limits.refresh(&key)?;
        }
        return reply(StatusCode::OK, oauth.token(&form, &issuer).await);
    }
    match oauth.subject(&form, request.address.map(|client| client.0)).await {
        Ok(subject) => {
            app.limits.key_changes(&subject)?;
            reply(StatusCode::OK, oauth.exchange(&form, &subject, &issuer).await)
        }
        Err(error) => refused(error),
    }
}

/// Revoke a token
///
/// Ends the access that the owner gave, with its key (RFC 7009). The response is the same for tokens that are unknown.
#[utoipa::path(post, path = "/oauth/revoke", operation_id = "oauth_revoke", tag = "oauth",
    request_body(content = RevocationRequest, content_type = "application/x-www-form-urlencoded"),
    responses(
        (status = 200, description = "The token is not valid", content_type = "application/json"),
        (status = 400, description = "`invalid_request`, `invalid_client`", body = OAuthErrorBody),
        (status = 404, description = "`not_found`: this service offers no OAuth", body = ErrorBody),
        (status = 503, description = "`storage_unavailable`, `outcome_unknown`", body = ErrorBody),
    )
)]
pub(crate) async fn oauth_revoke(app: &App, request: Request) -> Result<Reply, Problem> {
    let (oauth, _) = offered(app, &request)?;
    let revoked = match TokenForm::parse(&request.body) {
        Ok(form) => oauth.revoke(&form).await,
        Err(error) => Err(error),
    };
    reply(StatusCode::OK, revoked.map(|()| serde_json::json!({})))
}

/// The authorization server of this service
///
/// OAuth 2.0 protected resource metadata (RFC 9728).
#[utoipa::path(get, path = "/.well-known/oauth-protected-resource", operation_id = "oauth_service_metadata", tag = "oauth",
    responses(
        (status = 200, description = "The metadata", content_type = "application/json"),
        (status = 404, description = "`not_found`: this service offers no OAuth", body = ErrorBody),
    )
)]
pub(crate) async fn oauth_service_metadata(app: &App, request: Request) -> Result<Reply, Problem> {
    metadata(app, &request, RESOURCE_METADATA, |issuer| ResourceMetadata::new(issuer, "", issuer))
}

/// The authorization server of the MCP server
///
/// OAuth 2.0 protected resource metadata (RFC 9728), of `/mcp` or `/sse`.
#[utoipa::path(get, path = "/.well-known/oauth-protected-resource/{endpoint}", operation_id = "oauth_resource_metadata", tag = "oauth",
    params(("endpoint" = String, Path, description = "`mcp` or `sse`", example = "mcp")),
    responses(
        (status = 200, description = "The metadata", content_type = "application/json"),
        (status = 404, description = "`not_found`: this service offers no OAuth, or has nothing at this path", body = ErrorBody),
    )
)]
pub(crate) async fn oauth_resource_metadata(app: &App, request: Request) -> Result<Reply, Problem> {
    let path = match request.path.first().map(String::as_str) {
        Some("mcp") => "/mcp",
        Some("sse") => "/sse",
        _ => return Err(Problem::not_found()),
    };
    metadata(app, &request, RESOURCE_METADATA, |issuer| ResourceMetadata::new(issuer, path, issuer))
}

/// How this service gives tokens
///
/// OAuth 2.0 authorization server metadata (RFC 8414).
#[utoipa::path(get, path = "/.well-known/oauth-authorization-server", operation_id = "oauth_server_metadata", tag = "oauth",
    responses(
        (status = 200, description = "The metadata", content_type = "application/json"),
        (status = 404, description = "`not_found`: this service offers no OAuth", body = ErrorBody),
    )
)]
pub(crate) async fn oauth_server_metadata(app: &App, request: Request) -> Result<Reply, Problem> {
    metadata(app, &request, "/.well-known/oauth-authorization-server", ServerMetadata::new)
}

/// OAuth, and the issuer as the client knows it.
fn offered<'a>(app: &'a App, request: &Request) -> Result<(OAuth<'a>, String), Problem> {
    let offered = app.service.oauth().zip(app.issuer.as_ref());
    let (oauth, issuer) = offered.ok_or_else(Problem::not_found)?;
    Ok((oauth, issuer.of(&request.headers)))
}

/// A document; without OAuth, the error response.
fn metadata<T: Serialize>(
    app: &App,
    request: &Request,
    path: &str,
    document: impl FnOnce(&str) -> T,
) -> Result<Reply, Problem> {
    let Some(issuer) = &app.issuer else { return no_oauth(path).ok_or_else(Problem::not_found) };
    Ok(published(&document(&issuer.of(&request.headers))))
}

fn reply<T: Serialize>(status: StatusCode, outcome: Result<T, OAuthError>) -> Result<Reply, Problem> {
    match outcome {
        Ok(document) => Ok(json(status, &document)),
        Err(error) => refused(error),
    }
}

fn refused(error: OAuthError) -> Result<Reply, Problem> {
    let body: OAuthErrorBody = error.into_body()?;
    Ok(json(StatusCode::BAD_REQUEST, &body))
}
