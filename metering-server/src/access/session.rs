//! Sessions of signed-in browsers: the cookie, and whose requests it counts for.
//!
//! A browser makes the calls of its account at their own paths below [`PREFIX`], and the cookie is for that path only. So no
//! metered route, upstream, proxy or MCP server ever gets it.

use http::{HeaderMap, Request};
use metering_core::Service;
use metering_core::access::{BrowserSession, BrowserToken, SessionCredentials};
use metering_core::wire::ErrorCode;

use crate::http::{Cookie, Problem, Reply, cookie, is_from_elsewhere, is_from_here, is_plain_and_local};

/// The prefix of the paths of calls with a session.
const PREFIX: &str = "/metering/session";
const COOKIE: &str = "metering_session";

/// The path of the call that a browser makes with its session; `None` for other paths.
pub(crate) fn call_of(path: &str) -> Option<&str> {
    path.strip_prefix(PREFIX).filter(|call| call.starts_with('/'))
}

/// The token in the cookie of a request.
///
/// # Errors
/// 403 when a page of another origin sent the request; 401 without a token.
pub(crate) fn token<B>(request: &Request<B>) -> Result<BrowserToken, Problem> {
    if !is_from_here(request) {
        return Err(elsewhere());
    }
    let token = cookie(request.headers(), COOKIE).and_then(|text| BrowserToken::parse(text).ok());
    token.ok_or_else(signed_out)
}

/// The session with this token.
///
/// # Errors
/// 401 when it has ended; or when the store fails.
pub(crate) async fn find(service: &Service, token: &BrowserToken) -> Result<SessionCredentials, Problem> {
    service.browser_sessions().find(token).await?.ok_or_else(signed_out)
}

/// The reply to a request whose session was not found. If it has ended, the browser forgets it.
pub(crate) fn refused(problem: Problem, headers: &HeaderMap) -> Reply {
    let has_ended = problem.code() == ErrorCode::Unauthorized && cookie(headers, COOKIE).is_some();
    let mut reply = problem.into_reply();
    if has_ended {
        close(&mut reply, headers);
    }
    reply
}

/// A page of another site must not sign a browser in to its own account: purchases would then go to that account.
///
/// # Errors
/// 403 when such a page sent the request, according to the browser.
pub(crate) fn check_sign_in(headers: &HeaderMap) -> Result<(), Problem> {
    if is_from_elsewhere(headers) { Err(elsewhere()) } else { Ok(()) }
}

/// Has the browser keep a token.
pub(crate) fn open(reply: &mut Reply, headers: &HeaderMap, token: &BrowserToken) {
    set(reply, headers, token.expose());
}

/// Has the browser forget its token.
pub(crate) fn close(reply: &mut Reply, headers: &HeaderMap) {
    set(reply, headers, "");
}

fn set(reply: &mut Reply, headers: &HeaderMap, value: &str) {
    let (is_secure, max_age) = (!is_plain_and_local(headers), Some(BrowserSession::MAX_AGE));
    Cookie { name: COOKIE, path: PREFIX, value, is_secure, max_age }.set(reply);
}

fn elsewhere() -> Problem {
    Problem::new(ErrorCode::Forbidden, "Sign in on the service's own pages, and send this request from there.")
}

fn signed_out() -> Problem {
    Problem::new(ErrorCode::Unauthorized, "This browser is not signed in, or its session has ended. Sign in again.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_below_the_prefix() {
        // path, call
        let table = [
            ("/metering/session/credits/balance", Some("/credits/balance")),
            ("/metering/session/", Some("/")),
            ("/metering/session", None),
            ("/metering/sessions/x", None),
            ("/metering/account", None),
        ];
        for (path, call) in table {
            assert_eq!(call_of(path), call, "{path}");
        }
    }

    #[test]
    fn a_browser_forgets_a_session_that_has_ended() {
        let request = |headers: &[(&str, &str)]| {
            let request =
                headers.iter().fold(Request::builder(), |request, (name, value)| request.header(*name, *value));
            request.body(()).unwrap()
        };
        let refusal = |headers: &[(&str, &str)]| {
            let request = request(headers);
            refused(token(&request).unwrap_err(), request.headers())
        };
        let ended = refusal(&[("cookie", "metering_session=old")]);
        assert_eq!(ended.status(), 401);
        assert!(ended.headers()["set-cookie"].to_str().unwrap().ends_with("; Secure; Max-Age=0"), "{ended:?}");
        assert!(!refusal(&[]).headers().contains_key("set-cookie"));
        let foreign = refusal(&[("cookie", "metering_session=old"), ("sec-fetch-site", "cross-site")]);
        assert_eq!(foreign.status(), 403);
        assert!(!foreign.headers().contains_key("set-cookie"));
    }
}
