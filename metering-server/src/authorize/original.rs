//! Finds a proxy's original request.
//!
//! Proxies send it in `X-Forwarded-Method` and `X-Forwarded-Uri`, in `X-Original-Method` and `X-Original-URI`, or by
//! their own method and a path below `/authorize`. Clients can send these headers too, so all of them must agree.

use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, Method, Uri};
use metering_core::Error;
use metering_core::catalogue::overrides_request;

/// Where proxies ask.
pub(super) const PATH: &str = "/authorize";

static METHODS: [HeaderName; 2] =
    [HeaderName::from_static("x-forwarded-method"), HeaderName::from_static("x-original-method")];
static TARGETS: [HeaderName; 2] =
    [HeaderName::from_static("x-forwarded-uri"), HeaderName::from_static("x-original-uri")];

/// A source of the original method or target, such as a header, and its value.
type Said<'h> = (&'static str, &'h str);

/// Neither of two headers was sent.
const NOTHING: [Option<Said<'static>>; 2] = [None; 2];

/// How a proxy asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asking {
    /// In a separate request. `/authorize/` has no original path if the headers have it.
    Http,
    /// By a message that always has method and path.
    Grpc,
}

/// The method and the target of the original request.
///
/// # Errors
/// [`Error::ValidationFailed`] with the name of the header that is missing, or that contradicts another one.
pub(super) fn original(head: &Parts, asking: Asking) -> Result<(Method, Uri), Error> {
    for name in head.headers.keys() {
        if overrides_request(name.as_str()) && !METHODS.contains(name) && !TARGETS.contains(name) {
            return Err(Error::field(name.as_str(), "could make the service run another request; remove it"));
        }
    }
    let own = head.uri.path_and_query().map_or("", PathAndQuery::as_str);
    let own = own.strip_prefix(PATH).unwrap_or_default();
    let (methods, targets) = (said(&head.headers, &METHODS)?, said(&head.headers, &TARGETS)?);
    // With headers, a further path is what the proxy appended, unless it is empty.
    let has_own = own.starts_with('/') && (own != "/" || targets == NOTHING || asking == Asking::Grpc);
    if methods == NOTHING && !has_own {
        let problem = "is missing; have the proxy set it to the method of the original request";
        return Err(Error::field("X-Forwarded-Method", problem));
    }
    if targets == NOTHING && !has_own {
        let problem = "is missing; have the proxy set it to the path and query of the original request";
        return Err(Error::field("X-Forwarded-Uri", problem));
    }
    let asked = has_own.then(|| ("the method that asks", head.method.as_str()));
    let path = has_own.then_some(("the path below /authorize", own));
    let method = agreed(methods.into_iter().flatten().chain(asked))?;
    let target = agreed(targets.into_iter().flatten().chain(path))?;
    let method = Method::from_bytes(method.as_bytes()).map_err(|error| Error::field("X-Forwarded-Method", error))?;
    Ok((method, parse(target)?))
}

/// The value of a header, if it was sent.
///
/// # Errors
/// When it was sent twice, or is not text.
pub(super) fn once<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h str>, Error> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => match value.to_str() {
            Ok(value) => Ok(Some(value)),
            Err(_) => Err(Error::field(name.as_str(), "must be visible ASCII characters")),
        },
        (Some(_), Some(_)) => Err(Error::field(name.as_str(), "was sent twice; have the proxy replace it")),
    }
}

/// The values of these headers.
fn said<'h>(headers: &'h HeaderMap, names: &'static [HeaderName; 2]) -> Result<[Option<Said<'h>>; 2], Error> {
    let said = |name: &'static HeaderName| once(headers, name).map(|value| value.map(|value| (name.as_str(), value)));
    Ok([said(&names[0])?, said(&names[1])?])
}

/// The value that all say.
fn agreed<'h>(mut all: impl Iterator<Item = Said<'h>>) -> Result<&'h str, Error> {
    let Some((first, value)) = all.next() else { return Err(Error::Internal) };
    match all.find(|(_, other)| *other != value) {
        None => Ok(value),
        Some((other, _)) => {
            let problem = format!("contradicts {other}; have the proxy set one of them and remove the other");
            Err(Error::field(first, problem))
        }
    }
}

