//! The URI that an authorization response is sent to: `https`, or this machine (RFC 8252, section 7.3).
//!
//! Compared as text, since a URL in another spelling may lead elsewhere; only the port of this machine may differ, as
//! programs get their port when they start.

use std::str::FromStr;

use url::Url;

use crate::access::invisible::is_invisible;
use crate::access::own_machine::is_own_machine;
use crate::text_traits::text_traits;

const MAX_BYTES: usize = 2_048;

/// A redirect URI of a client.
///
/// ```
/// use metering_core::oauth::RedirectUri;
///
/// let registered: RedirectUri = "http://127.0.0.1/callback".parse()?;
/// assert!(registered.accepts(&"http://127.0.0.1:50123/callback".parse()?));
/// assert!(!registered.accepts(&"http://127.0.0.1:50123/other".parse()?));
/// assert!("http://example.com/callback".parse::<RedirectUri>().is_err());
/// # Ok::<(), metering_core::oauth::RedirectUriError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedirectUri(String);

/// The text is not a redirect URI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be an https URL, or an http URL of the client's own machine (localhost, 127.0.0.1 or [::1]), without a user name \
     or fragment, of at most {MAX_BYTES} bytes"
)]
pub struct RedirectUriError;

impl RedirectUri {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a client that registered this one may use `requested`.
    #[must_use]
    pub fn accepts(&self, requested: &Self) -> bool {
        let is_equal = self.0 == requested.0;
        is_equal || (self.is_loopback() && requested.is_loopback() && self.without_port() == requested.without_port())
    }

    /// Whether it leads to the machine that the browser runs on, where any program may listen.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        self.url().is_some_and(|url| url.scheme() == "http")
    }

    /// Its host, for people, with the port unless it is that of the scheme.
    #[must_use]
    pub fn host(&self) -> String {
        let Some(url) = self.url() else { return String::new() };
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}{port}", url.host_str().unwrap_or_default())
    }

    /// The URL with these parameters in addition to its own.
    #[must_use]
    pub fn with(&self, parameters: &[(&str, &str)]) -> String {
        let Some(mut url) = self.url() else { return self.0.clone() };
        url.query_pairs_mut().extend_pairs(parameters);
        url.into()
    }

    fn url(&self) -> Option<Url> {
        Url::parse(&self.0).ok()
    }

    fn without_port(&self) -> Option<Url> {
        let mut url = self.url()?;
        url.set_port(None).ok()?;
        Some(url)
    }
}

impl FromStr for RedirectUri {
    type Err = RedirectUriError;

    fn from_str(text: &str) -> Result<Self, RedirectUriError> {
        let is_plain = |c: char| !c.is_whitespace() && !is_invisible(c) && c != '\\';
        if text.len() > MAX_BYTES || !text.chars().all(is_plain) {
            return Err(RedirectUriError);
        }
        let url = Url::parse(text).map_err(|_| RedirectUriError)?;
        let is_bare = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
        let is_safe = match url.scheme() {
            "https" => url.has_host(),
            "http" => url.host_str().is_some_and(is_own_machine),
            _ => false,
        };
        if is_bare && is_safe { Ok(Self(text.to_owned())) } else { Err(RedirectUriError) }
    }
}

text_traits!(RedirectUri: Display);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_https_and_the_own_machine_are_redirected_to() {
        // text, accepted
        let table = [
            ("https://claude.ai/api/mcp/auth_callback", true),
            ("https://app.example/cb?tenant=7", true),
            ("http://localhost:33418/", true),
            ("http://127.0.0.1/cb", true),
            ("http://[::1]:9/cb", true),
            ("http://app.example/cb", false),
            ("http://localhost.evil.example/", false),
            ("http://127.0.0.1.evil.example/", false),
            ("https://a@app.example/cb", false),
            ("https://app.example/cb#x", false),
            ("https://app.example\\@evil.example/", false),
            ("http://localhost@evil.example/", false),
            ("http://localhost:7@evil.example/", false),
            ("http://localhost.:7/", false),
            ("http://app.localhost/cb", false),
            ("http://0.0.0.0/cb", false),
            ("http://[::ffff:127.0.0.1]/cb", false),
            ("https://app.example/ cb", false),
            ("javascript:alert(1)", false),
            ("data:text/html,x", false),
            ("cursor://anysphere.cursor/cb", false),
            ("//app.example/cb", false),
            ("", false),
        ];
        for (text, accepted) in table {
            assert_eq!(text.parse::<RedirectUri>().is_ok(), accepted, "{text}");
        }
        assert!(format!("https://a.example/{}", "x".repeat(MAX_BYTES)).parse::<RedirectUri>().is_err());
    }

    #[test]
    fn only_the_port_of_the_own_machine_may_differ() {
        // registered, requested, accepted
        let table = [
            ("https://a.example/cb", "https://a.example/cb", true),
            ("https://a.example/cb", "https://a.example/cb/", false),
            ("https://a.example/cb", "https://A.example/cb", false),
            ("https://a.example/cb", "https://a.example:8443/cb", false),
            ("https://a.example/cb", "https://a.example/cb?x=1", false),
            ("http://127.0.0.1/cb", "http://127.0.0.1:7/cb", true),
            ("http://127.0.0.1:7/cb", "http://127.0.0.1:8/cb", true),
            ("http://localhost:7/cb", "http://localhost:8/cb", true),
            ("http://localhost:7/cb", "http://127.0.0.1:7/cb", false),
            ("http://127.0.0.1:7/cb", "http://127.0.0.1:7/cb?x=1", false),
            ("http://127.0.0.1:7/cb", "https://127.0.0.1:7/cb", false),
            ("https://a.example/cb", "https://a.example/cb/../other", false),
            ("https://a.example/cb", "https://a.example/%63b", false),
            ("https://a.example/cb", "https://a.example./cb", false),
            ("http://127.0.0.1:7/cb", "http://127.0.0.1:7/cb/../other", false),
        ];
        for (registered, requested, accepted) in table {
            let [registered, requested] = [registered, requested].map(|text| text.parse::<RedirectUri>().unwrap());
            assert_eq!(registered.accepts(&requested), accepted, "{registered} {requested}");
        }
    }

    #[test]
    fn parameters_are_added_and_encoded() {
        let uri: RedirectUri = "https://a.example/cb?tenant=7".parse().unwrap();
        assert_eq!(
            uri.with(&[("code", "x"), ("state", "a&b=c")]),
            "https://a.example/cb?tenant=7&code=x&state=a%26b%3Dc"
        );
        assert_eq!((uri.host().as_str(), uri.is_loopback()), ("a.example", false));
        let own: RedirectUri = "http://[::1]:9/cb".parse().unwrap();
        assert_eq!((own.host().as_str(), own.is_loopback()), ("[::1]:9", true));
    }
}
