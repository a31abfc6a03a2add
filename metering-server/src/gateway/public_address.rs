//! The public address of the gateway, as the upstream gets it.
//!
//! A trusted proxy in front knows it best, since its clients used it. Missing parts come from `public_url`, or else
//! from the connection. Headers of other peers are ignored.

use std::borrow::Cow;

use http::header::{self, HeaderMap, HeaderName, HeaderValue, InvalidHeaderValue};
use http::uri::Authority;
use url::{Position, Url};

use crate::gateway::forwarded_header;
use crate::http::ClientAddress;

const PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const PORT: HeaderName = HeaderName::from_static("x-forwarded-port");

/// The parts of `public_url`.
#[derive(Debug)]
pub(crate) struct PublicUrl {
    scheme: String,
    /// With a port, if the URL has one.
    host: HeaderValue,
    /// Without a trailing slash.
    path: String,
}

impl PublicUrl {
    /// # Errors
    /// When the host cannot be a header.
    pub(crate) fn of(url: &Url) -> Result<Self, InvalidHeaderValue> {
        Ok(Self {
            scheme: url.scheme().to_owned(),
            host: HeaderValue::from_str(&url[Position::BeforeHost..Position::AfterPort])?,
            path: url.path().trim_end_matches('/').to_owned(),
        })
    }
}

/// The parts of the URL that a client used. Each may be a list, the client's first, where several proxies are in front.
#[derive(Debug, Clone)]
pub(crate) struct PublicAddress<'a> {
    scheme: Cow<'a, str>,
    /// With a port, if the client's `Host` had one. `None` if it is unknown.
    host: Option<HeaderValue>,
    /// From a trusted proxy. If `None`, the port is that of the host, or the default of the scheme.
    port: Option<Cow<'a, str>>,
    /// The path of `public_url`, without a trailing slash.
    path: &'a str,
}

impl<'a> PublicAddress<'a> {
    /// Finds the address that a request with these headers was sent to. `scheme` is that of the connection.
    pub(crate) fn find(
        received: &'a HeaderMap,
        client: Option<&ClientAddress>,
        scheme: &'a str,
        public_url: Option<&'a PublicUrl>,
    ) -> Self {
        let said = if client.is_some_and(ClientAddress::is_from_proxy) { Said::by(received) } else { Said::default() };
        let own_host = || match public_url {
            Some(url) => Some(url.host.clone()),
            None => received.get(header::HOST).filter(|host| host.to_str().is_ok()).cloned(),
        };
        Self {
            scheme: said.scheme.unwrap_or_else(|| public_url.map_or(scheme, |url| url.scheme.as_str()).into()),
            host: said.host.or_else(own_host),
            port: said.port,
            path: public_url.map_or("", |url| url.path.as_str()),
        }
    }

    /// Sets the headers `X-Forwarded-Proto`, `X-Forwarded-Host` and `X-Forwarded-Port`.
    pub(crate) fn announce(&self, headers: &mut HeaderMap) {
        let scheme = match &*self.scheme {
            "http" => Some(HeaderValue::from_static("http")),
            "https" => Some(HeaderValue::from_static("https")),
            other => HeaderValue::from_str(other).ok(),
        };
        let port = self.host.as_ref().and_then(|host| self.port_of(host));
        for (name, value) in [(PROTO, scheme), (HOST, self.host.clone()), (PORT, port)] {
            if let Some(value) = value {
                headers.insert(name, value);
            }
        }
    }

    fn port_of(&self, host: &HeaderValue) -> Option<HeaderValue> {
        if let Some(said) = &self.port {
            return HeaderValue::from_str(said).ok();
        }
        let own = host.to_str().ok().and_then(HostAndPort::read).and_then(|host| host.port);
        Some(match own.unwrap_or_else(|| default_port(self.scheme())) {
            80 => HeaderValue::from_static("80"),
            443 => HeaderValue::from_static("443"),
            other => HeaderValue::from(other),
        })
    }

    /// The scheme that the client used.
    pub(crate) fn scheme(&self) -> &str {
        first(&self.scheme)
    }

    /// The host, with its port unless it is that of the scheme. `None` if it is unknown or malformed.
    pub(crate) fn authority(&self) -> Option<Cow<'_, str>> {
        let host = HostAndPort::read(self.host.as_ref()?.to_str().ok()?)?;
        let port = host.port.or_else(|| first(self.port.as_deref()?).parse().ok());
        Some(host.with_port(port.filter(|port| *port != default_port(self.scheme()))))
    }

    /// The URL of a path here: absolute, unless the host is unknown.
    pub(crate) fn url_of(&self, path: &str) -> String {
        match self.authority() {
            Some(authority) if matches!(self.scheme(), "http" | "https") => {
                format!("{}://{authority}{}{path}", self.scheme(), self.path)
            }
            _ => format!("{}{path}", self.path),
        }
    }
}

