//! Configuration of the endpoint that proxies ask before they forward a request.

use http::HeaderName;

use crate::server::Span;
use crate::server::section::section;

section! {
    /// Charging for proxies that ask before they forward a request.
    pub struct AuthorizeConfig;

    /// The header with the id that the proxy gives to a request; empty for none. A proxy that asks again with the same
    /// id is charged once, so the proxy must replace what clients send in it.
    request_id_header: String = "X-Request-Id".to_owned(),
    /// Whether to hold the price until the proxy reports the request's outcome (`POST /internal/billing/settle`).
    /// Routes that are priced by usage need it.
    settle: bool = false,
    /// How long to wait for that report, 10s to 24h. After that, the request is charged.
    settle_within: Span = Span::seconds(300),
    /// Whether requests are admitted, uncharged and without a key, if no route of the catalogue has their first path
    /// segment.
    pass_others: bool = false,
}

impl AuthorizeConfig {
    /// The name of the header with the proxy's id of a request.
    pub fn request_id_header(&self) -> Option<HeaderName> {
        self.request_id_header.parse().ok()
    }
}
