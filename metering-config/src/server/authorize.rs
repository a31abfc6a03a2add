//! Configuration of the endpoint that proxies ask before they forward a request.

use http::HeaderName;
use serde::{Deserialize, Serialize};

use crate::server::Span;

/// Charging for proxies that ask before they forward a request.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuthorizeConfig {
    /// The header with the id that the proxy gives to a request; empty for none. A proxy that asks again with the same
    /// id is charged once, so the proxy must replace what clients send in it.
    pub request_id_header: String,
    /// Whether the price is held until the proxy says how the request ended (`POST /internal/billing/settle`). Routes
    /// that are priced by usage need it.
    pub settle: bool,
    /// How long the proxy may take to say so, 10s to 24h. After that, the request is charged.
    pub settle_within: Span,
    /// Whether requests are admitted, uncharged and without a key, if no route of the catalogue has their first path
    /// segment.
    pub pass_others: bool,
}

impl Default for AuthorizeConfig {
    fn default() -> Self {
        Self {
            request_id_header: "X-Request-Id".to_owned(),
            settle: false,
            settle_within: Span::seconds(300),
            pass_others: false,
        }
    }
}

impl AuthorizeConfig {
    /// The name of the header with the proxy's id of a request.
    pub fn request_id_header(&self) -> Option<HeaderName> {
        self.request_id_header.parse().ok()
    }
}
