//! Signing in and out.

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderValue, StatusCode, header};
use metering_admin::labels;
use metering_admin::wire::OperatorDocument;
use metering_core::SystemRandomness;
use metering_core::operators::OperatorToken;
use metering_core::wire::{ErrorBody, ErrorCode};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::access::{COOKIE, session_id, unauthorized};
use super::app::AdminApp;
use super::sessions::SignedIn;
use crate::endpoints::{Request, body};
use crate::http::{Cookie, Problem, Reply, is_from_elsewhere, json};

/// Who is signed in.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SessionDocument {
    /// The operator.
    operator: OperatorDocument,
    /// The value that every action must repeat in `X-CSRF-Token`; null for a request with a bearer token, which needs
    /// none.
    csrf_token: Option<String>,
    /// The service's name.
    name: String,
    /// The display name of each action of the audit log, by its name there.
    #[schema(value_type = BTreeMap<String, String>)]
    actions: BTreeMap<&'static str, &'static str>,
}

/// An operator's token.
#[derive(Deserialize, ToSchema)]
pub(super) struct SignInRequest {
    /// The token that `metering admin operator create` printed.
    token: String,
}

/// Sign in
///
/// Opens a session for a browser, as an `HttpOnly` cookie, for 12 hours or until the server restarts.
#[utoipa::path(post, path = "/admin/session", tag = "session", request_body = SignInRequest, responses(
    (status = 200, description = "Signed in", body = SessionDocument),
    (status = 400, description = "`validation_failed`, `invalid_json`", body = ErrorBody),
    (status = 401, description = "`unauthorized`", body = ErrorBody),
    (status = 403, description = "`forbidden`: a page of another site sent the request", body = ErrorBody),
    (status = 429, description = "`rate_limited`", body = ErrorBody),
))]
pub(super) async fn sign_in(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    let client = request.client()?;
    app.app.limits.verification(&client)?;
    check_site(&request.headers)?;
    let SignInRequest { token } = body::read(&request.body)?;
    let refused = || {
        tracing::warn!(client = %client.ip(), "an operator's sign-in was refused");
        unauthorized()
    };
    let token = OperatorToken::parse(token.trim()).map_err(|_| refused())?;
    let operator = app.administration.operator_by_token(&token.hash()).await?.ok_or_else(refused)?;
    tracing::info!(operator = %operator.name, client = %client.ip(), "an operator signed in");
    let (id, session) = app.sessions.open(SignedIn::Operator(token.hash()), &SystemRandomness);
    let document = SessionDocument {
        operator: OperatorDocument::from(&operator),
        csrf_token: Some(session.csrf().to_owned()),
        name: app.brand.clone(),
        actions: labels(),
    };
    Ok(with_session(json(StatusCode::OK, &document), is_secure(&request.headers), &id))
}

/// Who is signed in
///
/// 204 for a browser that is not: a page that asks this first would otherwise log an error.
#[utoipa::path(get, path = "/admin/session", tag = "session", security(("operator" = [])), responses(
    (status = 200, description = "The operator", body = SessionDocument),
    (status = 204, description = "The request has neither a token nor a session cookie"),
    (status = 401, description = "`unauthorized`", body = ErrorBody),
))]
pub(super) async fn session(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    if !request.headers.contains_key(header::AUTHORIZATION) && session_id(&request.headers).is_none() {
        return Ok(no_content());
    }
    let caller = app.viewer(&request).await?;
    let document = SessionDocument {
        operator: caller.operator,
        csrf_token: caller.session.map(|session| session.csrf().to_owned()),
        name: app.brand.clone(),
        actions: labels(),
    };
    Ok(json(StatusCode::OK, &document))
}

/// Sign out
///
/// Ends the browser's session. Without one, nothing happens.
#[utoipa::path(delete, path = "/admin/session", tag = "session", responses(
    (status = 204, description = "Signed out"),
    (status = 403, description = "`forbidden`: the CSRF token is missing", body = ErrorBody),
))]
pub(super) async fn sign_out(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    if let Ok(caller) = app.viewer(&request).await {
        caller.check_csrf(&request.headers)?;
    }
    if let Some(id) = session_id(&request.headers) {
        app.sessions.close(id);
    }
    Ok(with_session(no_content(), is_secure(&request.headers), ""))
}

/// Another site must not sign a browser in with its own token: the operator would act under another name.
///
/// # Errors
/// 403 when the browser says that a page of another site sent the request (Fetch Metadata, `Sec-Fetch-Site`).
fn check_site(headers: &HeaderMap) -> Result<(), Problem> {
    if is_from_elsewhere(headers) {
        return Err(Problem::new(ErrorCode::Forbidden, "Sign in on the console's own page."));
    }
    Ok(())
}

/// Whether the browser uses HTTPS. Behind a proxy, only its `Origin` tells.
fn is_secure(headers: &HeaderMap) -> bool {
    headers.get(header::ORIGIN).is_some_and(|origin| origin.as_bytes().starts_with(b"https://"))
}

/// Sets the cookie of a session, or deletes it if `id` is empty.
pub(super) fn with_session(mut reply: Reply, is_secure: bool, id: &str) -> Reply {
    Cookie { name: COOKIE, path: "/admin", value: id, is_secure, max_age: None }.set(&mut reply);
    reply
}

/// 204.
pub(super) fn no_content() -> Reply {
    let mut reply = Reply::default();
    *reply.status_mut() = StatusCode::NO_CONTENT;
    reply.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    reply
}
