//! Decides which requests are the same call.

use bytes::Bytes;
use http::Request;
use metering_client::ServiceUrl;
use sha3::{Digest, Sha3_256};

/// A request that may be paid for. Two requests with the same method, URL and body are the same call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) method: String,
    pub(crate) url: String,
    /// A hash of method, URL and body, in hexadecimal digits.
    pub(crate) fingerprint: String,
    /// A hash of the API key of the call, in hexadecimal digits; `None` without a key. The same call may be made with
    /// another key.
    pub(crate) account: Option<String>,
}

/// The headers that may contain an API key.
const KEY_HEADERS: [&str; 2] = ["authorization", "x-api-key"];

impl Call {
    /// The call that a request to a service makes.
    pub(crate) fn of(request: &Request<Bytes>, service: &ServiceUrl) -> Self {
        let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
        let (method, url) = (request.method().to_string(), format!("{service}{target}"));
        let mut hasher = Sha3_256::new();
        for part in [method.as_bytes(), url.as_bytes(), request.body()] {
            // Include its length, so that no two calls give the same text.
            hasher.update(part.len().to_be_bytes());
            hasher.update(part);
        }
        let key = KEY_HEADERS.iter().find_map(|name| request.headers().get(*name));
        let account = key.map(|key| hex::encode(Sha3_256::digest(key.as_bytes())));
        Self { method, url, fingerprint: hex::encode(hasher.finalize()), account }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(service: &str, method: &str, target: &str, body: &'static str) -> String {
        let request = Request::builder().method(method).uri(target).body(Bytes::from_static(body.as_bytes())).unwrap();
        Call::of(&request, &service.parse().unwrap()).fingerprint
    }

    #[test]
    fn method_url_and_body_make_a_call() {
        let one = call("https://a.example/", "GET", "/x?a=1", "");
        assert_eq!(one, call("https://a.example", "GET", "/x?a=1", ""));
        assert_eq!(one.len(), 64);
        for other in [
            call("https://b.example", "GET", "/x?a=1", ""),
            call("https://a.example", "POST", "/x?a=1", ""),
            call("https://a.example", "GET", "/x?a=2", ""),
            call("https://a.example", "GET", "/x?a=", "1"),
            call("https://a.example/x", "GET", "/?a=1", ""),
        ] {
            assert_ne!(one, other);
        }
    }
}
