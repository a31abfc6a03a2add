//! The parts of a request that do not reach the inner service as the client sent them.

use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Uri, header};

use crate::catalogue::body::CheckedBody;
use crate::catalogue::override_headers::{is_same_header, overrides_request};
use crate::error::Error;

/// Headers that describe the body as the client spelled it.
const OF_BODY: [&str; 7] = [
    "content-digest",
    "content-encoding",
    "content-language",
    "content-length",
    "content-md5",
    "digest",
    "repr-digest",
];

/// Forwards the checked body instead of the client's.
pub(super) fn forward_checked(head: &mut Parts, body: CheckedBody) {
    drop_body_headers(&mut head.headers);
    forward_as_json(&mut head.headers);
    if let Some(hidden) = body.hidden_events() {
        head.extensions.insert(hidden.clone());
    }
    head.extensions.insert(body);
}

/// Removes headers that describe a body that is not forwarded as the client sent it.
pub(super) fn drop_body_headers(headers: &mut HeaderMap) {
    drop_headers(headers, |name| OF_BODY.iter().any(|known| is_same_header(name, known)));
}

/// Makes the upstream read the body in the same way: as JSON. Some servers would read a form or another charset if the
/// client's `Content-Type` named one.
pub(super) fn forward_as_json(headers: &mut HeaderMap) {
    drop_headers(headers, |name| is_same_header(name, header::CONTENT_TYPE.as_str()));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
}

/// Removes headers that could make a service run a different request than the one that was priced or passed through.
pub(super) fn drop_overrides(headers: &mut HeaderMap) {
    drop_headers(headers, overrides_request);
}

/// Sets the path and query of a URI. False when they are too long for one: normalising a query's encoding can make it
/// longer.
pub(super) fn set_target(uri: &mut Uri, target: String) -> bool {
    // Most requests are sent in normal form.
    if uri.path_and_query().is_some_and(|sent| sent.as_str() == target) {
        return true;
    }
    let Ok(target) = PathAndQuery::try_from(target) else { return false };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(target);
    Uri::from_parts(parts).map(|forwarded| *uri = forwarded).is_ok()
}

/// The error of [`set_target`].
pub(super) fn too_long() -> Error {
    Error::InvalidParameter([("query".to_owned(), "is too long".to_owned())].into())
}

fn drop_headers(headers: &mut HeaderMap, dropped: impl Fn(&str) -> bool) {
    let names: Vec<_> = headers.keys().filter(|name| dropped(name.as_str())).cloned().collect();
    for name in names {
        headers.remove(name);
    }
}
