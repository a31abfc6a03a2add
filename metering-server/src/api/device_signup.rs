//! Signup without payment: the flow behind the signup page and terminals (similar to RFC 8628).

use std::fmt::Display;
use std::sync::Arc;

use http::{StatusCode, header};
use metering_core::wire::{
    ApproveRequest, ApproveResponse, ErrorBody, InitiateRequest, InitiateResponse, PendingResponse, StatusResponse,
};
use metering_core::{Clock, Error, SystemClock};

use crate::api::app::App;
use crate::endpoints::Request;
use crate::endpoints::body::read;
use crate::http::{Problem, Reply, json, prefers_html};
use crate::operations::metrics::counted;
use crate::signups::bot::BotChallenge;

pub(crate) async fn initiate(app: &App, request: Request) -> Result<InitiateResponse, Problem> {
    let client = request.client()?;
    app.limits.signup(&client)?;
    let signup: InitiateRequest = read(&request.body)?;
    app.limit_email(&client, signup.email.as_deref())?;
    Ok(counted("signup", app.service.signups().initiate(&signup).await)?)
}

/// Get a proof of work to solve
///
/// In the format of the ALTCHA widget. Exists only if ALTCHA is the configured bot challenge.
#[utoipa::path(get, path = "/signup/challenge", tag = "signup", responses(
    (status = 200, description = "The challenge", content_type = "application/json"),
    (status = 404, description = "`not_found`: ALTCHA is not the configured challenge", body = ErrorBody),
    (status = 429, description = "`rate_limited`", body = ErrorBody),
))]
pub(crate) async fn bot_challenge(app: &App, request: Request) -> Result<Reply, Problem> {
    let BotChallenge::Altcha(work) = &app.bot_challenge else { return Err(Problem::not_found()) };
    let client = request.client()?;
    app.limits.verification(&client)?;
    let (work, address) = (Arc::clone(work), client.ip());
    // Takes milliseconds, during which the worker would serve no other connection.
    let created = tokio::task::spawn_blocking(move || work.challenge(address, SystemClock.now())).await;
    let failed = |error: &dyn Display| {
        tracing::error!(%error, "could not create a bot challenge");
        Problem::internal()
    };
    let challenge = created.map_err(|error| failed(&error))?.map_err(|error| failed(&error))?;
    Ok(json(StatusCode::OK, &challenge))
}

pub(crate) async fn pending(app: &App, request: Request) -> Result<PendingResponse, Problem> {
    app.limits.verification(&request.client()?)?;
    let code = parameter(&request.query, "code").unwrap_or_default();
    Ok(app.service.signups().pending(&code).await?)
}

pub(crate) async fn approve(app: &App, request: Request) -> Result<Reply, Problem> {
    let form = request
        .headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().to_ascii_lowercase().starts_with(b"application/x-www-form-urlencoded"));
    let approved = approve_as(app, &request, form).await;
    if !form || !prefers_html(&request.headers) {
        return Ok(json(StatusCode::OK, &approved?));
    }
    let pages = app.pages.approval();
    Ok(match approved {
        Ok(_) => pages.approved(&request.headers),
        Err(problem) => pages.refused(problem.status(), problem.message()),
    })
}

async fn approve_as(app: &App, request: &Request, form: bool) -> Result<ApproveResponse, Problem> {
    let client = request.client()?;
    app.limits.verification(&client)?;
    let approval = if form { read_form(&request.body) } else { read(&request.body)? };
    let response: ApproveResponse =
        counted("approval", app.service.signups().approve(&approval, Some(client.ip())).await)?;
    app.bot_challenge.approved(client.ip(), SystemClock.now());
    Ok(response)
}

pub(crate) async fn status(app: &App, request: Request) -> Result<StatusResponse, Problem> {
    let Some(token) = parameter(&request.query, "session_token") else {
        return Err(Error::field("session_token", "is required").into());
    };
    app.limits.poll(&request.client()?, &token)?;
    Ok(app.service.signups().status(&token).await?)
}

fn parameter(query: &str, name: &str) -> Option<String> {
    let mut values = form_urlencoded::parse(query.as_bytes());
    values.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

/// Reads the fields of a form. The challenge's solution may come under any of the widgets' field names.
fn read_form(body: &[u8]) -> ApproveRequest {
    let mut request = ApproveRequest::default();
    for (name, value) in form_urlencoded::parse(body) {
        match &*name {
            "user_code" => request.user_code = Some(value.into_owned()),
            "tos_accepted" => request.tos_accepted = matches!(&*value, "true" | "on" | "1"),
            "captcha_token" | "cf-turnstile-response" | "altcha" if !value.is_empty() => {
                request.captcha_token = Some(value.into_owned());
            }
            _ => {}
        }
    }
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_read_with_the_widgets_field_names() {
        for name in ["captcha_token", "cf-turnstile-response", "altcha"] {
            let request = read_form(format!("user_code=BCDF-GHJK&tos_accepted=on&{name}=abc%3D&other=1").as_bytes());
            assert_eq!(request.user_code.as_deref(), Some("BCDF-GHJK"));
            assert_eq!((request.tos_accepted, request.captcha_token.as_deref()), (true, Some("abc=")), "{name}");
        }
        assert!(!read_form(b"tos_accepted=false").tos_accepted);
    }
}
