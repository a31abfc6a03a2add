//! Host names and web origins, compared with the `Host` and `Origin` headers of requests.

use std::fmt;
use std::str::FromStr;

use http::uri::Authority;
use url::Url;

use crate::server::text::as_text;

/// A host that requests may be addressed to, in lower case. Without a port it matches any port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostName(String);

/// The text is not a host name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a host such as api.example.com or api.example.com:8080")]
pub struct HostNameError(String);

impl HostName {
    /// The name, and the port if there is one.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for HostName {
    type Err = HostNameError;

    fn from_str(text: &str) -> Result<Self, HostNameError> {
        // No wildcards: hosts are compared literally, so a pattern would match nothing.
        let plain = text.parse::<Authority>().is_ok_and(|host| !host.host().is_empty()) && !text.contains(['@', '*']);
        if plain { Ok(Self(text.to_ascii_lowercase())) } else { Err(HostNameError(text.to_owned())) }
    }
}

/// The origin of a web page, as browsers send it: scheme, host, and the port unless it is the scheme's default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebOrigin(String);

/// The text is not an origin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an origin such as https://app.example.com")]
pub struct WebOriginError(String);

impl WebOrigin {
    /// The origin, as browsers send it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for WebOrigin {
    type Err = WebOriginError;

    fn from_str(text: &str) -> Result<Self, WebOriginError> {
        let invalid = || WebOriginError(text.to_owned());
        let url = Url::parse(text).map_err(|_| invalid())?;
        let nothing_more = url.path().trim_end_matches('/').is_empty() && url.query().is_none();
        let no_user_info = url.username().is_empty() && url.password().is_none();
        if !url.has_host() || text.contains('*') || !nothing_more || !no_user_info || url.fragment().is_some() {
            return Err(invalid());
        }
        // The URL standard treats application origins such as vscode-file://vscode-app as opaque, so those are built
        // from the URL's parts.
        let origin = url.origin();
        let application = || format!("{}://{}", url.scheme(), url.authority()).to_ascii_lowercase();
        Ok(Self(if origin.is_tuple() { origin.ascii_serialization() } else { application() }))
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for WebOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

as_text!(HostName, WebOrigin);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_names_with_or_without_a_port() {
        let table = [
            ("api.example.com", Some("api.example.com")),
            ("API.example:8080", Some("api.example:8080")),
            ("[::1]:80", Some("[::1]:80")),
            ("10.0.0.1", Some("10.0.0.1")),
            ("", None),
            ("*", None),
            ("*.example.com", None),
            ("https://api.example.com", None),
            ("api.example.com/mcp", None),
            ("me@api.example.com", None),
            ("two names", None),
        ];
        for (text, expected) in table {
            assert_eq!(text.parse::<HostName>().ok().as_ref().map(HostName::as_str), expected, "{text}");
        }
    }

    #[test]
    fn origins_are_kept_as_browsers_send_them() {
        let table = [
            ("https://App.example", Some("https://app.example")),
            ("https://app.example/", Some("https://app.example")),
            ("https://app.example:443", Some("https://app.example")),
            ("http://localhost:6274", Some("http://localhost:6274")),
            ("vscode-file://vscode-app", Some("vscode-file://vscode-app")),
            ("app.example", None),
            ("null", None),
            ("*", None),
            ("https://*.example", None),
            ("https://app.example/page", None),
            ("https://app.example/?q", None),
            ("https://me@app.example", None),
            ("file:///page.html", None),
        ];
        for (text, expected) in table {
            assert_eq!(text.parse::<WebOrigin>().ok().as_ref().map(WebOrigin::as_str), expected, "{text}");
        }
    }
}
