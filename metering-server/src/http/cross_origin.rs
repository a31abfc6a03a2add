//! Cross-origin calls from web pages (CORS, the Fetch standard).
//!
//! Pages send the API key in a header that they set themselves. Cookies count for the service's own pages only, so a page can
//! only do what its own key allows.

use std::convert::Infallible;
use std::time::Duration;

use http::{HeaderMap, HeaderValue, Method, Request, header};
use tower::service_fn;
use tower_http::cors::{AllowHeaders, AllowMethods, AllowOrigin, CorsLayer, ExposeHeaders};
use tower_layer::Layer;
use tower_service::Service;

use crate::config::WebOrigin;

/// How long a browser may cache a preflight response.
const RETENTION: Duration = Duration::from_hours(1);

/// The allowed origins.
#[derive(Debug, Clone)]
pub(crate) struct CrossOrigin {
    origins: Vec<HeaderValue>,
    layer: CorsLayer,
}

impl CrossOrigin {
    pub(crate) fn new<'o>(origins: impl IntoIterator<Item = &'o WebOrigin>) -> Self {
        let origins: Vec<_> =
            origins.into_iter().filter_map(|origin| HeaderValue::try_from(origin.as_str()).ok()).collect();
        // The API behind the gateway decides which methods and headers it needs, so allow all; requests are checked
        // when they arrive.
        let layer = CorsLayer::new()
            .allow_origin(AllowOrigin::list(origins.iter().cloned()))
            .allow_methods(AllowMethods::mirror_request())
            .allow_headers(AllowHeaders::mirror_request())
            .expose_headers(ExposeHeaders::any())
            .max_age(RETENTION);
        Self { origins, layer }
    }

    /// Whether a request comes from a page of an allowed origin.
    pub(crate) fn allows(&self, headers: &HeaderMap) -> bool {
        headers.get(header::ORIGIN).is_some_and(|origin| self.origins.contains(origin))
    }

    /// Whether a request is the preflight of a page that may call: the browser sends it on its own behalf, without
    /// credentials.
    pub(crate) fn answers<B>(&self, request: &Request<B>) -> bool {
        self.allows(request.headers()) && is_preflight(request)
    }

    /// Responds to preflight requests from allowed origins, and lets their pages read responses. Other requests are
    /// passed on unchanged.
    pub(crate) async fn respond<B, R, F>(
        &self,
        mut request: Request<B>,
        mut handler: impl FnMut(Request<B>) -> F,
    ) -> http::Response<R>
    where
        R: Default,
        F: Future<Output = http::Response<R>>,
    {
        if !self.allows(request.headers()) {
            return handler(request).await;
        }
        // To the layer, every `OPTIONS` is a preflight, but a page may call a route that has this method.
        let calls_options = request.method() == Method::OPTIONS && !is_preflight(&request);
        if calls_options {
            *request.method_mut() = Method::POST;
        }
        let inner = service_fn(|mut request: Request<B>| {
            if calls_options {
                *request.method_mut() = Method::OPTIONS;
            }
            let response = handler(request);
            async { Ok::<_, Infallible>(response.await) }
        });
        // Boxed, so that this does not make the future of every request twice as large.
        match Box::pin(self.layer.layer(inner).call(request)).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}

/// Whether a browser asks if a page may send a request (the Fetch standard, section "CORS-preflight request").
fn is_preflight<B>(request: &Request<B>) -> bool {
    request.method() == Method::OPTIONS && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http_body_util::Full;
    use metering_core::wire::{PAYMENT_REQUEST_HEADERS, PAYMENT_REQUIRED_HEADER};

    use super::*;
    use crate::http::into_response;

    const PAGE: &str = "https://app.example";

    #[tokio::test]
    async fn pages_may_send_payments_and_read_offers() {
        let origins: [WebOrigin; 1] = [PAGE.parse().unwrap()];
        let cross_origin = CrossOrigin::new(&origins);
        let sent = PAYMENT_REQUEST_HEADERS.join(",");
        let request = |method: Method| {
            Request::builder()
                .method(method)
                .header("origin", PAGE)
                .header("access-control-request-method", "GET")
                .header("access-control-request-headers", &sent)
                .body(Full::new(Bytes::new()))
                .unwrap()
        };
        let refused = |_| async {
            let mut reply = http::Response::new(Bytes::new());
            *reply.status_mut() = http::StatusCode::PAYMENT_REQUIRED;
            reply.headers_mut().insert(PAYMENT_REQUIRED_HEADER, HeaderValue::from_static("e30="));
            into_response(reply)
        };
        let preflight = cross_origin.respond(request(Method::OPTIONS), refused).await;
        assert_eq!(preflight.status(), 200, "it is not the request itself");
        assert_eq!(preflight.headers()["access-control-allow-headers"], sent.as_str());
        // Without the method that the page wants to use, it is a call with this method.
        let mut call = request(Method::OPTIONS);
        call.headers_mut().remove("access-control-request-method");
        let called = cross_origin.respond(call, |request| {
            assert_eq!(request.method(), Method::OPTIONS);
            refused(request)
        });
        assert_eq!(called.await.status(), http::StatusCode::PAYMENT_REQUIRED);
        // A page without credentials (cookies) reads all headers if this is a star.
        let response = cross_origin.respond(request(Method::GET), refused).await;
        assert_eq!(
            (response.status(), &response.headers()["access-control-expose-headers"]),
            (http::StatusCode::PAYMENT_REQUIRED, &"*".parse().unwrap())
        );
        assert!(response.headers().contains_key(PAYMENT_REQUIRED_HEADER));
        assert!(!response.headers().contains_key("access-control-allow-credentials"));
    }
}
