//! Redirects of the upstream to itself, as redirects to the gateway.
//!
//! A service that does not know its public address redirects to its internal one, which clients cannot reach. Redirects
//! to other hosts pass unchanged.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use url::{Position, Url};

use crate::gateway::public_address::PublicAddress;

/// Response headers with a URL that the client uses next, or remembers (RFC 9110, sections 8.7 and 10.2.2).
const WITH_URLS: [HeaderName; 2] = [header::LOCATION, header::CONTENT_LOCATION];

/// The address of the upstream.
#[derive(Debug)]
pub(crate) struct Redirects {
    host: String,
    port: Option<u16>,
    /// The path that the gateway puts in front of each request's, without a trailing slash.
    prefix: String,
}

impl Redirects {
    pub(crate) fn of(upstream: &Url) -> Self {
        Self {
            host: upstream.host_str().unwrap_or_default().to_owned(),
            port: upstream.port_or_known_default(),
            prefix: upstream.path().trim_end_matches('/').to_owned(),
        }
    }

    /// Rewrites the headers of a response that point at the upstream. `public` is called if there are any.
    pub(crate) fn rewrite<'p>(&self, headers: &mut HeaderMap, public: impl Fn() -> PublicAddress<'p>) {
        for name in WITH_URLS {
            let Some(location) = headers.get(&name).and_then(|value| value.to_str().ok()) else { continue };
            let rewritten = self.rewritten(location, &public()).map(HeaderValue::try_from);
            if let Some(Ok(rewritten)) = rewritten {
                headers.insert(name, rewritten);
            }
        }
    }

    /// The public URL of a location at the upstream; `None` for any other one.
    fn rewritten(&self, location: &str, public: &PublicAddress<'_>) -> Option<String> {
        if location.starts_with('/') && !location.starts_with("//") {
            // Without a host, it is relative to the URL that the client used, whose prefix is unknown.
            let path = location.strip_prefix(&self.prefix).filter(|rest| !self.prefix.is_empty() && is_path(rest))?;
            return Some(public.url_of(&rooted(path)));
        }
        // A location without a scheme has that of the request.
        let base = Url::parse(&format!("http://{}/", self.host)).ok()?;
        let starts = |start: &str| location.get(..start.len()).is_some_and(|own| own.eq_ignore_ascii_case(start));
        let is_absolute = ["//", "http://", "https://"].into_iter().any(starts);
        let url = base.join(location).ok().filter(|_| is_absolute)?;
        if !self.is_at(&url) {
            return None;
        }
        let path = url.path().strip_prefix(&self.prefix).filter(|rest| is_path(rest));
        let path = rooted(path.unwrap_or_else(|| url.path()));
        Some(public.url_of(&format!("{path}{}", &url[Position::AfterPath..])))
    }

    /// Whether a URL is one of the upstream. Services that detect that the client used `https` often put it before
    /// their own host.
    fn is_at(&self, url: &Url) -> bool {
        let is_default = url.port().is_none() && matches!(self.port, Some(80 | 443));
        url.host_str().is_some_and(|host| host.eq_ignore_ascii_case(&self.host))
            && (is_default || url.port_or_known_default() == self.port)
    }
}

/// Whether the prefix ends at a segment boundary: `/apix` is not below `/api`.
fn is_path(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with(['/', '?', '#'])
}

fn rooted(path: &str) -> String {
    if path.starts_with('/') { path.to_owned() } else { format!("/{path}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::public_address::PublicUrl;

    #[test]
    fn locations_at_the_upstream_are_at_the_gateway() {
        let public_url = PublicUrl::of(&Url::parse("https://api.example/v1").unwrap()).unwrap();
        let received = HeaderMap::new();
        let public = PublicAddress::find(&received, None, "http", Some(&public_url));
        // upstream, location, what the client gets; `None` if it is the same
        let table = [
            ("http://inner:9000", "http://inner:9000/a?b=c#d", Some("https://api.example/v1/a?b=c#d")),
            ("http://inner:9000", "https://INNER:9000/a", Some("https://api.example/v1/a")),
            ("http://inner:9000", "//inner:9000/a", Some("https://api.example/v1/a")),
            ("http://inner:9000", "http://inner:9000", Some("https://api.example/v1/")),
            ("http://inner:9000", "http://inner/a", None),
            ("http://inner:9000", "http://inner:9001/a", None),
            ("http://inner:9000", "http://other:9000/a", None),
            ("http://inner:9000", "https://api.example/a", None),
            ("http://inner:9000", "/a", None),
            ("http://inner:9000", "a?next=http://inner:9000/", None),
            ("http://inner:9000", "http:a", None),
            ("http://inner:9000", "mailto:a@inner", None),
            ("http://inner", "a?next=http://inner/", None),
            ("http://inner", "https://inner/a", Some("https://api.example/v1/a")),
            ("https://inner", "http://inner:80/a", Some("https://api.example/v1/a")),
            ("http://[::1]:9000", "http://[::1]:9000/a", Some("https://api.example/v1/a")),
            ("http://inner:9000/base/", "http://inner:9000/base/a", Some("https://api.example/v1/a")),
            ("http://inner:9000/base/", "http://inner:9000/base?x", Some("https://api.example/v1/?x")),
            ("http://inner:9000/base/", "http://inner:9000/basement", Some("https://api.example/v1/basement")),
            ("http://inner:9000/base/", "/base/a?b", Some("https://api.example/v1/a?b")),
            ("http://inner:9000/base/", "/base", Some("https://api.example/v1/")),
            ("http://inner:9000/base/", "/basement", None),
        ];
        for (upstream, location, expected) in table {
            let redirects = Redirects::of(&Url::parse(upstream).unwrap());
            assert_eq!(redirects.rewritten(location, &public).as_deref(), expected, "{upstream} {location}");
        }
        let mut headers = HeaderMap::from_iter([
            (header::LOCATION, HeaderValue::from_static("http://inner:9000/a")),
            (header::CONTENT_LOCATION, HeaderValue::from_static("http://inner:9000/b")),
            (header::REFERER, HeaderValue::from_static("http://inner:9000/c")),
        ]);
        Redirects::of(&Url::parse("http://inner:9000").unwrap()).rewrite(&mut headers, || public.clone());
        let values: Vec<_> = headers.values().map(|value| value.to_str().unwrap()).collect();
        assert_eq!(values, ["https://api.example/v1/a", "https://api.example/v1/b", "http://inner:9000/c"]);
    }
}
