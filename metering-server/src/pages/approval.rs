//! The pages for the form that approves a signup. Browsers without our script send it, and their users must not get
//! JSON.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::http::{Reply, bytes, with_headers};
use crate::pages::markdown::escape;
use crate::pages::page::{HTML, Page, secured};

/// Where the reason of a refusal goes. Not HTML's own: templates escape what they insert, and this is inserted at
/// startup.
pub(super) const REASON: &str = "\u{fdd0}reason\u{fdd0}";

/// The outcome of approving a signup, as pages.
#[derive(Debug)]
pub(crate) struct ApprovalPages {
    approved: Page,
    /// Has [`REASON`] in the place of the reason.
    refused: Page,
}

impl ApprovalPages {
    pub(super) const fn new(approved: Page, refused: Page) -> Self {
        Self { approved, refused }
    }

    /// The signup was approved.
    pub(crate) fn approved(&self, headers: &HeaderMap) -> Reply {
        self.approved.reply(StatusCode::OK, headers)
    }

    /// It was not, for a reason in words for people.
    pub(crate) fn refused(&self, status: StatusCode, reason: &str) -> Reply {
        let page = String::from_utf8_lossy(self.refused.html.body());
        let html = page.replace(REASON, &escape(reason));
        let reply = bytes(status, HeaderValue::from_static(HTML), Bytes::from(html));
        with_headers(secured(reply), vec![("content-security-policy", self.refused.policy.clone())])
    }
}
