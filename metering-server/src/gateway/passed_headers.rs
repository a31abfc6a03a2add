//! The configured part of which headers pass the gateway: those that the operator or a route removes, and those that
//! are added for the upstream, such as its credentials.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use metering_core::catalogue::{HeaderPatterns, RemovedHeaders, is_of_gateway, is_same_header};

use crate::config::{ConfigError, GatewayConfig};
use crate::gateway::delivery::{BodyError, NextFrame, ResponseBody};
use crate::http::Response;

/// The configured rules for headers, for all routes.
#[derive(Debug, Default)]
pub(crate) struct HeaderSettings {
    removed: RemovedHeaders,
    /// Headers of every request to the default upstream. Their values are marked as sensitive.
    added: Vec<(HeaderName, HeaderValue)>,
}

/// Which headers of one request and of its response pass.
#[derive(Debug, Clone, Default)]
pub(crate) struct PassedHeaders {
    gateway: Arc<HeaderSettings>,
    route: RemovedHeaders,
    /// Headers to add instead of the gateway's: those of another upstream than the default one.
    added: Option<Arc<[(HeaderName, HeaderValue)]>>,
}

impl HeaderSettings {
    /// Reads the configuration.
    ///
    /// # Errors
    /// When a header cannot be added.
    pub(crate) fn new(config: &GatewayConfig) -> Result<Self, ConfigError> {
        let patterns = |patterns: &[_]| patterns.iter().cloned().collect::<HeaderPatterns>();
        Ok(Self {
            removed: RemovedHeaders {
                request: patterns(&config.request_headers.remove),
                response: patterns(&config.response_headers.remove),
            },
            added: config.upstream_headers.pairs()?,
        })
    }
}

impl PassedHeaders {
    pub(crate) const fn new(gateway: Arc<HeaderSettings>, route: RemovedHeaders) -> Self {
        Self { gateway, route, added: None }
    }

    /// The same with other headers to add.
    pub(crate) fn with_added(self, added: Arc<[(HeaderName, HeaderValue)]>) -> Self {
        Self { added: Some(added), ..self }
    }

    /// Whether any header of a request is removed or added.
    pub(crate) fn change_requests(&self) -> bool {
        let (gateway, route) = (&self.gateway, &self.route);
        !(gateway.removed.request.is_empty() && self.added().is_empty() && route.request.is_empty())
    }

    /// Whether a client's header is not forwarded: it is removed, or replaced by one of the gateway's.
    pub(crate) fn drops_from_request(&self, name: &str) -> bool {
        let replaced = |(added, _): &(HeaderName, HeaderValue)| is_same_header(name, added.as_str());
        self.gateway.removed.request.matches(name)
            || self.route.request.matches(name)
            || self.added().iter().any(replaced)
    }

    /// The headers to add to the request.
    pub(crate) fn added(&self) -> &[(HeaderName, HeaderValue)] {
        self.added.as_deref().unwrap_or(&self.gateway.added)
    }

    /// Removes headers from a response, and from its trailers when they arrive. Call it once the response's report of
    /// its cost has been read from them.
    pub(crate) fn clean(self, mut response: Response) -> Response {
        if self.gateway.removed.response.is_empty() && self.route.response.is_empty() {
            return response;
        }
        self.clean_headers(response.headers_mut());
        response.map(|body| CleanTrailers { body, passed: self }.boxed_unsync())
    }

    fn drops_from_response(&self, name: &str) -> bool {
        // Headers of the upstream with these names were dropped before: these names are ours.
        !is_of_gateway(name) && (self.gateway.removed.response.matches(name) || self.route.response.matches(name))
    }

    fn clean_headers(&self, headers: &mut HeaderMap) {
        let dropped: Vec<_> = headers.keys().filter(|name| self.drops_from_response(name.as_str())).cloned().collect();
        for name in dropped {
            headers.remove(name);
        }
        // The names of trailers that are removed.
        let announced: Vec<_> = headers.get_all(header::TRAILER).iter().cloned().collect();
        headers.remove(header::TRAILER);
        for value in announced {
            let Ok(names) = value.to_str() else { continue };
            let names: Vec<_> =
                names.split(',').map(str::trim).filter(|name| !self.drops_from_response(name)).collect();
            if let (false, Ok(names)) = (names.is_empty(), HeaderValue::try_from(names.join(", "))) {
                headers.append(header::TRAILER, names);
            }
        }
    }
}

