//! The URL that tokens are issued under, or are for. Clients compare it with the one that they use, as text.

use std::net::SocketAddr;

use http::uri::Authority;
use http::{HeaderMap, HeaderValue, header};
use metering_core::access::{Scope, is_own_machine};
use metering_core::oauth::RequestedAuthorization;

use crate::config::Config;

/// Where clients find what protects a resource (RFC 9728), before its path.
pub(crate) const RESOURCE_METADATA: &str = "/.well-known/oauth-protected-resource";

/// Who issues tokens; in a process that serves MCP alone, the resource that they are for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Issuer {
    /// Without a slash at the end.
    url: String,
    scheme: &'static str,
    is_configured: bool,
}

/// The data that a challenge depends on.
#[derive(Debug, Clone)]
pub(crate) struct Asking {
    host: Option<HeaderValue>,
    path: &'static str,
    has_token: bool,
}

impl Issuer {
    /// The issuer of a process that listens there; `None` if it offers no OAuth.
    pub(crate) fn new(config: &Config, listen: SocketAddr) -> Option<Self> {
        if !config.oauth.is_on(config) {
            return None;
        }
        let scheme = config.scheme();
        let url = config.public_url.as_ref().map(|url| url.trim_end_matches('/').to_owned());
        let is_configured = url.is_some();
        Some(Self { url: url.unwrap_or_else(|| format!("{scheme}://{listen}")), scheme, is_configured })
    }

    /// The issuer as the client knows it: without a `public_url`, by the name that it uses for its own machine.
    pub(crate) fn of(&self, headers: &HeaderMap) -> String {
        self.at(headers.get(header::HOST))
    }

    fn at(&self, host: Option<&HeaderValue>) -> String {
        let named = host.filter(|_| !self.is_configured).and_then(|host| host.to_str().ok());
        match named.filter(|host| host.parse::<Authority>().is_ok_and(|host| is_own_machine(host.host()))) {
            Some(host) => format!("{}://{}", self.scheme, host.to_ascii_lowercase()),
            None => self.url.clone(),
        }
    }

    /// The challenge to a request without a valid token (RFC 6750, section 3; RFC 9728, section 5.1).
    pub(crate) fn challenge(&self, asking: &Asking) -> Option<HeaderValue> {
        let error = if asking.has_token { "error=\"invalid_token\", " } else { "" };
        self.demand(asking, error, "call read")
    }

    /// The challenge to a token with these scopes, which lacks one (MCP 2026-07-28, "Scope Challenge Handling"). It
    /// names all scopes, since some clients then request exactly those.
    pub(crate) fn insufficient_scope(&self, asking: &Asking, has: &[Scope], needed: Scope) -> Option<HeaderValue> {
        let wanted =
            RequestedAuthorization::OFFERED.into_iter().filter(|scope| has.contains(scope) || *scope == needed);
        let wanted: Vec<_> = wanted.map(|scope| scope.as_str()).collect();
        self.demand(asking, "error=\"insufficient_scope\", ", &wanted.join(" "))
    }

    fn demand(&self, asking: &Asking, error: &str, scope: &str) -> Option<HeaderValue> {
        let (issuer, path) = (self.at(asking.host.as_ref()), asking.path);
        let metadata = format!("{issuer}{RESOURCE_METADATA}{path}");
        HeaderValue::try_from(format!("Bearer {error}resource_metadata=\"{metadata}\", scope=\"{scope}\"")).ok()
    }
}

impl Asking {
    /// The parts of a request that the challenge of its response needs.
    pub(crate) fn new(headers: &HeaderMap, path: &str) -> Self {
        Self {
            host: headers.get(header::HOST).cloned(),
            path: if path == "/mcp" { "/mcp" } else { "/sse" },
            has_token: headers.contains_key(header::AUTHORIZATION),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn issuer(toml: &str) -> Issuer {
        Issuer::new(&toml::from_str(toml).unwrap(), ([127, 0, 0, 1], 8787).into()).unwrap()
    }

    fn headers(host: &str) -> HeaderMap {
        [(header::HOST, host.parse().unwrap())].into_iter().collect()
    }

    #[test]
    fn without_a_public_url_the_issuer_is_named_as_clients_name_their_machine() {
        let (local, public) = (issuer(""), issuer("public_url = 'https://api.example/'"));
        // Host, the issuer without a public URL
        let table = [
            ("localhost:8787", "http://localhost:8787"),
            ("LOCALHOST:8787", "http://localhost:8787"),
            ("[::1]:8787", "http://[::1]:8787"),
            ("127.0.0.1:9", "http://127.0.0.1:9"),
            ("evil.example", "http://127.0.0.1:8787"),
            ("localhost.evil.example", "http://127.0.0.1:8787"),
            ("", "http://127.0.0.1:8787"),
        ];
        for (host, expected) in table {
            assert_eq!(local.of(&headers(host)), expected, "{host}");
            assert_eq!(public.of(&headers(host)), "https://api.example", "{host}");
        }
        assert_eq!(Issuer::new(&toml::from_str("oauth.enabled = false").unwrap(), ([127, 0, 0, 1], 1).into()), None);
    }

    #[test]
    fn a_challenge_says_where_to_get_a_token() {
        let issuer = issuer("public_url = 'https://api.example'");
        let challenge = |headers: &HeaderMap, path| issuer.challenge(&Asking::new(headers, path)).unwrap();
        let metadata = "resource_metadata=\"https://api.example/.well-known/oauth-protected-resource";
        let mut sent = headers("api.example");
        assert_eq!(challenge(&sent, "/mcp"), format!("Bearer {metadata}/mcp\", scope=\"call read\"").as_str());
        sent.insert(header::AUTHORIZATION, HeaderValue::from_static("Bearer sk_live_x"));
        let refused = format!("Bearer error=\"invalid_token\", {metadata}/sse\", scope=\"call read\"");
        assert_eq!(challenge(&sent, "/sse"), refused.as_str());
        let narrow = issuer.insufficient_scope(&Asking::new(&sent, "/mcp"), &[Scope::Read, Scope::TopUp], Scope::Call);
        let wider = format!("Bearer error=\"insufficient_scope\", {metadata}/mcp\", scope=\"call read\"");
        assert_eq!(narrow.unwrap(), wider.as_str());
    }
}
