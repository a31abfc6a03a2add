//! Verifies email addresses, and replaces lost keys, with links that were sent by mail.

use metering_core::access::{Email, Scope};
use metering_core::wire::{
    LinkRequest, RecoverByEmailRequest, RecoverByEmailResponse, SendLinkResponse, VerifiedResponse, VerifyResponse,
};

use crate::api::app::App;
use crate::endpoints::Request;
use crate::endpoints::body::read;
use crate::http::Problem;
use crate::operations::metrics::counted;

pub(crate) async fn send_link(app: &App, request: Request) -> Result<SendLinkResponse, Problem> {
    let client = request.client()?;
    app.limits.recovery(&client)?;
    let sender = request.sender()?;
    let account = counted("verification_link", app.service.access().authorize(&sender, Scope::Manage).await)?;
    if let Some(email) = account.email.as_ref().filter(|_| !account.email_status.is_verified()) {
        app.limits.verification_mail(&client, &account.id, email)?;
    }
    let sent = counted("verification_link", app.service.emails().send_verification(&sender).await)?;
    Ok(sent)
}

pub(crate) async fn verify_email(app: &App, request: Request) -> Result<VerifiedResponse, Problem> {
    app.limits.verification(&request.client()?)?;
    let link: LinkRequest = read(&request.body)?;
    let verified: VerifiedResponse = counted("email_verification", app.service.emails().verify(&link).await)?;
    Ok(verified)
}

pub(crate) async fn recovery_link(app: &App, request: Request) -> Result<RecoverByEmailResponse, Problem> {
    let wanted = address(app, &request)?;
    let accepted = counted("recovery_link", app.service.emails().request_recovery(&wanted))?;
    Ok(accepted)
}

/// Counts a request for a link towards the limits of its address.
///
/// # Errors
/// 400 for a body that is not valid; 429 when a limit is reached.
fn address(app: &App, request: &Request) -> Result<RecoverByEmailRequest, Problem> {
    let client = request.client()?;
    app.limits.recovery(&client)?;
    let wanted: RecoverByEmailRequest = read(&request.body)?;
    // Counted for unknown addresses too: a refusal must not reveal whether an account exists. The service refuses a
    // malformed address.
    if let Some(Ok(email)) = wanted.email.as_deref().map(str::parse::<Email>) {
        app.limits.mail(&client, &email)?;
    }
    Ok(wanted)
}

pub(crate) async fn recover_by_link(app: &App, request: Request) -> Result<VerifyResponse, Problem> {
    app.limits.recovery(&request.client()?)?;
    let recovery = request.idempotency_key()?;
    let link: LinkRequest = read(&request.body)?;
    let recovered: VerifyResponse =
        counted("email_recovery", app.service.emails().recover(&link, recovery.as_ref()).await)?;
    Ok(recovered)
}
