//! [`Transport`] over the network.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use metering_core::access::is_own_machine;
use metering_core::shown_fields;
use reqwest::redirect::Policy;
use url::Url;

use crate::transport::{BodyStream, Transport, Unreachable};

/// The address of a service: an `http` or `https` URL without user, query or fragment.
///
/// ```
/// use metering_client::ServiceUrl;
///
/// let url: ServiceUrl = "https://api.example.com/".parse()?;
/// assert_eq!(url.to_string(), "https://api.example.com");
/// assert!(!url.is_exposed());
/// assert!("http://api.example.com".parse::<ServiceUrl>()?.is_exposed());
/// # Ok::<(), metering_client::ServiceUrlError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceUrl(Url);

/// The text is not the URL of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be an http:// or https:// URL without user, query or fragment, such as https://api.example.com")]
pub struct ServiceUrlError;

impl ServiceUrl {
    /// Whether keys sent to it can be read in transit: no TLS, and not on this machine.
    #[must_use]
    pub fn is_exposed(&self) -> bool {
        self.0.scheme() == "http" && !self.is_loopback()
    }

    fn is_loopback(&self) -> bool {
        // Names below localhost also mean this machine (RFC 6761, section 6.3).
        self.0.host_str().is_some_and(|host| is_own_machine(host) || host.ends_with(".localhost"))
    }

    /// The URL of a target (`/path?query`) of this service.
    fn join(&self, target: &str) -> Result<Url, url::ParseError> {
        Url::parse(&format!("{self}{target}"))
    }
}

impl FromStr for ServiceUrl {
    type Err = ServiceUrlError;

    fn from_str(text: &str) -> Result<Self, ServiceUrlError> {
        let url = Url::parse(text.trim()).map_err(|_| ServiceUrlError)?;
        let plain = url.username().is_empty() && url.password().is_none() && url.query().is_none();
        let good = matches!(url.scheme(), "http" | "https") && url.has_host() && plain && url.fragment().is_none();
        if good { Ok(Self(url)) } else { Err(ServiceUrlError) }
    }
}

/// Without the trailing slash, so paths can be appended.
impl fmt::Display for ServiceUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str().trim_end_matches('/'))
    }
}

/// A service over HTTP.
pub struct HttpTransport {
    url: ServiceUrl,
    client: reqwest::Client,
}

// Without the client: the proxy it uses may have a password.
shown_fields!(HttpTransport: url);

impl HttpTransport {
    /// A service at `url`. `timeout` is the timeout for connecting, and for a response that makes no progress.
    ///
    /// # Errors
    /// When the machine's certificates or proxy settings cannot be used.
    pub fn new(url: ServiceUrl, timeout: Duration) -> Result<Self, Unreachable> {
        // Another part of the process may have installed a provider already; any will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // No redirects: the key is sent to this service and nowhere else.
        let client = reqwest::Client::builder()
            .user_agent(concat!("metering-client/", env!("CARGO_PKG_VERSION")))
            .redirect(Policy::none())
            .connect_timeout(timeout)
            .read_timeout(timeout);
        // Some networks need the environment's proxy to get out, but a proxy cannot reach this machine's loopback.
        let client = if url.is_loopback() { client.no_proxy() } else { client };
        let client =
            client.build().map_err(|error| Unreachable(format!("cannot set up an HTTP client: {}", cause(&error))))?;
        Ok(Self { url, client })
    }
}

#[async_trait]
impl Transport for HttpTransport {
    async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<BodyStream>, Unreachable> {
        let (head, body) = request.into_parts();
        let target = head.uri.path_and_query().map_or("/", |target| target.as_str());
        let url = self.url.join(target).map_err(|error| Unreachable(format!("{}{target}: {error}", self.url)))?;
        let request = self.client.request(head.method, url).headers(head.headers).body(body);
        let response = request.send().await.map_err(|error| Unreachable(format!("{}: {}", self.url, cause(&error))))?;
        let response: http::Response<reqwest::Body> = response.into();
        let (head, body) = response.into_parts();
        let body = http_body_util::BodyExt::into_data_stream(body);
        Ok(http::Response::from_parts(head, body.map_err(|error| Unreachable(cause(&error))).boxed()))
    }
}

/// The innermost cause, which is the most specific, such as `Connection refused`.
fn cause(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valid_service_urls_are_accepted() {
        for good in ["http://127.0.0.1:8787", "https://api.example.com/v1/", " https://[::1]:1 "] {
            assert!(good.parse::<ServiceUrl>().is_ok(), "{good}");
        }
        for bad in ["", "api.example.com", "ftp://a", "https://me:pw@a", "https://a/?q=1", "https://a/#b", "file:///x"]
        {
            assert!(bad.parse::<ServiceUrl>().is_err(), "{bad}");
        }
    }

    #[test]
    fn targets_follow_the_path_of_the_service() {
        let url: ServiceUrl = "https://api.example.com/v1/".parse().unwrap();
        assert_eq!(url.join("/credits/plans?a=b").unwrap().as_str(), "https://api.example.com/v1/credits/plans?a=b");
    }
}
