//! [`Charged`]: what the inner service of the layer knows about the charge of its request, and how it is refunded.

use std::fmt;
use std::sync::Arc;

use http::Response;
use tokio::sync::Mutex;

use super::response::set_headers;
use crate::access::account::AccountId;
use crate::charging::charge::Receipt;
use crate::charging::in_flight::Slot;
use crate::error::Error;
use crate::money::credits::Credits;
use crate::service::Service;
use crate::wire::metered_headers;

/// The account and amount of a charge. Every charged request has it in its extensions.
///
/// [`MeteringLayer`](crate::MeteringLayer) and [`Charged::refund`] have examples of a service that reads it.
#[derive(Clone)]
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
    service: Arc<Service>,
    state: Arc<Mutex<State>>,
}

struct State {
    /// Taken by the refund, so that there is only one.
    receipt: Option<Receipt>,
    /// What the response says that the request cost.
    headers: Vec<(&'static str, String)>,
    refund: Result<(), Error>,
    /// Counts the request as under way, if its key has a limit on that.
    slot: Option<Slot>,
}

/// Counts a request as under way, for a key with a limit on that.
///
/// [`MeteringLayer`](crate::MeteringLayer) puts it into the extensions of the response. If the response has a body that
/// takes time, such as a stream, keep it with the body until that has ended. Otherwise the request ends with its head.
#[derive(Debug, Clone)]
pub struct UnderWay {
    _slot: Arc<Slot>,
}

impl Charged {
    pub(super) fn new(service: &Arc<Service>, mut receipt: Receipt) -> Self {
        let slot = receipt.slot.take();
        Self {
            account: receipt.account.clone(),
            amount: receipt.charged,
            balance: receipt.balance,
            route_template: Arc::clone(&receipt.line.route_template),
            service: Arc::clone(service),
            state: Arc::new(Mutex::new(State {
                headers: metered_headers(&receipt),
                receipt: Some(receipt),
                refund: Ok(()),
                slot,
            })),
        }
    }

    /// Refunds the charge in full. Later calls do nothing and return the same.
    ///
    /// The layer does this by itself when the inner service fails or responds with 502, 503 or 504. Call it for any
    /// other response that should cost nothing, before it is returned, and its headers say so; or from its body, if
    /// that breaks before its first byte. The refund is made even if the returned future is dropped.
    ///
    /// ```
    /// use http::{Request, Response};
    /// use metering_core::{Charged, Error};
    ///
    /// /// A search that finds nothing costs nothing.
    /// async fn search(request: Request<String>) -> Result<Response<String>, Error> {
    ///     let hits: Vec<&str> = ["coffee", "tea"].into_iter().filter(|word| word.contains(request.body())).collect();
    ///     if let (true, Some(charged)) = (hits.is_empty(), request.extensions().get::<Charged>()) {
    ///         charged.refund().await?;
    ///     }
    ///     Ok(Response::new(hits.join("\n")))
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::sync::Arc;
    /// # use metering_core::{Catalogue, MemoryStore, MeteringLayer, Service, ServiceConfig};
    /// # use tower::{ServiceBuilder, ServiceExt, service_fn};
    /// # let catalogue = Catalogue::from_json(
    /// #     r#"{"market": "M", "version": 1, "endpoints": [{"path": "/search", "method": "POST", "metered": true}]}"#,
    /// # )?;
    /// # let service = Arc::new(Service::start(Arc::new(MemoryStore::new()), catalogue, ServiceConfig::default()));
    /// # let (_, key) = service.open_account("my-agent", "2".parse()?).await?;
    /// # let served = ServiceBuilder::new().layer(MeteringLayer::new(service)).service(service_fn(search));
    /// # let request = Request::post("/search").header("x-api-key", key.expose()).body("beer".to_owned())?;
    /// let response = served.oneshot(request).await?; // a search for beer, through the layer
    /// assert_eq!(response.headers()["x-bds-credit-charged"], "0");
    /// assert_eq!(response.headers()["x-bds-credit-balance"], "2");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::NotRefunded`] when the refund could not be recorded. The charge then stands, and the failure was logged.
    pub async fn refund(&self) -> Result<(), Error> {
        let mut state = self.state.lock().await;
        if let Some(receipt) = state.receipt.take() {
            let refund = self.service.refund_undelivered(receipt).await;
            (state.headers, state.refund) = (refund.headers, refund.outcome);
        }
        state.refund.clone()
    }

    /// Marks a response that is passed on to the client.
    pub(super) async fn delivered<R>(&self, mut response: Response<R>) -> Response<R> {
        let mut state = self.state.lock().await;
        if let Some(receipt) = &state.receipt {
            self.service.delivered(receipt);
        }
        if let Some(slot) = state.slot.take() {
            response.extensions_mut().insert(UnderWay { _slot: Arc::new(slot) });
        }
        set_headers(response, std::mem::take(&mut state.headers))
    }

    /// Refunds a request that was not served, and returns its response.
    pub(super) async fn undelivered<R: From<String>>(&self, response: Response<R>) -> Response<R> {
        let response = match self.refund().await {
            Ok(()) => response,
            Err(error) => error.to_response(),
        };
        set_headers(response, std::mem::take(&mut self.state.lock().await.headers))
    }
}

impl fmt::Debug for Charged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { account, amount, balance, route_template, .. } = self;
        f.debug_struct("Charged")
            .field("account", account)
            .field("amount", amount)
            .field("balance", balance)
            .field("route_template", route_template)
            .finish_non_exhaustive()
    }
}
