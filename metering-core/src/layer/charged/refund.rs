//! Refunds of requests that were charged.

use http::Response;
use tracing::Instrument;

use super::{Charged, State};
use crate::error::Error;
use crate::layer::in_flight_slot::InFlightSlot;
use crate::layer::money::Money;
use crate::trace;

impl Charged {
    /// Refunds the charge in full, or releases the hold. Later calls do nothing and return the same. A captured amount
    /// is kept.
    ///
    /// The layer does this itself when the inner service fails, or responds with a [free status](Charged::is_free).
    /// Call it for any other response that should cost nothing: before returning it, so its headers show it, or from
    /// its body, if that breaks before its first byte. The refund is made even if the returned future is dropped.
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
    /// [`Error::NotRefunded`] when the refund could not be recorded. Then the charge is kept, and the failure was
    /// logged. With [`MeteringLayer::overlap`](crate::MeteringLayer::overlap) also the error of a charge that did not
    /// get to disk, or was refused: there is nothing to refund, and the layer responds with it.
    pub async fn refund(&self) -> Result<(), Error> {
        let mut state = self.shared.state.lock().await;
        if !state.money.is_pending() {
            return self.refund_with(&mut state).await;
        }
        drop(state);
        // In a task: the refund follows the flush even if this future is dropped.
        let (charged, owed) = (self.clone(), self.shared.service.meter().owe_refund());
        let refunding = async move {
            let _owed = owed;
            let mut state = charged.shared.state.lock().await;
            charged.refund_with(&mut state).await
        };
        tokio::spawn(refunding.instrument(trace::current())).await.unwrap_or(Err(Error::NotRefunded))
    }

    async fn refund_with(&self, state: &mut State) -> Result<(), Error> {
        // Only a charge may be refunded.
        state.on_disk(&self.shared.service).await?;
        let money = std::mem::replace(&mut state.money, Money::Refunded);
        // The request was not delivered: its idempotency key is forgotten.
        state.settlement = None;
        match money {
            Money::Charged(early) => {
                let receipt = early.on_disk().await?;
                let refund = self.shared.service.refund_undelivered(receipt).instrument(self.shared.span.clone()).await;
                if let (Some(receipt), Ok(())) = (&mut state.receipt, &refund.outcome) {
                    receipt.refunds(refund.headers.balance(), self.shared.service.access().now());
                }
                (state.headers, state.refund) = (Some(refund.headers), refund.outcome);
            }
            Money::Held(guard) => match self.settling(guard.release()).await {
                Some(Ok(released)) => {
                    state.set_settled(&released);
                    state.begin_to_settle_payment(&self.shared.service);
                    // An earlier settlement is kept.
                    if released.hold.settled.is_some_and(|settled| settled.captured.is_positive()) {
                        state.refund = Err(Error::NotRefunded);
                    }
                }
                // It is released later, or settled by its rule.
                None | Some(Err(_)) => state.refund = Err(Error::NotRefunded),
            },
            Money::Captured => {
                state.money = Money::Captured;
                state.refund = Err(Error::NotRefunded);
            }
            Money::Expected(_) | Money::Refused(_) | Money::Failed(_) | Money::Refunded => {}
        }
        state.refund.clone()
    }

    /// Refunds a request whose response is passed on and costs nothing, or releases its hold. A captured amount is
    /// kept.
    pub(in crate::layer) async fn free<R: From<String>>(&self, response: Response<R>) -> Response<R> {
        if matches!(self.shared.state.lock().await.money, Money::Held(_) | Money::Captured | Money::Refunded) {
            // A failed refund or release is logged, and the headers show the hold.
            drop(self.release().await);
            return self.delivered(response).await;
        }
        let mut response = self.undelivered(response).await;
        InFlightSlot::pass(self.shared.state.lock().await.slot.take(), &mut response);
        response
    }

    /// Refunds a request whose inner service failed. Returns the refusal if the charge was refused after the request
    /// was started: the client must not see the result of a request that was not charged.
    pub(in crate::layer) async fn not_served<R: From<String>>(&self) -> Option<Response<R>> {
        let error = self.refund().await.err()?;
        let state = self.shared.state.lock().await;
        let is_late = state.late.is_some() && matches!(state.money, Money::Failed(_));
        is_late.then(|| state.failed(&self.shared.service, &error))
    }

    /// Refunds a request that was not served, and returns its response.
    pub(in crate::layer) async fn undelivered<R: From<String>>(&self, response: Response<R>) -> Response<R> {
        let mut response = match self.refund().await {
            Ok(()) => response,
            Err(error) => self.shared.state.lock().await.failed(&self.shared.service, &error),
        };
        match State::set_cost(self.shared.state.lock().await, &mut response) {
            Some(receipt) => receipt.signed_into(&self.shared.service, response).await,
            None => response,
        }
    }
}
