//! Verifies email addresses, and replaces lost keys, with links that were sent by mail.

use http::StatusCode;
use metering_core::access::{Email, Scope};
use metering_core::wire::{
    ErrorBody, LinkRequest, RecoverByEmailRequest, RecoverByEmailResponse, SendLinkResponse, VerifiedResponse,
    VerifyResponse,
};

use crate::api::app::App;
use crate::endpoints::Request;
use crate::endpoints::body::read;
use crate::http::{Problem, Reply, json};
use crate::operations::metrics::counted;

/// Send the link that verifies the account's email address
///
/// A new link replaces the one before. It is sent in the background, works once, and expires after 24 hours.
#[utoipa::path(post, path = "/signup/email/send", tag = "signup", security(("bearer" = []), ("api_key" = [])), responses(
    (status = 202, description = "The link is on its way, or the address is already verified", body = SendLinkResponse),
    (status = 401, description = "`unauthorized`, `key_expired`", body = ErrorBody),
    (status = 403, description = "`key_scope`, `key_network`", body = ErrorBody),
    (status = 404, description = "`not_found`: this service sends no mail", body = ErrorBody),
    (status = 409, description = "`no_email_address`; `email_already_registered`: another account has verified the address", body = ErrorBody),
    (status = 429, description = "`rate_limited`", body = ErrorBody),
    (status = 503, description = "`overloaded`, `storage_unavailable`, `outcome_unknown`", body = ErrorBody),
))]
pub(crate) async fn send_link(app: &App, request: Request) -> Result<Reply, Problem> {
    let client = request.client()?;
    app.limits.recovery(&client)?;
    let sender = request.sender()?;
    let account = counted("verification_link", app.service.authorize(&sender, Scope::Manage).await)?;
    if let Some(email) = account.email.as_ref().filter(|_| !account.email_status.is_verified()) {
        app.limits.verification_mail(&client, &account.id, email)?;
    }
    let sent = counted("verification_link", app.service.send_verification(&sender).await)?;
    Ok(json::<SendLinkResponse>(StatusCode::ACCEPTED, &sent))
}

/// Verify an email address
///
/// With the token of the link that was sent there. Works once. The account then gets its free credits, if it has not
/// got them yet.
#[utoipa::path(post, path = "/signup/email/verify", tag = "signup", request_body = LinkRequest, responses(
    (status = 200, description = "Verified", body = VerifiedResponse),
    (status = 400, description = "`invalid_json`, `validation_failed`", body = ErrorBody),
    (status = 409, description = "`email_already_registered`: another account verified the address first", body = ErrorBody),
    (status = 410, description = "`link_expired`: used, replaced by a newer link, or expired", body = ErrorBody),
    (status = 429, description = "`rate_limited`", body = ErrorBody),
    (status = 503, description = "`storage_unavailable`, `outcome_unknown`", body = ErrorBody),
))]
pub(crate) async fn verify_email(app: &App, request: Request) -> Result<Reply, Problem> {
    app.limits.verification(&request.client()?)?;
    let link: LinkRequest = read(&request.body)?;
    let verified: VerifiedResponse = counted("email_verification", app.service.verify_email(&link).await)?;
    Ok(json(StatusCode::OK, &verified))
}

/// Send a link that replaces the account's key
///
/// If an account has verified this address, it gets a link that works once and expires after ten minutes. The response
/// is the same for every address.
#[utoipa::path(post, path = "/api-key/recover/email", tag = "recovery", request_body = RecoverByEmailRequest, responses(
    (status = 202, description = "Accepted, whether or not an account has the address", body = RecoverByEmailResponse),
    (status = 400, description = "`invalid_json`, `validation_failed`", body = ErrorBody),
    (status = 404, description = "`not_found`: this service sends no mail", body = ErrorBody),
    (status = 429, description = "`rate_limited`", body = ErrorBody),
    (status = 503, description = "`overloaded`: too much mail is waiting", body = ErrorBody),
))]
pub(crate) async fn recovery_link(app: &App, request: Request) -> Result<Reply, Problem> {
    let client = request.client()?;
    app.limits.recovery(&client)?;
    let wanted: RecoverByEmailRequest = read(&request.body)?;
    // Known or not, so that a refusal says nothing about accounts. The service refuses a malformed address.
    if let Some(Ok(email)) = wanted.email.as_deref().map(str::parse::<Email>) {
        app.limits.mail(&client, &email)?;
    }
    let accepted = counted("recovery_link", app.service.request_recovery(&wanted))?;
    Ok(json::<RecoverByEmailResponse>(StatusCode::ACCEPTED, &accepted))
}

/// Exchange the token of a recovery link for a new key
///
/// The old key stops working with this response, and its streams end within five seconds. The new key is shown only
/// once, so send an `Idempotency-Key` of at least 32 random characters: if the response is lost, the same request
/// returns the same new key.
#[utoipa::path(post, path = "/api-key/recover/email/confirm", tag = "recovery", request_body = LinkRequest, params(
    ("Idempotency-Key" = Option<String>, Header, min_length = 32, max_length = 258, description = "Makes a lost response available again. At least 32 random characters, such as a UUID; keep it secret"),
), responses(
    (status = 200, description = "The new key, shown only once", body = VerifyResponse),
    (status = 400, description = "`invalid_json`, `validation_failed`", body = ErrorBody),
    (status = 410, description = "`link_expired`: used, replaced by a newer link, or expired", body = ErrorBody),
    (status = 429, description = "`rate_limited`", body = ErrorBody),
    (status = 503, description = "`storage_unavailable`, `outcome_unknown`", body = ErrorBody),
))]
pub(crate) async fn recover_by_link(app: &App, request: Request) -> Result<Reply, Problem> {
    app.limits.recovery(&request.client()?)?;
    let recovery = request.idempotency_key()?;
    let link: LinkRequest = read(&request.body)?;
    let recovered: VerifyResponse =
        counted("email_recovery", app.service.recover_by_email(&link, recovery.as_ref()).await)?;
    Ok(json(StatusCode::OK, &recovered))
}