/// A response body whose trailers are cleaned.
struct CleanTrailers {
    body: ResponseBody,
    passed: PassedHeaders,
}

impl Body for CleanTrailers {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<NextFrame> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        Poll::Ready(frame.map(|frame| {
            Ok(match frame?.into_trailers() {
                Ok(mut trailers) => {
                    self.passed.clean_headers(&mut trailers);
                    Frame::trailers(trailers)
                }
                Err(data) => data,
            })
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use http_body_util::{Full, StreamBody};

    use super::*;

    fn passed(gateway: &str, route: &str) -> PassedHeaders {
        let gateway = HeaderSettings::new(&toml::from_str(gateway).unwrap()).unwrap();
        let catalogue = format!(
            r#"{{"market": "M", "version": 1, "endpoints": [{{"path": "/a", "method": "GET", "metered": true{route}}}]}}"#
        );
        let catalogue = metering_core::Catalogue::from_json(&catalogue).unwrap();
        PassedHeaders::new(Arc::new(gateway), catalogue.routes()[0].removed_headers.clone())
    }

    fn map(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn the_lists_of_the_gateway_and_of_the_route_both_count() {
        let passed = passed(
            "request_headers.remove = ['x-a-*']\nresponse_headers.remove = 'via, x-b-*'\n\
             upstream_headers.authorization = 'Bearer x'\nupstream_headers.x_team = 'red'",
            r#", "request_headers": {"remove": ["x-c"]}, "response_headers": {"remove": ["x-d"]}"#,
        );
        for (name, dropped) in [
            ("x-a-1", true),
            ("x_a_1", true),
            ("x-c", true),
            ("x-d", false),
            ("via", false),
            ("authorization", true),
            ("x.team", true),
            ("accept", false),
        ] {
            assert_eq!(passed.drops_from_request(name), dropped, "{name}");
        }
        let mut headers =
            map(&[("via", "1"), ("x_b_1", "1"), ("x-d", "1"), ("x-a-1", "1"), ("x-bds-credit-charged", "1")]);
        passed.clean_headers(&mut headers);
        assert_eq!(headers, map(&[("x-a-1", "1"), ("x-bds-credit-charged", "1")]));
        let added: Vec<_> =
            passed.added().iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        assert_eq!(added, [("authorization", "Bearer x"), ("x-team", "red")]);
        assert!(!format!("{passed:?}").contains("Bearer"), "{passed:?}");
    }

    #[test]
    fn requests_change_if_the_gateway_or_the_route_says_so() {
        let of_route = r#", "request_headers": {"remove": ["x-a"]}"#;
        // the gateway's settings, the route's, whether they are about requests
        let table = [
            ("", "", false),
            ("response_headers.remove = 'via'", r#", "response_headers": {"remove": ["x-a"]}"#, false),
            ("request_headers.remove = 'x-a'", "", true),
            ("upstream_headers.authorization = 'Bearer x'", "", true),
            ("", of_route, true),
        ];
        for (gateway, route, change) in table {
            assert_eq!(passed(gateway, route).change_requests(), change, "{gateway} {route}");
        }
    }

    #[tokio::test]
    async fn trailers_are_cleaned_like_headers() {
        let passed = passed("response_headers.remove = ['x-cost', 'x-bds-*']", "");
        let trailers = map(&[("x-cost", "0.1"), ("x-checksum", "a"), ("x-bds-credit-charged", "1")]);
        let frames = [Ok(Frame::data(Bytes::from("a"))), Ok(Frame::trailers(trailers))];
        let mut response = http::Response::new(StreamBody::new(stream::iter(frames)).boxed_unsync());
        response.headers_mut().insert("trailer", HeaderValue::from_static("X-Cost, X-Checksum"));
        let response = passed.clone().clean(response);
        assert_eq!(response.headers(), &map(&[("trailer", "X-Checksum")]));
        let collected = response.into_body().collect().await.unwrap();
        assert_eq!(collected.trailers(), Some(&map(&[("x-checksum", "a"), ("x-bds-credit-charged", "1")])));

        let whole = Full::new(Bytes::from("abc")).map_err(|never| match never {}).boxed_unsync();
        assert_eq!(passed.clean(http::Response::new(whole)).body().size_hint().exact(), Some(3));
    }
}
