//! Authentication: an operator with a bearer token, or a browser with a session of an operator or a person.

use http::{HeaderMap, header};
use metering_admin::Action;
use metering_admin::wire::OperatorDocument;
use metering_core::operators::{Actor, OperatorToken, Role};
use metering_core::wire::ErrorCode;
use serde::de::DeserializeOwned;

use super::app::AdminApp;
use super::person::Person;
use super::sessions::{Session, SignedIn};
use crate::endpoints::{Request, body};
use crate::http::{Problem, cookie};

/// The name of the cookie that has a session's id.
pub(super) const COOKIE: &str = "metering_operator";
/// The header that repeats a session's secret.
const CSRF_HEADER: &str = "x-csrf-token";

/// An authenticated operator.
#[derive(Debug)]
pub(super) struct Caller {
    /// As the audit log names them.
    pub(super) actor: Actor,
    pub(super) role: Role,
    pub(super) operator: OperatorDocument,
    /// The browser's session, if it is one.
    pub(super) session: Option<Session>,
}

impl AdminApp {
    /// Authenticates an operator of any role.
    ///
    /// # Errors
    /// 401 without a token or session that is live.
    pub(super) async fn viewer(&self, request: &Request) -> Result<Caller, Problem> {
        let (who, session) = match bearer(&request.headers)? {
            Some(token) => (SignedIn::Operator(token.hash()), None),
            None => {
                let session = session_id(&request.headers).and_then(|id| self.sessions.find(id));
                let session = session.ok_or_else(unauthorized)?;
                (session.who.clone(), Some(session))
            }
        };
        match who {
            SignedIn::Operator(hash) => {
                let found = self.administration.operator_by_token(&hash).await?.ok_or_else(unauthorized)?;
                let (role, operator) = (found.role, OperatorDocument::from(&found));
                Ok(Caller { actor: Actor::Operator(found.name), role, operator, session })
            }
            SignedIn::Person(person, at) => {
                let role = self.role(&person).ok_or_else(unauthorized)?;
                let operator = person.document(role, at);
                Ok(Caller { actor: Actor::Oidc(person.to_string()), role, operator, session })
            }
        }
    }

    /// A person's current role; `None` for a person who may no longer sign in. Read from the configuration, so that
    /// sessions end when a reload takes an entry away.
    pub(super) fn role(&self, person: &Person) -> Option<Role> {
        self.config.console.oidc.as_ref()?.role(person.email(), person.groups())
    }

    /// The body of an action. Authenticate the caller first: only operators may see what is wrong with a request.
    ///
    /// # Errors
    /// As [`AdminApp::viewer`], and 400 for a body that is not valid.
    pub(super) async fn read<T: DeserializeOwned>(&self, request: &Request) -> Result<T, Problem> {
        self.viewer(request).await?;
        body::read(&request.body)
    }

    /// An action of a manager, with the reason from the request's body.
    ///
    /// # Errors
    /// 401 as [`AdminApp::viewer`], 403 for a viewer or without the session's secret, 400 without a reason.
    pub(super) async fn action(&self, request: &Request, reason: &str) -> Result<Action, Problem> {
        let caller = self.viewer(request).await?;
        caller.check_manager(&request.headers)?;
        Ok(Action::new(caller.actor, reason)?)
    }
}

impl Caller {
    /// # Errors
    /// 403 for a viewer, or without the session's secret.
    pub(super) fn check_manager(&self, headers: &HeaderMap) -> Result<(), Problem> {
        self.check_csrf(headers)?;
        if self.role == Role::Manager {
            return Ok(());
        }
        Err(Problem::new(ErrorCode::Forbidden, "Only managers may do this; your role is viewer."))
    }

    /// # Errors
    /// 403 when the request comes from a session and does not repeat its secret.
    pub(super) fn check_csrf(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let Some(session) = &self.session else { return Ok(()) };
        let sent = headers.get(CSRF_HEADER).map(http::HeaderValue::as_bytes).unwrap_or_default();
        if session.admits(sent) {
            return Ok(());
        }
        let message = "Send the session's csrf_token in the header X-CSRF-Token.";
        Err(Problem::new(ErrorCode::Forbidden, message))
    }
}

/// The token in `Authorization`.
///
/// # Errors
/// 401 when the header has no well-formed token.
fn bearer(headers: &HeaderMap) -> Result<Option<OperatorToken>, Problem> {
    let Some(value) = headers.get(header::AUTHORIZATION) else { return Ok(None) };
    let text = value.to_str().map_err(|_| unauthorized())?;
    let token = text.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    let (_, token) = token.ok_or_else(unauthorized)?;
    OperatorToken::parse(token.trim()).map(Some).map_err(|_| unauthorized())
}

/// The session's id in the cookies of a request.
pub(super) fn session_id(headers: &HeaderMap) -> Option<&str> {
    cookie(headers, COOKIE)
}

pub(super) fn unauthorized() -> Problem {
    let message = "Sign in, or send an operator's token as 'Authorization: Bearer opr_...'.";
    Problem::new(ErrorCode::Unauthorized, message)
}
