//! Serves requests while their charges are flushed, or decided.

use super::MeteringLayer;

impl MeteringLayer {
    /// Calls the inner service as soon as a charge is decided, while it is flushed to disk, for routes
    /// [that allow it](crate::catalogue::Route::overlaps): those for GET and HEAD, unless the catalogue says otherwise.
    /// A request then takes the longer of the flush and the inner service, not their sum.
    ///
    /// The response is returned when both are done. If the flush fails, the response is dropped, and the client gets 503
    /// as for any charge that fails: so the inner service may have worked for a request that was not charged. It must not
    /// send anything except in its response. [`Charged::refund`](crate::Charged::refund) waits for the flush.
    ///
    /// With a store without early decisions, such as PostgreSQL, the inner service is called before the decision if the
    /// charge will clearly be accepted ([`Meter::charge_early`](crate::Meter::charge_early) defines that). If it is
    /// refused after all, the response is dropped, and the client gets the refusal. In between,
    /// [`Charged::balance`](crate::Charged::balance) is `None`.
    ///
    /// Requests with an idempotency key or a payment, holds, event streams and WebSocket connections are served once their
    /// charge is on disk.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use metering_core::{MeteringLayer, Service};
    ///
    /// fn fast(service: Arc<Service>) -> MeteringLayer {
    ///     MeteringLayer::new(service).overlap()
    /// }
    /// ```
    #[must_use]
    pub fn overlap(mut self) -> Self {
        self.overlaps = true;
        self
    }
}
