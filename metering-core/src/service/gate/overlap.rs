//! Requests that are served while their charge is flushed, or decided.

use super::MatchedRequest;

impl MatchedRequest<'_, '_> {
    /// The same request, which may be admitted as [`AdmissionKind::Early`](super::AdmissionKind::Early) or
    /// [`AdmissionKind::Expected`](super::AdmissionKind::Expected) if `may_overlap`: serve it, and pass nothing of its
    /// response on before its charge is on disk.
    ///
    /// It is for routes [that allow it](crate::catalogue::Route::overlaps), and for requests that are charged once: not
    /// for holds, and not for requests with an idempotency key, a payment, or a proxy that forwards them itself.
    ///
    /// ```
    /// # use metering_core::service::{AdmissionKind, RequestHead};
    /// # use metering_core::{Decision, Error, Service};
    /// # async fn read_price() -> String { String::new() }
    /// # async fn price(service: &Service, request: RequestHead<'_>) -> Result<String, Error> {
    /// let admission = service.find(request).overlapping(true).admit().await?;
    /// let price = read_price().await;
    /// match admission.kind {
    ///     AdmissionKind::Early(receipt) => drop(receipt.on_disk().await?),
    ///     AdmissionKind::Expected(charge) => {
    ///         if let Decision::Refused(refusal) = charge.await? {
    ///             return Err(service.refused(refusal).await);
    ///         }
    ///     }
    ///     AdmissionKind::Charged(_) | AdmissionKind::Held(_) | AdmissionKind::Free => {}
    /// }
    /// # Ok(price)
    /// # }
    /// ```
    #[must_use]
    pub fn overlapping(self, may_overlap: bool) -> Self {
        Self { may_overlap, ..self }
    }
}
