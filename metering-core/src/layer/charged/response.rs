//! How the response to a request settles its charge.

use http::Response;

use super::{Charged, State};
use crate::catalogue::ReportError;
use crate::catalogue::free_statuses::is_undelivered;
use crate::layer::in_flight_slot::InFlightSlot;
use crate::money::credits::Credits;

impl Charged {
    /// The response for the client to the inner service's: a refund with a refund if it was not delivered or its status
    /// is free; otherwise the request's cost is settled, and the headers show it. Rare branches are boxed, to keep the
    /// future of a request small.
    pub(in crate::layer) async fn respond<R: From<String>>(&self, response: Response<R>) -> Response<R> {
        if is_undelivered(response.status().as_u16()) {
            Box::pin(self.undelivered(response)).await
        } else if self.is_free(response.status()) {
            Box::pin(self.free(response)).await
        } else {
            self.delivered(response).await
        }
    }

    /// Marks a response that is passed on to the client, once the charge is on disk. If it does not get there, the response
    /// is dropped.
    pub(super) async fn delivered<R: From<String>>(&self, mut response: Response<R>) -> Response<R> {
        let mut state = self.shared.state.lock().await;
        if let Err(error) = state.on_disk(&self.shared.service).await {
            return state.failed(&self.shared.service, &error);
        }
        if self.usage_price.is_some() {
            // Capturing acquires the lock itself.
            drop(state);
            let (reported, tokens) = self.reported(&response);
            Box::pin(self.capture_reported(reported, tokens)).await;
            Box::pin(self.await_payment()).await;
            state = self.shared.state.lock().await;
        }
        if let Some(settlement) = state.settlement.take() {
            self.shared.service.record_delivery(settlement);
        }
        InFlightSlot::pass(state.slot.take(), &mut response);
        match State::set_cost(state, &mut response) {
            Some(receipt) => Box::pin(receipt.signed_into(&self.shared.service, response)).await,
            None => response,
        }
    }

    /// The cost and the tokens that the response's headers report, if the catalogue declares them there.
    fn reported<R>(&self, response: &Response<R>) -> (Result<Option<Credits>, ReportError>, Option<u32>) {
        let Some(price) = &self.usage_price else { return (Ok(None), None) };
        let header = |name: &str| response.headers().get(name).map(http::HeaderValue::as_bytes);
        (price.cost_from_headers(header), price.tokens_from_headers(header))
    }

    /// Captures a cost that was reported. A failed one is already logged.
    async fn capture_reported(&self, reported: Result<Option<Credits>, ReportError>, tokens: Option<u32>) {
        match reported {
            Ok(Some(cost)) => {
                self.used_tokens(tokens).await;
                drop(self.capture(cost).await);
            }
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(%error, route = %self.route_template, "the cost of a request could not be read");
                drop(self.capture_without_report().await);
            }
        }
    }
}
