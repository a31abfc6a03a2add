//! The public address of the gateway, as the upstream gets it.
//!
//! A trusted proxy in front knows it best, since its clients used it. Missing parts come from `public_url`, or else
//! from the connection. Headers of other peers are ignored.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::uri::Authority;
use url::{Position, Url};

use crate::gateway::forwarded_header;
use crate::http::ClientAddress;

const PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const PORT: HeaderName = HeaderName::from_static("x-forwarded-port");

/// The parts of the URL that a client used. Each may be a list, the client's first, where several proxies are in front.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PublicAddress {
    scheme: String,
    /// With a port, if the client's `Host` had one. `None` if it is unknown.
    host: Option<String>,
    port: String,
    /// The path of `public_url`, without a trailing slash.
    path: String,
}

impl PublicAddress {
    /// Finds the address that a request with these headers was sent to. `scheme` is that of the connection.
    pub(crate) fn find(
        received: &HeaderMap,
        client: Option<&ClientAddress>,
        scheme: &str,
        public_url: Option<&Url>,
    ) -> Self {
        let said = if client.is_some_and(ClientAddress::is_from_proxy) { Said::by(received) } else { Said::default() };
        let own_scheme = public_url.map_or(scheme, Url::scheme);
        let own_host = public_url.map(|url| &url[Position::BeforeHost..Position::AfterPort]);
        let own_host = own_host.or_else(|| received.get(header::HOST)?.to_str().ok());
        let scheme = said.scheme.unwrap_or_else(|| own_scheme.to_owned());
        let host = said.host.or_else(|| own_host.map(str::to_owned));
        let port_of_host = || Some(authority(host.as_deref()?)?.port_u16()?.to_string());
        let port = said.port.or_else(port_of_host).unwrap_or_else(|| default_port(first(&scheme)).to_string());
        let path = public_url.map_or("", Url::path).trim_end_matches('/').to_owned();
        Self { scheme, host, port, path }
    }

    /// Sets the headers `X-Forwarded-Proto`, `X-Forwarded-Host` and `X-Forwarded-Port`.
    pub(crate) fn announce(&self, headers: &mut HeaderMap) {
        let port = self.host.is_some().then_some(&self.port);
        for (name, value) in [(PROTO, Some(&self.scheme)), (HOST, self.host.as_ref()), (PORT, port)] {
            if let Some(Ok(value)) = value.map(HeaderValue::try_from) {
                headers.insert(name, value);
            }
        }
    }

    /// The scheme that the client used.
    pub(crate) fn scheme(&self) -> &str {
        first(&self.scheme)
    }

    /// The host, with its port unless it is that of the scheme. `None` if it is not known, or malformed.
    pub(crate) fn authority(&self) -> Option<String> {
        let host = authority(first(self.host.as_deref()?))?;
        let port = host.port_u16().or_else(|| first(&self.port).parse().ok());
        match port.filter(|port| *port != default_port(self.scheme())) {
            Some(port) => Some(format!("{}:{port}", host.host())),
            None => Some(host.host().to_owned()),
        }
    }

    /// The URL of a path here: absolute, unless the host is not known.
    pub(crate) fn url_of(&self, path: &str) -> String {
        match self.authority() {
            Some(authority) if matches!(self.scheme(), "http" | "https") => {
                format!("{}://{authority}{}{path}", self.scheme(), self.path)
            }
            _ => format!("{}{path}", self.path),
        }
    }
}

/// What a trusted proxy says.
#[derive(Default)]
struct Said {
    scheme: Option<String>,
    host: Option<String>,
    port: Option<String>,
}

impl Said {
    fn by(received: &HeaderMap) -> Self {
        let [scheme, host, port] = [PROTO, HOST, PORT].map(|name| forwarded_header::list(received, &name));
        let of_first = |name| forwarded_header::of_client(received, name);
        Self {
            scheme: scheme.map(|scheme| scheme.to_ascii_lowercase()).or_else(|| of_first("proto")),
            host: host.or_else(|| of_first("host")),
            port,
        }
    }
}

