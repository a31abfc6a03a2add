//! The calls of signing in to the console through an OpenID Connect provider.

use std::borrow::Cow;

use http::{HeaderValue, StatusCode, header};
use metering_core::SystemRandomness;
use metering_core::wire::{ErrorBody, ErrorCode};
use serde::Serialize;
use utoipa::ToSchema;

use super::app::AdminApp;
use super::oidc::{LIFETIME, Oidc, Refusal};
use super::person::Person;
use super::session::{no_content, with_session};
use super::sessions::SignedIn;
use crate::endpoints::{Request, query};
use crate::http::{Cookie, Problem, Reply, cookie, json};

/// Ties a sign-in to the browser that began it.
const COOKIE: &str = "metering_oidc";
/// Where the provider sends browsers back to.
const CALLBACK: &str = "/admin/oidc/callback";

/// The provider that operators can sign in through.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ProviderDocument {
    /// Its name for the button.
    name: String,
    /// Why it cannot be used now; null if it can.
    problem: Option<&'static str>,
}

/// The provider to sign in through
///
/// 204 if none is configured. Tokens work as well, also while the provider does not.
#[utoipa::path(get, path = "/admin/oidc", tag = "session", responses(
    (status = 200, description = "The provider", body = ProviderDocument),
    (status = 204, description = "There is none: sign in with a token"),
))]
pub(super) async fn provider(app: &AdminApp, _: Request) -> Result<Reply, Problem> {
    let Some((oidc, config)) = app.oidc.as_ref().zip(app.config.console.oidc.as_ref()) else {
        return Ok(no_content());
    };
    let problem =
        (!oidc.is_available().await).then_some("It cannot be reached. Try again later, or sign in with a token.");
    Ok(json(StatusCode::OK, &ProviderDocument { name: config.name.clone(), problem }))
}

/// Begin to sign in through the provider
///
/// Redirects the browser to the provider, which sends it back to `/admin/oidc/callback`.
#[utoipa::path(get, path = "/admin/oidc/start", tag = "session", responses(
    (status = 303, description = "To the provider; to the sign-in page if the provider cannot be used"),
    (status = 404, description = "`not_found`: no provider is configured", body = ErrorBody),
    (status = 429, description = "`rate_limited`", body = ErrorBody),
))]
pub(super) async fn start(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    let oidc = configured(app)?;
    app.app.limits.verification(&request.client()?)?;
    let (url, browser) = match oidc.begin(&SystemRandomness).await {
        Ok(begun) => begun,
        Err(refusal) => return Ok(refused(&refusal)),
    };
    let mut reply = redirect(url.as_str());
    let (is_secure, max_age) = (oidc.is_secure, Some(LIFETIME));
    Cookie { name: COOKIE, path: CALLBACK, value: &browser, is_secure, max_age }.set_for_links(&mut reply);
    Ok(reply)
}

/// End of signing in through the provider
///
/// Where the provider sends the browser. Opens a session as `POST /admin/session` does.
#[utoipa::path(get, path = "/admin/oidc/callback", tag = "session", params(
    ("state" = Option<String>, Query, description = "The `state` of the request to the provider"),
    ("code" = Option<String>, Query, description = "The authorization code"),
    ("error" = Option<String>, Query, description = "Why the provider refused"),
), responses(
    (status = 303, description = "To the console, signed in, or with the reason in `sign_in`"),
    (status = 404, description = "`not_found`: no provider is configured", body = ErrorBody),
    (status = 429, description = "`rate_limited`", body = ErrorBody),
))]
pub(super) async fn callback(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    let oidc = configured(app)?;
    let client = request.client()?;
    app.app.limits.verification(&client)?;
    let person = match sign_in(app, oidc, &request).await {
        Ok(person) => person,
        Err(refusal) => {
            tracing::warn!(client = %client.ip(), "a sign-in through the provider was refused: {refusal}");
            return Ok(refused(&refusal));
        }
    };
    tracing::info!(operator = %person, client = %client.ip(), "an operator signed in through the provider");
    let (id, _) = app.sessions.open(SignedIn::Person(person.into(), app.app.clock.now()), &SystemRandomness);
    Ok(with_session(redirect("/console"), oidc.is_secure, &id))
}

async fn sign_in(app: &AdminApp, oidc: &Oidc, request: &Request) -> Result<Person, Refusal> {
    // A parameter that is sent twice counts as missing.
    let parameter = |name: &str| query::required(&request.query, name).ok();
    let browser = cookie(&request.headers, COOKIE).ok_or(Refusal::Expired)?;
    let state = parameter("state").ok_or(Refusal::Expired)?;
    let code = parameter("code").ok_or_else(|| parameter("error").unwrap_or_default().chars().take(64).collect());
    let person = oidc.finish(&state, browser, code.map(Cow::into_owned)).await?;
    if app.role(&person).is_none() {
        return Err(Refusal::NoRole(person));
    }
    Ok(person)
}

fn configured(app: &AdminApp) -> Result<&Oidc, Problem> {
    let message = "Operators of this service sign in with tokens only: [console.oidc] is not configured.";
    app.oidc.as_deref().ok_or_else(|| Problem::new(ErrorCode::NotFound, message))
}

fn refused(refusal: &Refusal) -> Reply {
    redirect(&format!("/console?sign_in={}", refusal.code()))
}

/// 303.
fn redirect(to: &str) -> Reply {
    let mut reply = no_content();
    *reply.status_mut() = StatusCode::SEE_OTHER;
    if let Ok(to) = HeaderValue::try_from(to) {
        reply.headers_mut().insert(header::LOCATION, to);
    }
    // The browser may send this page's URL, with the code, in `Referer`.
    reply.headers_mut().insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    reply
}