/// The values from a trusted proxy.
#[derive(Default)]
struct Said<'a> {
    scheme: Option<Cow<'a, str>>,
    host: Option<HeaderValue>,
    port: Option<Cow<'a, str>>,
}

impl<'a> Said<'a> {
    fn by(received: &'a HeaderMap) -> Self {
        let [scheme, host, port] = [PROTO, HOST, PORT].map(|name| forwarded_header::list(received, &name));
        let of_first = |name| forwarded_header::of_client(received, name).map(Cow::<str>::Owned);
        let host = host.or_else(|| of_first("host"));
        Self {
            scheme: scheme.map(lower_case).or_else(|| of_first("proto")),
            host: host.and_then(|host| HeaderValue::from_str(&host).ok()),
            port,
        }
    }
}

fn lower_case(mut text: Cow<'_, str>) -> Cow<'_, str> {
    if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        text.to_mut().make_ascii_lowercase();
    }
    text
}

/// A host without user information.
struct HostAndPort<'h> {
    /// As sent, with its port.
    text: &'h str,
    name: &'h str,
    port: Option<u16>,
}

impl<'h> HostAndPort<'h> {
    /// The first of a list of hosts. `None` if it is malformed.
    fn read(list: &'h str) -> Option<Self> {
        let text = first(list);
        if is_name(text) {
            return Some(Self { text, name: text, port: None });
        }
        if let Some((name, port)) = text.split_once(':')
            && is_name(name)
            && is_number(port)
            && let Ok(port) = port.parse()
        {
            return Some(Self { text, name, port: Some(port) });
        }
        // Anything else, such as an address of IPv6. The host comes first, since there is no user information.
        let authority = text.parse().ok().filter(|authority: &Authority| !authority.as_str().contains('@'))?;
        Some(Self { text, name: &text[..authority.host().len()], port: authority.port_u16() })
    }

    /// The name with another port, or none.
    fn with_port(&self, port: Option<u16>) -> Cow<'h, str> {
        let Some(port) = port else { return self.name.into() };
        let written = self.text[self.name.len()..].strip_prefix(':').filter(|own| is_number(own));
        if self.port == Some(port) && written.is_some_and(|own| !own.starts_with('0')) {
            return self.text.into();
        }
        format!("{}:{port}", self.name).into()
    }
}

/// Whether a text is a usual host name, or an address of IPv4.
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The entry of the proxy that is nearest to the client.
fn first(list: &str) -> &str {
    list.split(',').next().unwrap_or_default().trim()
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
        let public_url = public_url.map(|url| PublicUrl::of(&Url::parse(url).unwrap()).unwrap());
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

    #[test]
    fn the_authority_has_a_port_that_is_not_the_default() {
        // scheme, `Host`, authority and port that the upstream gets
        let table = [
            ("http", "a.example", Some("a.example"), "80"),
            ("http", "a.example:80", Some("a.example"), "80"),
            ("https", "a.example:80", Some("a.example:80"), "80"),
            ("https", "a.example:443", Some("a.example"), "443"),
            ("http", "a.example:0081", Some("a.example:81"), "81"),
            ("http", "a.example:", Some("a.example"), "80"),
            ("http", "a.example:99999", Some("a.example"), "80"),
            ("http", "127.0.0.1:8787", Some("127.0.0.1:8787"), "8787"),
            ("http", "[::1]", Some("[::1]"), "80"),
            ("http", "[::1]:8787", Some("[::1]:8787"), "8787"),
            ("http", "a_b.example:81", Some("a_b.example:81"), "81"),
            ("http", "a.example:81, b:82", Some("a.example:81"), "81"),
            ("http", "user@a.example", None, "80"),
            ("http", "a b", None, "80"),
            ("http", "", None, "80"),
        ];
        for (scheme, host, authority, port) in table {
            let received = headers(&[("host", host)]);
            let address = PublicAddress::find(&received, None, scheme, None);
            assert_eq!(address.authority().as_deref(), authority, "{scheme} {host}");
            let mut sent = HeaderMap::new();
            address.announce(&mut sent);
            assert_eq!([&sent[PROTO], &sent[HOST], &sent[PORT]], [scheme, host, port], "{scheme} {host}");
        }
    }

    #[test]
    fn usual_hosts_are_not_copied() {
        for host in ["a.example", "a.example:443", "a.example:81", "[::1]:81"] {
            let received = headers(&[("host", host)]);
            let address = PublicAddress::find(&received, None, "https", None);
            assert!(matches!(address.authority(), Some(Cow::Borrowed(_))), "{host}");
        }
    }
}
