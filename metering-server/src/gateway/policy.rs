//! Security headers on every upstream response.
//!
//! The pages of this service keep an API key in `sessionStorage`, which every document of their origin can read. So an
//! upstream document must never run in that origin: `Content-Security-Policy: sandbox` gives it an opaque origin
//! without scripts, and `nosniff` keeps browsers from treating data as a document or a script. Programs that call the
//! API are not affected.

use http::{HeaderValue, header};

use crate::config::GatewayConfig;
use crate::http::Response;

/// The headers that every upstream response gets.
#[derive(Debug)]
pub(crate) struct ResponsePolicy {
    content_security_policy: Option<HeaderValue>,
    nosniff: bool,
}

impl ResponsePolicy {
    pub(crate) fn new(config: &GatewayConfig) -> Self {
        let policy = config.content_security_policy.trim();
        let content_security_policy = if policy.is_empty() { None } else { HeaderValue::from_str(policy).ok() };
        Self { content_security_policy, nosniff: config.nosniff }
    }

    /// Adds the policy to a response. The upstream's own policy is kept: browsers enforce both, so it can only restrict
    /// further.
    pub(crate) fn apply(&self, mut response: Response) -> Response {
        let headers = response.headers_mut();
        if let Some(policy) = &self.content_security_policy {
            headers.append(header::CONTENT_SECURITY_POLICY, policy.clone());
        }
        if self.nosniff {
            headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::http::into_response;

    fn applied(config: &GatewayConfig) -> Response {
        let mut response = into_response(http::Response::new(Bytes::new()));
        response.headers_mut().insert("content-security-policy", HeaderValue::from_static("script-src *"));
        ResponsePolicy::new(config).apply(response)
    }

    #[test]
    fn upstream_policy_does_not_replace_the_gateways() {
        let response = applied(&GatewayConfig::default());
        let policies: Vec<_> = response.headers().get_all("content-security-policy").iter().collect();
        assert_eq!(policies, ["script-src *", "sandbox"]);
        assert_eq!(response.headers()["x-content-type-options"], "nosniff");
    }

    #[test]
    fn response_policy_can_be_switched_off() {
        let config =
            GatewayConfig { content_security_policy: String::new(), nosniff: false, ..GatewayConfig::default() };
        let response = applied(&config);
        assert_eq!(response.headers().get_all("content-security-policy").iter().count(), 1);
        assert!(!response.headers().contains_key("x-content-type-options"));
    }
}
