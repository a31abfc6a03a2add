//! Checks the `Host` and `Origin` of MCP requests.
//!
//! A page of another site can make a browser call a service on the visitor's machine or network by pointing a host name
//! there (DNS rebinding). Such a call has that name as `Host`, and the page's origin as `Origin`. The MCP specification
//! requires servers to check both.

use std::net::{IpAddr, SocketAddr};

use http::{HeaderMap, header};
use metering_core::wire::ErrorCode;
use url::Url;

use crate::config::Config;
use crate::http::Problem;

/// The allowed values of `Host` and `Origin`.
#[derive(Debug)]
pub(crate) struct Guard {
    listen: SocketAddr,
    scheme: &'static str,
    hosts: Vec<String>,
    origins: Vec<String>,
}

impl Guard {
    /// The allowed values for a server that listens at `listen`.
    pub(crate) fn new(config: &Config, listen: SocketAddr) -> Self {
        let own = config.public_url.as_deref().and_then(|url| Url::parse(url).ok());
        let own_host = own.as_ref().and_then(Url::host_str).map(str::to_owned);
        let own_origin = own.as_ref().map(|url| url.origin().ascii_serialization());
        let hosts = config.mcp.allowed_hosts.iter().map(|host| host.as_str().to_owned());
        let origins = config.mcp_origins().map(|origin| origin.as_str().to_owned());
        Self {
            listen,
            scheme: config.scheme(),
            hosts: own_host.into_iter().chain(hosts).collect(),
            origins: own_origin.into_iter().chain(origins).collect(),
        }
    }

    /// Refuses requests for another host, and requests from pages that are not allowed.
    ///
    /// # Errors
    /// 403, naming the configuration key to change.
    pub(crate) fn admit(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let host = single(headers, &header::HOST).flatten().unwrap_or_default();
        if !self.knows(host) {
            let message = "This Host is not allowed; the operator can add it to mcp.allowed_hosts.";
            return Err(Problem::new(ErrorCode::Forbidden, message));
        }
        let origin = single(headers, &header::ORIGIN);
        if origin.is_some_and(|origin| !origin.is_some_and(|origin| self.allows(origin, host))) {
            let message =
                "This Origin is not allowed; the operator can add it to http.allowed_origins or mcp.allowed_origins.";
            return Err(Problem::new(ErrorCode::Forbidden, message));
        }
        Ok(())
    }

    fn knows(&self, authority: &str) -> bool {
        let authority = authority.to_ascii_lowercase();
        let name = without_port(&authority);
        self.hosts.iter().any(|known| *known == authority || known == name) || self.is_own(name)
    }

    /// Whether a name is an address of this server, or `localhost`.
    fn is_own(&self, name: &str) -> bool {
        let listening = self.listen.ip();
        if name == "localhost" {
            return listening.is_loopback() || listening.is_unspecified();
        }
        // Unlike a name, an IP address cannot be made to point elsewhere.
        let address: Option<IpAddr> = name.trim_matches(['[', ']']).parse().ok();
        address.is_some_and(|address| {
            listening.is_unspecified() || address == listening || (listening.is_loopback() && address.is_loopback())
        })
    }

    fn allows(&self, origin: &str, host: &str) -> bool {
        let origin = origin.to_ascii_lowercase();
        // A page of this server itself. Pages under its public name are allowed by public_url.
        let authority = origin.strip_prefix(self.scheme).and_then(|rest| rest.strip_prefix("://"));
        let own = authority.is_some_and(|authority| authority.eq_ignore_ascii_case(host));
        (own && self.is_own(without_port(&host.to_ascii_lowercase()))) || self.origins.contains(&origin)
    }
}

/// The value of a header that may occur once: `None` when it is absent, `Some(None)` when it occurs twice or is not
/// text.
fn single<'h>(headers: &'h HeaderMap, name: &header::HeaderName) -> Option<Option<&'h str>> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    Some(if values.next().is_some() { None } else { first.to_str().ok() })
}

fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.ends_with(':') => name,
        _ => authority,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(listen: &str, public_url: Option<&str>) -> Guard {
        let mut config = Config { public_url: public_url.map(str::to_owned), ..Config::default() };
        config.mcp.allowed_hosts =
            ["extra.example", "Ported.example:8080"].map(|host| host.parse().unwrap()).into_iter().collect();
        config.mcp.allowed_origins = std::iter::once("https://App.example/".parse().unwrap()).collect();
        Guard::new(&config, listen.parse().unwrap())
    }

    fn admits(guard: &Guard, host: &str, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert("host", host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert("origin", origin.parse().unwrap());
        }
        guard.admit(&headers).is_ok()
    }

    #[test]
    fn only_own_host_names_are_accepted() {
        let url = Some("https://api.example/v1");
        // listen, host, admitted
        let table = [
            ("127.0.0.1:8787", "127.0.0.1:8787", true),
            ("127.0.0.1:8787", "localhost:8787", true),
            ("127.0.0.1:8787", "LOCALHOST", true),
            ("127.0.0.1:8787", "[::1]:8787", true),
            ("127.0.0.1:8787", "10.0.0.1", false),
            ("127.0.0.1:8787", "evil.example", false),
            ("127.0.0.1:8787", "127.0.0.1.evil.example", false),
            ("127.0.0.1:8787", "localhost.evil.example", false),
            ("127.0.0.1:8787", "", false),
            ("127.0.0.1:8787", "api.example", true),
            ("127.0.0.1:8787", "API.example:443", true),
            ("127.0.0.1:8787", "extra.example:99", true),
            ("127.0.0.1:8787", "ported.example:8080", true),
            ("127.0.0.1:8787", "ported.example", false),
            ("0.0.0.0:80", "10.1.2.3", true),
            ("0.0.0.0:80", "evil.example", false),
            ("10.1.2.3:80", "10.1.2.3:80", true),
            ("10.1.2.3:80", "localhost", false),
        ];
        for (listen, host, admitted) in table {
            assert_eq!(admits(&guard(listen, url), host, None), admitted, "{listen} {host}");
        }
    }

    #[test]
    fn only_own_and_configured_origins_may_call() {
        let guard = guard("127.0.0.1:8787", Some("https://api.example/v1"));
        // host, origin, admitted
        let table = [
            ("127.0.0.1:8787", "http://127.0.0.1:8787", true),
            ("localhost:8787", "http://localhost:8787", true),
            ("127.0.0.1:8787", "http://127.0.0.1:9999", false),
            ("127.0.0.1:8787", "ftp://127.0.0.1:8787", false),
            ("127.0.0.1:8787", "https://api.example", true),
            ("127.0.0.1:8787", "https://app.example", true),
            ("127.0.0.1:8787", "http://app.example", false),
            ("127.0.0.1:8787", "https://evil.example", false),
            ("127.0.0.1:8787", "https://app.example.evil.example", false),
            ("127.0.0.1:8787", "null", false),
            ("api.example", "https://api.example", true),
            // Without TLS, anyone on the network path can inject content into that page.
            ("api.example", "http://api.example", false),
            // Allowed as a host, but not as an origin of pages.
            ("extra.example", "https://extra.example", false),
        ];
        for (host, origin, admitted) in table {
            assert_eq!(admits(&guard, host, Some(origin)), admitted, "{host} {origin}");
        }
    }

    #[test]
    fn repeated_header_is_rejected() {
        let mut headers = HeaderMap::new();
        headers.append("host", "127.0.0.1".parse().unwrap());
        headers.append("host", "127.0.0.1".parse().unwrap());
        assert!(guard("127.0.0.1:8787", None).admit(&headers).is_err());
    }
}
