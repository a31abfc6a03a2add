//! [`MeteringLayer`]: puts any tower HTTP service behind the same checks as the standalone gateway.

mod anthropic_limits;
mod body;
mod charged;
mod head;
mod header_value;
mod in_flight_slot;
mod incoming;
mod late_refusal;
mod money;
mod outgoing;
mod overlap;
mod precheck;
mod privacy;
mod received;
mod refusal;
mod response;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::request::Parts;
use http::{Extensions, Request, Response, Uri, header};
use tower_layer::Layer;

use crate::access::credentials::Credentials;
use crate::access::key::ApiKey;
use crate::catalogue::route::Route;
use crate::error::Error;
use crate::service::metering::Service;
use crate::service::{Admission, AdmissionKind, ChallengeClient, Proxied, RequestContent, RequestPayment};
use crate::wire::{PREFER_HEADER, prefers_receipt};

pub use body::RequestBody;
pub use charged::Charged;
use head::{address, request_head};
pub use in_flight_slot::InFlightSlot;
use incoming::{drop_overrides, forward_as_json, forward_checked, set_target, too_long};
use late_refusal::LateRefusal;
use outgoing::Outgoing;
pub use privacy::Privacy;
use received::Received;

/// Charges requests to a [`tower_service::Service`] by the catalogue of a [`Service`].
///
/// It wraps any service that takes `http::Request<B>` and returns `http::Response<R>`, where a body `R` can be made
/// from a `String`: axum's `Body`, warp's, `http_body_util::Full<Bytes>`, or `String` itself. Each request is one of:
///
/// - refused with a JSON error of the protocol (401, 402, 404, 405, 400, 429, 503), without calling the inner service;
/// - charged durably, and passed on with its path and query in normal form and a [`Charged`] in its extensions; the
///   response has the balance, the charge and the rate limits in its headers. With [`MeteringLayer::overlap`], it may be
///   passed on while the charge is flushed;
/// - if its route is priced by usage: passed on once the most that it may cost is held durably. If the catalogue says
///   that a response header reports the cost, the layer captures it; otherwise the inner service calls
///   [`Charged::capture`]. Without a capture, the hold is settled by the rule of the route's price;
/// - passed on uncharged, if its route is not `metered`.
///
/// A route may declare the body of its requests ([`BodyRules`]). Put the body that was read into the extensions, as a
/// [`RequestBody`]: requests to such a route are refused otherwise. The inner service finds a [`CheckedBody`] in the
/// extensions, and must use that instead of the body.
///
/// [`BodyRules`]: crate::catalogue::BodyRules
/// [`CheckedBody`]: crate::catalogue::CheckedBody
///
/// A request with a [`Proxied`] in its extensions comes from a proxy that forwards it itself.
///
/// Responses to requests with credentials, and those with a receipt, are kept out of shared caches ([`Privacy`]).
///
/// Headers that make some frameworks run a different request than the one in the request line, such as
/// `X-HTTP-Method-Override` and `X-Original-URL`, are removed from every request ([`overrides_request`]).
///
/// [`overrides_request`]: crate::catalogue::overrides_request
///
/// If the inner service fails, or responds with 502, 503 or 504, the charge is refunded in full first. The same applies
/// to responses with one of the [free statuses](Route::free_statuses) of their route: by default 429 and 5xx. For
/// anything else that should cost nothing, such as a body that breaks later, there is [`Charged::refund`]. A client
/// that disconnects before the response is ready is still charged, because the work was done. A request whose handler
/// panics is charged too; put a layer that turns panics into 503 inside this one.
///
/// A request that matches no route of the catalogue is refused, so no route is free by accident. For a service with
/// other routes besides the metered ones, see [`MeteringLayer::pass_others`].
///
/// ```
/// use std::sync::Arc;
///
/// use http::{Request, Response, StatusCode};
/// use metering_core::{Catalogue, Charged, MemoryStore, MeteringLayer, Service, ServiceConfig};
/// use tower::{ServiceBuilder, ServiceExt, service_fn};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let catalogue = Catalogue::from_json(
///     r#"{"market": "M", "version": 1, "endpoints": [{"path": "/price", "method": "GET", "metered": true}]}"#,
/// )?;
/// let service = Arc::new(Service::start(Arc::new(MemoryStore::new()), catalogue, ServiceConfig::default()));
/// let metered = ServiceBuilder::new().layer(MeteringLayer::new(service)).service(service_fn(
///     |request: Request<String>| async move {
///         let payer = request.extensions().get::<Charged>().map(|charged| charged.account.to_string());
///         Ok::<_, std::convert::Infallible>(Response::new(format!("paid by {payer:?}")))
///     },
/// ));
/// let response = metered.oneshot(Request::get("/price").body(String::new())?).await?;
/// assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct MeteringLayer {
    service: Arc<Service>,
    passes_others: bool,
    overlaps: bool,
    on_match: Option<Arc<OnMatch>>,
}

