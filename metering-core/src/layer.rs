//! [`MeteringLayer`]: puts any tower HTTP service behind the same checks as the standalone gateway.

mod response;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Request, Response, Uri};
use tower_layer::Layer;

use crate::account::AccountId;
use crate::charge::Receipt;
use crate::credentials::Credentials;
use crate::credits::Credits;
use crate::error::Error;
use crate::override_headers::overrides_request;
use crate::path::RequestPath;
use crate::service::{Admission, AdmissionKind, RequestHead, Service};
use crate::wire::metered_headers;
use response::{is_undelivered, set_headers};

/// Charges requests to a [`tower_service::Service`] by the catalogue of a [`Service`].
///
/// It wraps any service that takes `http::Request<B>` and returns `http::Response<R>`, where a body `R` can be made
/// from a `String`: axum's `Body`, warp's, `http_body_util::Full<Bytes>`, or `String` itself. Each request is one of:
///
/// - refused with a JSON error of the protocol (401, 402, 404, 405, 400, 429, 503), without calling the inner service;
/// - charged durably, and passed on with its path and query in normal form and a [`Charged`] in its extensions; the
///   response has the balance, the charge and the rate limits in its headers;
/// - passed on uncharged, if its route is not `metered`.
///
/// Headers that make some frameworks run a different request than the one in the request line, such as
/// `X-HTTP-Method-Override` and `X-Original-URL`, are removed from every request ([`overrides_request`]).
///
/// [`overrides_request`]: crate::overrides_request
///
/// If the inner service fails, or responds with 502, 503 or 504, the charge is refunded in full first. A client that
/// disconnects before the response is ready is still charged, because the work was done. A request whose handler
/// panics is charged too; put a layer that turns panics into 503 inside this one.
///
/// A request that matches no route of the catalogue is refused, so that no route is free by accident. For a service
/// with other routes besides the metered ones, see [`MeteringLayer::pass_others`].
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
#[derive(Debug, Clone)]
pub struct MeteringLayer {
    service: Arc<Service>,
    passes_others: bool,
}

/// The account and amount of a charge. Every charged request has it in its extensions.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Charged {
    /// Who was charged.
    pub account: AccountId,
    /// The price of this request.
    pub amount: Credits,
    /// The balance after it.
    pub balance: Credits,
    /// The template of the charged route.
    pub route_template: Arc<str>,
}

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
        Self { service, passes_others: false }
    }

    /// Passes requests for other paths through unchanged, uncharged, and without checking for a key.
    ///
    /// Other paths are those whose first segment matches no route of the catalogue ([`Catalogue::covers`]): with
    /// metered routes below `/mpp`, `/health` passes and `/mpp/unheard-of` is refused. A path that servers could read
    /// in more than one way is always refused, because a server might read it as a metered route.
    ///
    /// [`Catalogue::covers`]: crate::Catalogue::covers
    #[must_use]
    pub fn pass_others(mut self) -> Self {
        self.passes_others = true;
        self
    }

    fn passes(&self, path: &str) -> bool {
        self.passes_others && RequestPath::parse(path).is_ok_and(|path| !self.service.catalogue().covers(&path))
    }

    /// Admits a request and returns its receipt if it was charged, or the response to send instead.
    async fn admit<R: From<String>>(&self, head: &mut Parts) -> Result<Option<Receipt>, Response<R>> {
        let headers = &head.headers;
        let credentials = Credentials::read(|name| headers.get_all(name).iter().map(HeaderValue::as_bytes));
        let request = RequestHead {
            key: credentials.key.as_ref(),
            method: head.method.as_str(),
            path: head.uri.path(),
            query: head.uri.query(),
            source: credentials.source,
            idempotency_key: credentials.idempotency_key(),
        };
        let Admission { target, kind, .. } =
            self.service.admit(request).await.map_err(|error| credentials.explain(error).to_response())?;
        let receipt = match kind {
            AdmissionKind::Charged(receipt) => Some(receipt),
            AdmissionKind::Free => None,
        };
        match with_target(&head.uri, &target) {
            Some(uri) => head.uri = uri,
            None => return Err(self.undelivered(receipt, too_long().to_response()).await),
        }
        if let Some(receipt) = &receipt {
            head.extensions.insert(Charged::of(receipt));
        }
        Ok(receipt)
    }

    /// Refunds a request that could not be delivered, and returns its response.
    async fn undelivered<R: From<String>>(&self, receipt: Option<Receipt>, response: Response<R>) -> Response<R> {
        let Some(receipt) = receipt else { return response };
        let refund = self.service.refund_undelivered(receipt).await;
        let response = match refund.outcome {
            Ok(()) => response,
            Err(error) => error.to_response(),
        };
        set_headers(response, refund.headers)
    }

    async fn serve<S, B, R>(self, mut inner: S, request: Request<B>) -> Result<Response<R>, S::Error>
    where
        S: tower_service::Service<Request<B>, Response = Response<R>>,
        R: From<String>,
    {
        let (mut head, body) = request.into_parts();
        drop_overrides(&mut head.headers);
        if self.passes(head.uri.path()) {
            return inner.call(Request::from_parts(head, body)).await;
        }
        let receipt = match self.admit(&mut head).await {
            Ok(receipt) => receipt,
            Err(refusal) => return Ok(refusal),
        };
        match (inner.call(Request::from_parts(head, body)).await, receipt) {
            (Ok(response), receipt) if is_undelivered(response.status()) => {
                Ok(self.undelivered(receipt, response).await)
            }
            (Ok(response), Some(receipt)) => {
                self.service.delivered(&receipt);
                Ok(set_headers(response, metered_headers(&receipt)))
            }
            (Err(error), Some(receipt)) => {
                // There is no response to set headers on, and a failed refund is already logged.
                drop(self.service.refund_undelivered(receipt).await);
                Err(error)
            }
            (outcome, None) => outcome,
        }
    }
}

impl Charged {
    fn of(receipt: &Receipt) -> Self {
        Self {
            account: receipt.account.clone(),
            amount: receipt.charged,
            balance: receipt.balance,
            route_template: Arc::clone(&receipt.line.route_template),
        }
    }
}

impl<S> Layer<S> for MeteringLayer {
    type Service = Metered<S>;

    fn layer(&self, inner: S) -> Metered<S> {
        Metered { gate: self.clone(), inner }
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

/// Removes headers that could make a service run a different request than the one that was priced or passed through.
fn drop_overrides(headers: &mut HeaderMap) {
    let overrides: Vec<_> = headers.keys().filter(|name| overrides_request(name.as_str())).cloned().collect();
    for name in overrides {
        headers.remove(name);
    }
}

/// The same URI with another path and query; `None` when they are too long for a URI.
fn with_target(uri: &Uri, target: &str) -> Option<Uri> {
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(target).ok()?);
    Uri::from_parts(parts).ok()
}

/// Normalising a query's encoding can make it longer.
fn too_long() -> Error {
    Error::InvalidParameter([("query".to_owned(), "is too long".to_owned())].into())
}
