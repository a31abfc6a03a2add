//! The endpoint that proxies call before they forward a request: it charges the request and allows or denies it.
//!
//! It trusts headers about the original request, so it responds only to trusted proxies. To allow a request, it sends a
//! 200 with an empty body and headers to copy; to deny it, the refusal that the gateway would send, for the proxy to
//! pass on. A CORS preflight gets a 204, which the proxy passes on as well.

mod document;
mod ext_authz;
mod grpc;
mod original;

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::CACHE_CONTROL;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Request, StatusCode};
use http_body::Body;
use metering_core::service::Proxied;
use metering_core::wire::ErrorCode;
use metering_core::{Charged, Error, Metered, MeteringLayer, RequestId, Service};
use tower::ServiceExt;
use tower_layer::Layer;

use crate::config::{Config, TrustedProxies};
use crate::gateway::ACCOUNT_HEADER;
use crate::gateway::websocket::handshake::{self, RequestedUpgrade};
use crate::http::{Bodies, ClientAddress, CrossOrigin, Problem, Reply, Response, into_response};
use crate::operations::spans;
use crate::pages::ErrorLinks;

pub(crate) use document::describe;
use original::{Asking, PATH, original};

/// Requests the body of a refusal in a header, for proxies that drop the body.
const REFUSAL_IN_HEADER: HeaderName = HeaderName::from_static("x-bds-refusal-in-header");
/// That header.
const REFUSAL: HeaderName = HeaderName::from_static("x-bds-refusal");

/// Responds to proxies.
#[derive(Debug)]
pub(crate) struct Authorizer {
    metered: Metered<Yes>,
    request_id: Option<HeaderName>,
    hold: Option<Duration>,
    proxies: TrustedProxies,
    cross_origin: CrossOrigin,
    error_links: ErrorLinks,
    /// The largest question over gRPC.
    message_max_bytes: usize,
    bodies: Bodies,
}

/// The status of the decision, where the response to the proxy has a different one.
#[derive(Debug, Clone, Copy)]
struct Decided(StatusCode);

impl Authorizer {
    /// Where proxies ask. Some append the original path.
    pub(crate) const PATH: &'static str = PATH;
    /// Where Envoy asks over gRPC.
    pub(crate) const CHECK: &'static str = ext_authz::CHECK;

    /// An authorizer that charges with `service`. Pages that `cross_origin` allows may call the service behind the
    /// proxy.
    #[must_use]
    pub(crate) fn new(service: Arc<Service>, cross_origin: CrossOrigin, config: &Config, bodies: Bodies) -> Self {
        let error_links = ErrorLinks::new(config);
        let (http, config) = (&config.http, &config.authorize);
        let layer = MeteringLayer::new(service).on_match(|_, route, extensions| {
            spans::name_route(&route.method, &route.template);
            handshake::check_proxied(extensions.get().copied().unwrap_or(RequestedUpgrade::Nothing), route)
        });
        let layer = if config.pass_others { layer.pass_others() } else { layer };
        let hold = config.settle.then(|| config.settle_within.duration());
        Self {
            metered: layer.layer(Yes),
            request_id: config.request_id_header(),
            hold,
            proxies: http.trusted_proxies.clone(),
            cross_origin,
            error_links,
            message_max_bytes: http.max_header_bytes.saturating_add(http.max_body_bytes),
            bodies,
        }
    }

    /// The status of a response as far as the original request is concerned.
    #[must_use]
    pub(crate) fn status_of(response: &Response) -> StatusCode {
        response.extensions().get::<Decided>().map_or_else(|| response.status(), |decided| decided.0)
    }