type OnMatch = dyn Fn(Option<&ApiKey>, &Route, &mut Extensions) -> Result<(), Error> + Send + Sync;

/// A service behind a [`MeteringLayer`].
#[derive(Clone)]
pub struct Metered<S> {
    gate: MeteringLayer,
    inner: S,
}

impl MeteringLayer {
    /// Makes a layer that charges with `service` and refuses requests that match no route of its catalogue.
    #[must_use]
    pub fn new(service: Arc<Service>) -> Self {
        Self { service, passes_others: false, overlaps: false, on_match: None }
    }

    /// Passes requests for other paths through unchanged, uncharged, and without checking for a key.
    ///
    /// Other paths are those whose first segment matches no route of the catalogue ([`Catalogue::covers`]): with
    /// metered routes below `/mpp`, `/health` passes and `/mpp/unheard-of` is refused. A path that servers could read
    /// in more than one way is always refused, because a server might read it as a metered route.
    ///
    /// ```
    /// use std::convert::Infallible;
    /// use std::sync::Arc;
    ///
    /// use http::{Request, Response, StatusCode};
    /// use metering_core::{Catalogue, MemoryStore, MeteringLayer, Service, ServiceConfig};
    /// use tower::{ServiceBuilder, ServiceExt, service_fn};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let catalogue = Catalogue::from_json(
    /// #     r#"{"market": "M", "version": 1,
    /// #         "endpoints": [{"path": "/mpp/price", "method": "GET", "metered": true}]}"#,
    /// # )?;
    /// # let service = Arc::new(Service::start(Arc::new(MemoryStore::new()), catalogue, ServiceConfig::default()));
    /// let layer = MeteringLayer::new(service).pass_others();
    /// let served = ServiceBuilder::new().layer(layer).service(service_fn(|_: Request<String>| async {
    ///     Ok::<_, Infallible>(Response::new("up".to_owned()))
    /// }));
    /// let health = served.clone().oneshot(Request::get("/health").body(String::new())?).await?;
    /// assert_eq!(health.body(), "up");
    /// let unlisted = served.oneshot(Request::get("/mpp/unheard-of").body(String::new())?).await?;
    /// assert_eq!(unlisted.status(), StatusCode::UNAUTHORIZED); // with a live key, it is 404
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// [`Catalogue::covers`]: crate::Catalogue::covers
    #[must_use]
    pub fn pass_others(mut self) -> Self {
        self.passes_others = true;
        self
    }

