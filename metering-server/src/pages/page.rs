use http::{HeaderMap, StatusCode};

use crate::http::{Document, Reply, with_headers};
use crate::pages::headers::COMMON_HEADERS;

pub(super) const HTML: &str = "text/html; charset=utf-8";

/// A rendered page and its content security policy.
#[derive(Debug, Clone)]
pub(super) struct Page {
    pub(super) html: Document,
    pub(super) policy: String,
}

impl Page {
    /// Pages are never cached: they may show a key, and the next version refers to other assets.
    pub(super) fn reply(&self, status: StatusCode, request: &HeaderMap) -> Reply {
        let mut reply = self.html.reply_in_full(request);
        *reply.status_mut() = status;
        with_headers(secured(reply), vec![("content-security-policy", self.policy.clone())])
    }
}

/// A reply with the headers of all pages and assets.
pub(super) fn secured(reply: Reply) -> Reply {
    let headers = COMMON_HEADERS.into_iter().map(|(name, value)| (name, value.to_owned()));
    with_headers(reply, headers.collect())
}