fn parse(target: &str) -> Result<Uri, Error> {
    let problem = "must be a path and a query, such as /prices?day=2026-01-31";
    // The parser drops a fragment.
    if !target.starts_with('/') || target.contains('#') {
        return Err(Error::field("X-Forwarded-Uri", problem));
    }
    let target: PathAndQuery = target.parse().map_err(|_| Error::field("X-Forwarded-Uri", problem))?;
    Ok(target.into())
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    type Headers<'h> = &'h [(&'h str, &'h str)];

    fn head(path: &str, headers: Headers<'_>) -> Parts {
        let request = headers.iter().fold(Request::post(path), |request, (name, value)| request.header(*name, *value));
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn the_original_request_is_read_from_every_convention() {
        let forwarded = [("x-forwarded-method", "GET"), ("x-forwarded-uri", "/a?b=c")];
        let original_uri = [("x-original-method", "GET"), ("x-original-uri", "/a?b=c")];
        // path, headers, method and target
        let table: [(&str, Headers<'_>, &str); 7] = [
            ("/authorize", &forwarded, "GET /a?b=c"),
            ("/authorize/", &forwarded, "GET /a?b=c"),
            ("/authorize", &original_uri, "GET /a?b=c"),
            ("/authorize/a?b=c", &[], "POST /a?b=c"),
            ("/authorize/", &[], "POST /"),
            ("/authorize/authorize/a", &[], "POST /authorize/a"),
            ("/authorize/a?b=c", &[("x-forwarded-method", "POST"), ("x-original-uri", "/a?b=c")], "POST /a?b=c"),
        ];
        for (path, headers, expected) in table {
            let (method, target) = original(&head(path, headers), Asking::Http).unwrap();
            assert_eq!(format!("{method} {target}"), expected, "{path}");
        }
    }

    #[test]
    fn a_message_always_has_the_path() {
        let said = [("x-forwarded-method", "POST"), ("x-forwarded-uri", "/")];
        for headers in [&[][..], &said] {
            let (method, target) = original(&head("/authorize/", headers), Asking::Grpc).unwrap();
            assert_eq!(format!("{method} {target}"), "POST /", "{headers:?}");
        }
        // A client's headers for a request for `/`.
        let table: [Headers<'_>; 3] = [
            &[("x-forwarded-method", "POST"), ("x-forwarded-uri", "/cheap")],
            &[("x-original-method", "POST"), ("x-original-uri", "/cheap")],
            &[("x-forwarded-method", "GET")],
        ];
        for headers in table {
            let refused = original(&head("/authorize/", headers), Asking::Grpc);
            assert!(matches!(refused, Err(Error::ValidationFailed(_))), "{headers:?}: {refused:?}");
        }
    }

    #[test]
    fn what_is_missing_or_contradictory_is_refused() {
        let (method, uri) = (("x-forwarded-method", "GET"), ("x-forwarded-uri", "/a"));
        let table: [(&str, Headers<'_>, &str); 9] = [
            ("/authorize", &[], "X-Forwarded-Method"),
            ("/authorize", &[method], "X-Forwarded-Uri"),
            ("/authorize?b=c", &[method], "X-Forwarded-Uri"),
            ("/authorize/b", &[("x-forwarded-method", "POST"), uri], "x-forwarded-uri"),
            ("/authorize", &[method, uri, ("x-original-method", "PUT")], "x-forwarded-method"),
            ("/authorize", &[method, uri, ("x-original-url", "/b")], "x-original-url"),
            ("/authorize", &[method, uri, ("x_forwarded_uri", "/b")], "x_forwarded_uri"),
            ("/authorize", &[method, ("x-forwarded-uri", "/a#b")], "X-Forwarded-Uri"),
            ("/authorize", &[("x-forwarded-method", "G T"), uri], "X-Forwarded-Method"),
        ];
        for (path, headers, named) in table {
            match original(&head(path, headers), Asking::Http) {
                Err(Error::ValidationFailed(fields)) => assert!(fields.contains_key(named), "{path}: {fields:?}"),
                other => panic!("{path} {headers:?}: {other:?}"),
            }
        }
    }
}