    /// Calls `hook` with each request that matches a route, before its parameters are checked and before it is charged.
    ///
    /// The hook may refuse the request without a charge, reserve resources, and put values into the extensions, where
    /// the inner service finds them. The key is well-formed, but not known to be live. Everything in the extensions is
    /// dropped if the request is refused later.
    ///
    /// A limit on the requests to one kind of route that are served at the same time:
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use metering_core::{Error, MeteringLayer, Service};
    /// use tokio::sync::Semaphore;
    ///
    /// fn limited(service: Arc<Service>) -> MeteringLayer {
    ///     let slots = Arc::new(Semaphore::new(100));
    ///     MeteringLayer::new(service).on_match(move |_key, route, extensions| {
    ///         if route.template.starts_with("/reports/") {
    ///             let slot = Arc::clone(&slots).try_acquire_owned().map_err(|_| Error::Overloaded)?;
    ///             extensions.insert(Arc::new(slot)); // released with the request
    ///         }
    ///         Ok(())
    ///     })
    /// }
    /// ```
    #[must_use]
    pub fn on_match<F>(mut self, hook: F) -> Self
    where
        F: Fn(Option<&ApiKey>, &Route, &mut Extensions) -> Result<(), Error> + Send + Sync + 'static,
    {
        self.on_match = Some(Arc::new(hook));
        self
    }

    /// Admits a request, with its target in normal form.
    async fn admit<R: From<String>>(
        &self,
        head: &mut Parts,
        received: Received,
        outgoing: &mut Outgoing,
    ) -> Result<Option<Charged>, Response<R>> {
        let headers = &head.headers;
        let values = |name: &'static str| received.values(headers, name);
        let credentials = Credentials::read(values);
        let read_body = head.extensions.get::<RequestBody>().cloned();
        let content = read_body.as_ref().map(|body| RequestContent {
            bytes: body.as_bytes(),
            is_encoded: headers.contains_key(header::CONTENT_ENCODING),
        });
        let found = self.service.find(request_head(
            (&head.method, &head.uri),
            &credentials,
            address(&head.extensions),
            content,
        ));
        if self.passes_others && found.is_uncovered() {
            outgoing.pass();
            return Ok(None);
        }
        outgoing.is_for(found.route(), || self.service.catalogue().errors_near(head.uri.path()));
        let found = found.identified(outgoing.id);
        // Read for refusals only, and those that may come late: it hashes the key.
        let client = || ChallengeClient::read(values, credentials.key.as_ref());
        let presented = self.service.offers().read(values);
        let route = found.route();
        let presented = presented.map_err(|error| self.refusal(&head.uri, route, &error, client(), None))?;
        // A client that sends a key wants its account credited, so a mistyped one is an error.
        let payment = presented.as_deref().filter(|_| credentials.fault.is_none());
        let sign_in = self.service.offers().sign_in(values);
        let found = found.paid_with(payment).at_most(credentials.max_cost).overlapping(self.overlaps);
        let found = found.signed_in_with(sign_in.filter(|_| credentials.fault.is_none()));
        let found = match head.extensions.get::<Proxied>() {
            Some(proxied) => found.proxied(proxied.clone()),
            None => found,
        };
        let refused =
            |error| self.refusal(&head.uri, route, &credentials.explain(error), client(), presented.as_deref());
        if let (Some(hook), Some(route)) = (&self.on_match, route) {
            hook(credentials.key.as_ref(), route, &mut head.extensions).map_err(refused)?;
        }
        let before = self.service.access().now();
        let Admission { target, body, usage_price, kind, route, paid, key } = found.admit().await.map_err(refused)?;
        if let Some(key) = key {
            outgoing.is_charged((&kind, route), &key, before, &mut head.extensions);
        }
        let is_expected = matches!(kind, AdmissionKind::Expected(_));
        let late = is_expected.then(|| LateRefusal::new(&head.uri, route, client()));
        let prefers_receipt = self.service.signs_receipts() && prefers_receipt(values(PREFER_HEADER));
        if let Some(body) = body {
            forward_checked(head, body);
        } else if route.usage_price().is_some_and(|price| price.has_model_in_body()) {
            forward_as_json(&mut head.headers);
        }
        let charged = match kind {
            AdmissionKind::Charged(receipt) => Some(Charged::new(&self.service, receipt.into(), route)),
            AdmissionKind::Early(receipt) => Some(Charged::new(&self.service, receipt, route)),
            AdmissionKind::Expected(charge) => Some(Charged::expected(&self.service, charge, route, late)),
            AdmissionKind::Held(guard) => Some(Charged::held(&self.service, guard, route, usage_price)),
            AdmissionKind::Free => None,
        };
        let charged = charged.map(|charged| charged.receipted(outgoing.id, prefers_receipt, route));
        if let (Some(charged), Some(presented), Some(paid)) = (&charged, presented, paid) {
            charged.paid_with(presented, paid).await;
        }
        if !set_target(&mut head.uri, target) {
            return match &charged {
                Some(charged) => Err(Box::pin(charged.undelivered(too_long().to_response())).await),
                None => Err(too_long().to_response()),
            };
        }
        if let Some(charged) = &charged {
            head.extensions.insert(charged.clone());
        }
        Ok(charged)
    }

