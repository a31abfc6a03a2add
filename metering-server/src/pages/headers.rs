//! Security headers of the pages: no third-party code, no referrer, no archived copies.

use url::Url;

/// Headers of pages and assets alike.
pub(super) const COMMON_HEADERS: [(&str, &str); 7] = [
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", PERMISSIONS_POLICY),
    ("x-robots-tag", "noarchive"),
];

/// Pages need no browser feature except writing to the clipboard, for the copy buttons.
const PERMISSIONS_POLICY: &str = "accelerometer=(), autoplay=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), \
     magnetometer=(), microphone=(), midi=(), payment=(), usb=(), clipboard-read=(), clipboard-write=(self)";

/// The external sources of a page.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Elsewhere<'u> {
    /// A third-party script, with its frame.
    pub(super) guest: Option<&'u Url>,
    /// The metered routes, if they have another origin than the pages.
    pub(super) api: Option<&'u Url>,
}

/// The content security policy of a page.
pub(super) fn content_security_policy(elsewhere: Elsewhere<'_>) -> String {
    let origin =
        |url: Option<&Url>| url.map(|url| format!(" {}", url.origin().ascii_serialization())).unwrap_or_default();
    let (guest, api) = (origin(elsewhere.guest), origin(elsewhere.api));
    let frames = if guest.is_empty() { " 'none'" } else { guest.as_str() };
    format!(
        "default-src 'none'; script-src 'self'{guest}; style-src 'self'; img-src 'self' data:; \
         connect-src 'self'{guest}{api}; worker-src 'self'; font-src 'self'; frame-src{frames}; form-action 'self'; \
         base-uri 'none'; frame-ancestors 'none'"
    )
}
