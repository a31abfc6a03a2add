//! Signs browsers in and out, and lists where an account is signed in.

use metering_client::calls::sessions::{CreateSession, EndSession, EndSessions, SignInByLink};
use metering_core::access::{DeviceName, Email};
use metering_core::service::OpenedSession;
use metering_core::wire::call::Call;
use metering_core::wire::{
    BrowserSessionResponse, BrowserSessionsDocument, LinkAccountResponse, LinkRequest, RecoverByEmailResponse,
    SignInLinkRequest, WalletSignInRequest, WalletSignInResponse,
};

use crate::access::session::{check_sign_in, close, open};
use crate::api::app::App;
use crate::endpoints::body::read;
use crate::endpoints::{Request, reply};
use crate::http::{Problem, Reply};
use crate::operations::metrics::counted;

/// Means the session of the requesting browser, instead of an id.
const CURRENT: &str = "current";

pub(crate) async fn create_session(app: &App, request: Request) -> Result<Reply, Problem> {
    app.limits.verification(&request.client()?)?;
    check_sign_in(&request.headers)?;
    let opened = app.service.browser_sessions().open(&request.sender()?, device(&request)).await;
    signed_in::<CreateSession>(&request, &counted("session", opened)?)
}

pub(crate) async fn sign_in_link(app: &App, request: Request) -> Result<RecoverByEmailResponse, Problem> {
    let client = request.client()?;
    app.limits.recovery(&client)?;
    let wanted: SignInLinkRequest = read(&request.body)?;
    // Counted for unknown addresses too: a refusal must not reveal whether an account exists. The service refuses a
    // malformed address.
    if let Some(Ok(email)) = wanted.email.as_deref().map(str::parse::<Email>) {
        app.limits.mail(&client, &email)?;
    }
    Ok(counted("sign_in_link", app.service.emails().request_sign_in(&wanted).await)?)
}

pub(crate) async fn sign_in_with_wallet(app: &App, request: Request) -> Result<WalletSignInResponse, Problem> {
    app.limits.recovery(&request.client()?)?;
    let wanted: WalletSignInRequest = read(&request.body)?;
    app.limit_wallet(wanted.address.as_deref())?;
    Ok(counted("wallet_sign_in", app.service.browser_sessions().begin_with_wallet(&wanted).await)?)
}

pub(crate) async fn sign_in_account(app: &App, request: Request) -> Result<LinkAccountResponse, Problem> {
    app.limits.recovery(&request.client()?)?;
    let link: LinkRequest = read(&request.body)?;
    Ok(app.service.browser_sessions().accounts_of_link(&link).await?)
}

pub(crate) async fn sign_in_by_link(app: &App, request: Request) -> Result<Reply, Problem> {
    app.limits.recovery(&request.client()?)?;
    check_sign_in(&request.headers)?;
    let link: LinkRequest = read(&request.body)?;
    let opened = app.service.browser_sessions().open_by_link(&link, device(&request)).await;
    signed_in::<SignInByLink>(&request, &counted("session_by_link", opened)?)
}

pub(crate) async fn sessions(app: &App, request: Request) -> Result<BrowserSessionsDocument, Problem> {
    Ok(app.service.browser_sessions().list(&request.sender()?).await?)
}

pub(crate) async fn end_sessions(app: &App, request: Request) -> Result<Reply, Problem> {
    let ended = app.service.browser_sessions().end_all(&request.sender()?).await;
    let mut reply = reply::<EndSessions>(&counted("session_end", ended)?)?;
    if request.session.is_some() {
        close(&mut reply, &request.headers);
    }
    Ok(reply)
}

pub(crate) async fn end_session(app: &App, request: Request) -> Result<Reply, Problem> {
    let id = request.segment(0);
    let own = request.session.as_ref().filter(|session| id == CURRENT || id == session.id.to_string());
    let sessions = app.service.browser_sessions();
    let ended = match own {
        Some(own) => sessions.end_current(own).await,
        None => sessions.end(&request.sender()?, id).await,
    };
    let mut reply = reply::<EndSession>(&counted("session_end", ended)?)?;
    if own.is_some() {
        close(&mut reply, &request.headers);
    }
    Ok(reply)
}

fn signed_in<C>(request: &Request, opened: &OpenedSession) -> Result<Reply, Problem>
where
    C: Call<Reply = BrowserSessionResponse>,
{
    let mut reply = reply::<C>(&opened.response)?;
    open(&mut reply, &request.headers, &opened.token);
    Ok(reply)
}

fn device(request: &Request) -> DeviceName {
    let header = request.headers.get(http::header::USER_AGENT).and_then(|value| value.to_str().ok());
    DeviceName::of_user_agent(header.unwrap_or_default())
}