    /// The response to a request that was refused, with offers if it can be paid for.
    fn refusal<R: From<String>>(
        &self,
        uri: &Uri,
        route: Option<&Route>,
        error: &Error,
        client: ChallengeClient,
        presented: Option<&dyn RequestPayment>,
    ) -> Response<R> {
        refusal::response(self.service.offers(), (uri, route), error, client, presented)
    }

    /// An async block, since the future of an async function has its arguments twice.
    fn serve<S, B, R>(self, mut inner: S, request: Request<B>) -> impl Future<Output = Result<Response<R>, S::Error>>
    where
        S: tower_service::Service<Request<B>, Response = Response<R>>,
        R: From<String>,
    {
        let (mut head, body) = request.into_parts();
        async move {
            let received = Received::of(&head.headers);
            if received.has_overrides() {
                drop_overrides(&mut head.headers);
            }
            let mut outgoing = Outgoing::new(&mut head, received, || self.service.access().now());
            let charged = match self.admit(&mut head, received, &mut outgoing).await {
                Ok(charged) => charged,
                Err(refusal) => return Ok(outgoing.finish(refusal)),
            };
            // If the charge is not on disk yet, it is decided and flushed meanwhile. `Charged` waits for that before a
            // response is returned.
            let outcome = inner.call(Request::from_parts(head, body)).await;
            let response = match (outcome, charged) {
                (Ok(response), None) => response,
                (Ok(response), Some(charged)) => charged.respond(response).await,
                (Err(error), None) => return Err(error),
                // There is no response to set headers on, and a failed refund is already logged.
                (Err(error), Some(charged)) => Box::pin(charged.not_served()).await.ok_or(error)?,
            };
            Ok(outgoing.finish(response))
        }
    }
}

impl<S> Layer<S> for MeteringLayer {
    type Service = Metered<S>;

    fn layer(&self, inner: S) -> Metered<S> {
        Metered { gate: self.clone(), inner }
    }
}

impl fmt::Debug for MeteringLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { service, passes_others, overlaps, on_match } = self;
        f.debug_struct("MeteringLayer")
            .field("service", service)
            .field("passes_others", passes_others)
            .field("overlaps", overlaps)
            .field("on_match", &on_match.is_some())
            .finish()
    }
}

impl<S> fmt::Debug for Metered<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metered").field("gate", &self.gate).finish_non_exhaustive()
    }
}

impl<S, B, R> tower_service::Service<Request<B>> for Metered<S>
where
    S: tower_service::Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send,
    B: Send + 'static,
    R: From<String> + Send + 'static,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<R>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // Call the service that reported ready; its clone may not be ready.
        let fresh = self.inner.clone();
        let ready = std::mem::replace(&mut self.inner, fresh);
        Box::pin(self.gate.clone().serve(ready, request))
    }
}

#[cfg(test)]
mod future_sizes;
