//! Requests that a proxy has charged before it forwards them itself.
//!
//! The proxy forwards the target as the client spelled it, not our normal form, and we do not see the response. So
//! every server must read the target the same way, and the price may be held until the proxy reports the outcome.

use std::time::Duration;

use crate::catalogue::path::{RequestPath, TargetError};
use crate::charging::hold::HoldTerms;
use crate::charging::request_id::RequestId;
use crate::error::Error;
use crate::money::credits::Credits;
use crate::random::SystemRandomness;
use crate::service::RequestHead;

/// Marks a request from a proxy that forwards it itself if it is admitted.
///
/// For [`MeteringLayer`](crate::MeteringLayer), put it into the request's extensions; without the layer, use
/// [`MatchedRequest::proxied`](super::MatchedRequest::proxied). Such a request
///
/// - must spell its path in normal form, and its query so that all servers read it the same way;
/// - is charged once for each id of the proxy, its key and its target, for up to three attempts;
/// - is admitted as [`AdmissionKind::Charged`](super::AdmissionKind::Charged), also if its price is held.
#[derive(Debug, Clone, Default)]
pub struct Proxied {
    /// The id that the proxy assigned to the request. It is safe only if clients cannot choose it.
    pub request_id: Option<RequestId>,
    /// Holds the price for this long instead of charging it. If the proxy does not [settle] it by then, it is charged.
    ///
    /// [settle]: crate::service::Holds::settle
    pub hold: Option<Duration>,
}

impl Proxied {
    /// The proxy's id, in its form for stores.
    pub(super) fn stored_id(&self) -> Option<RequestId> {
        self.request_id.as_ref().map(RequestId::of_proxy)
    }

    /// The amount to hold at this price. `by_usage` is the hold of a price by usage.
    pub(super) fn hold_terms(&self, price: Credits, by_usage: Option<HoldTerms>) -> Option<HoldTerms> {
        match (self.hold, by_usage) {
            (Some(lease), Some(terms)) => Some(HoldTerms { lease, ..terms }),
            (Some(lease), None) => Some(HoldTerms::new(&SystemRandomness, lease, price)),
            (None, by_usage) => by_usage,
        }
    }
}

/// Checks that every server reads a target as we do.
///
/// # Errors
/// [`Error::InvalidParameter`] with the spelling to use.
pub(super) fn check_spelling(request: &RequestHead<'_>, path: &RequestPath<'_>) -> Result<(), Error> {
    if request.path != path.as_str() {
        let problem = format!("must be spelled {}", path.as_str());
        return Err(Error::InvalidParameter([("path".to_owned(), problem)].into()));
    }
    if path.has_encoded_slash() {
        return Err(Error::InvalidPath(TargetError::EncodedSeparator));
    }
    // Characters that separate parameters for some servers, end the target, or have another meaning when not encoded.
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b";#\"<>[]\\^`{|}".contains(&byte);
    if request.query.is_some_and(|query| !query.bytes().all(is_plain)) {
        let problem = "has a character that must be percent-encoded".to_owned();
        return Err(Error::InvalidParameter([("query".to_owned(), problem)].into()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usage::ClientSource;

    #[test]
    fn only_targets_that_all_servers_read_alike_are_forwarded_as_they_are() {
        // path, query, the field that the refusal names
        let table = [
            ("/a/b,c:d", Some("x=a+b%20c&y=B/C:d,e@f&z=a%26b"), None),
            ("/a%20b", None, None),
            ("/%61", None, Some("path")),
            ("/caf%c3%a9", None, Some("path")),
            ("/a", Some("x=1;y=2"), Some("query")),
            ("/a", Some("x=1\\"), Some("query")),
            ("/a", Some("x=\u{e9}"), Some("query")),
            ("/a", Some("x=[1]"), Some("query")),
        ];
        for (path, query, named) in table {
            let request = RequestHead {
                key: None,
                address: None,
                method: "GET",
                body: None,
                path,
                query,
                source: ClientSource::Direct,
                idempotency_key: None,
                payment: None,
            };
            let refused = match check_spelling(&request, &RequestPath::parse(path).unwrap()) {
                Ok(()) => None,
                Err(Error::InvalidParameter(fields)) => fields.into_keys().next(),
                Err(other) => panic!("{other:?}"),
            };
            assert_eq!(refused.as_deref(), named, "{path} {query:?}");
        }
    }
}