    /// Responds to a proxy.
    pub(crate) async fn respond<B>(&self, request: Request<B>) -> Response
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (head, body) = request.into_parts();
        if head.uri.path() == ext_authz::CHECK {
            return self.respond_to_check(&head, body).await;
        }
        into_response(self.decide(head, Asking::Http).await)
    }

    /// Responds to Envoy over gRPC.
    async fn respond_to_check<B>(&self, head: &Parts, body: B) -> Response
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let peer = head.extensions.get::<ClientAddress>().filter(|address| address.is_from_proxy());
        let Some(peer) = peer else {
            return grpc::failure(grpc::Failure::PermissionDenied, "only proxies of http.trusted_proxies may ask");
        };
        let body = match self.bodies.read(body, self.message_max_bytes, &head.extensions).await {
            Ok(body) => body,
            Err(problem) if problem.code() == ErrorCode::Overloaded => {
                return grpc::failure(grpc::Failure::Unavailable, "too many large messages are being handled");
            }
            Err(_) => return grpc::failure(grpc::Failure::InvalidArgument, "the message is too large or incomplete"),
        };
        let Some(message) = grpc::message(&body) else {
            return grpc::failure(grpc::Failure::Unimplemented, "send one message that is not compressed");
        };
        let reply = match ext_authz::asked(&message) {
            Ok(mut asked) => {
                // This is Envoy's connection. The headers of the request identify the client.
                let client = ClientAddress::find(peer.peer(), &asked.headers, &self.proxies);
                asked.extensions = head.extensions.clone();
                asked.extensions.insert(client);
                asked.extensions.insert(metering_core::access::ClientAddress(client.ip()));
                self.decide(asked, Asking::Grpc).await
            }
            Err(error) => Problem::from(error).into_reply(),
        };
        let mut response = grpc::response(&ext_authz::answer(&reply));
        response.extensions_mut().insert(Decided(reply.status()));
        response
    }

    /// Charges or refuses a proxy's original request.
    async fn decide(&self, head: Parts, asking: Asking) -> Reply {
        let in_header = head.headers.contains_key(REFUSAL_IN_HEADER);
        let mut response = match self.asked(head, asking) {
            Ok(request) => self.decide_original(request).await,
            Err(problem) => problem.into_reply(),
        };
        if let Some(body) = self.error_links.linked(&mut response) {
            *response.body_mut() = body;
        }
        if in_header && !response.status().is_success() {
            match HeaderValue::from_bytes(response.body()) {
                Ok(body) => drop(response.headers_mut().insert(REFUSAL, body)),
                Err(error) => tracing::error!(%error, "could not put a refusal into a header"),
            }
        }
        response
    }

    /// Decides on the original request. Sets the CORS headers, so that a page can read the response.
    async fn decide_original(&self, request: Request<()>) -> Reply {
        let is_preflight = self.cross_origin.answers(&request);
        let decided = self.cross_origin.respond(request, |request| async {
            match self.metered.clone().oneshot(request).await {
                Ok(response) => response.map(Bytes::from),
                Err(never) => match never {},
            }
        });
        let mut decided = decided.await;
        if is_preflight {
            // A 200 would allow the request, and the service would get it unpaid.
            *decided.status_mut() = StatusCode::NO_CONTENT;
        }
        decided
    }

    /// The proxy's original request.
    fn asked(&self, head: Parts, asking: Asking) -> Result<Request<()>, Problem> {
        if !head.extensions.get::<ClientAddress>().is_some_and(ClientAddress::is_from_proxy) {
            let message = "Only a proxy may ask. Add its address to http.trusted_proxies.";
            return Err(Problem::new(ErrorCode::Forbidden, message));
        }
        let (method, target) = original(&head, asking)?;
        let proxied = Proxied { request_id: self.request_id(&head)?, hold: self.hold };
        let mut request = Request::new(());
        let handshake = handshake::asked(&method, head.version, &head.headers);
        *request.method_mut() = method;
        *request.uri_mut() = target;
        *request.headers_mut() = head.headers;
        *request.extensions_mut() = head.extensions;
        request.extensions_mut().insert(handshake);
        request.extensions_mut().insert(proxied);
        Ok(request)
    }

    /// The proxy's id of the request.
    fn request_id(&self, head: &Parts) -> Result<Option<RequestId>, Error> {
        let Some(name) = &self.request_id else { return Ok(None) };
        let Some(value) = original::once(&head.headers, name)? else { return Ok(None) };
        RequestId::parse(value).map(Some).map_err(|error| Error::field(name.as_str(), error))
    }
}

/// Says yes to every request that was admitted.
#[derive(Debug, Clone, Copy)]
struct Yes;

impl tower_service::Service<Request<()>> for Yes {
    type Response = http::Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<http::Response<String>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<()>) -> Self::Future {
        let mut response = http::Response::new(String::new());
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        let account = request.extensions().get::<Charged>().map(|charged| charged.account.to_string());
        if let Some(account) = account.and_then(|account| HeaderValue::try_from(account).ok()) {
            headers.insert(ACCOUNT_HEADER, account);
        }
        ready(Ok(response))
    }
}