/// The entry of the proxy that is nearest to the client.
fn first(list: &str) -> &str {
    list.split(',').next().unwrap_or_default().trim()
}

/// A host without user information.
fn authority(host: &str) -> Option<Authority> {
    first(host).parse().ok().filter(|authority: &Authority| !authority.as_str().contains('@'))
}

fn default_port(scheme: &str) -> u16 {
    if scheme == "https" { 443 } else { 80 }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::config::TrustedProxies;

    pub(crate) fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    /// A client at 10.0.0.1, which is a trusted proxy or not.
    pub(crate) fn client(received: &HeaderMap, is_proxy: bool) -> ClientAddress {
        let proxies = if is_proxy { "10.0.0.1" } else { "10.0.0.2" };
        let proxies = [proxies.parse().unwrap()].into_iter().collect::<TrustedProxies>();
        ClientAddress::find([10, 0, 0, 1].into(), received, &proxies)
    }

    fn announced(is_proxy: bool, public_url: Option<&str>, received: &[(&'static str, &'static str)]) -> String {
        let received = headers(received);
        let public_url = public_url.map(|url| Url::parse(url).unwrap());
        let client = client(&received, is_proxy);
        let address = PublicAddress::find(&received, Some(&client), "http", public_url.as_ref());
        let mut headers = HeaderMap::new();
        address.announce(&mut headers);
        let text = |name: HeaderName| headers.get(name).map_or("-", |value| value.to_str().unwrap());
        format!("{} {} {} {}", text(PROTO), text(HOST), text(PORT), address.url_of("/x"))
    }

    #[test]
    fn the_upstream_gets_what_the_client_requested() {
        type Received<'a> = &'a [(&'static str, &'static str)];
        let (host, public) = (("host", "inner:8787"), Some("https://api.example"));
        let of_proxy: Received<'_> =
            &[host, ("x-forwarded-proto", "HTTPS"), ("x-forwarded-host", "a.example"), ("x-forwarded-port", "443")];
        // from a trusted proxy, `public_url`, what is received, what the upstream receives
        let table: [(bool, Option<&str>, Received<'_>, &str); 15] = [
            (false, None, &[host], "http inner:8787 8787 http://inner:8787/x"),
            (false, None, &[("host", "a.example")], "http a.example 80 http://a.example/x"),
            (false, None, &[], "http - - /x"),
            (false, public, &[host], "https api.example 443 https://api.example/x"),
            (false, Some("http://api.example:81/v1/"), &[host], "http api.example:81 81 http://api.example:81/v1/x"),
            (false, None, of_proxy, "http inner:8787 8787 http://inner:8787/x"),
            (false, public, of_proxy, "https api.example 443 https://api.example/x"),
            (true, None, of_proxy, "https a.example 443 https://a.example/x"),
            (true, public, of_proxy, "https a.example 443 https://a.example/x"),
            (true, public, &[host], "https api.example 443 https://api.example/x"),
            (true, None, &[("host", "b.example"), of_proxy[1]], "https b.example 443 https://b.example/x"),
            (
                true,
                None,
                &[host, ("x-forwarded-host", "a.example"), ("x-forwarded-port", "8443"), of_proxy[1]],
                "https a.example 8443 https://a.example:8443/x",
            ),
            (
                true,
                public,
                &[("x-forwarded-proto", "https, http"), ("x-forwarded-host", "a.example"), ("x-forwarded-host", "b")],
                "https, http a.example, b 443 https://a.example/x",
            ),
            (
                true,
                None,
                &[host, ("forwarded", "for=1.2.3.4;proto=https;host=\"c.example:444\", for=10.0.0.9;proto=http")],
                "https c.example:444 444 https://c.example:444/x",
            ),
            (true, None, &[host, ("x-forwarded-host", "user@evil")], "http user@evil 80 /x"),
        ];
        for (is_proxy, public_url, received, expected) in table {
            assert_eq!(announced(is_proxy, public_url, received), expected, "{is_proxy} {public_url:?} {received:?}");
        }
    }
}
