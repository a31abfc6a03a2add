//! The bound that a client sets on the cost of its request.

use super::MatchedRequest;
use crate::access::credentials::Caller;
use crate::charging::max_cost::{MaxCost, MaxCostError};
use crate::error::Error;
use crate::money::credits::Credits;
use crate::service::metering::Service;

impl MatchedRequest<'_, '_> {
    /// The same request, which is refused if it costs more than this, or may cost more. The bound is checked before
    /// anything is paid or charged, on the price that is charged.
    ///
    /// ```
    /// # use metering_core::service::{AdmissionKind, RequestHead};
    /// # use metering_core::{Error, Service};
    /// # async fn charge(service: &Service, request: RequestHead<'_>) -> Result<(), Error> {
    /// let most = "0.01".parse();
    /// let admitted = service.find(request).at_most(Some(most)).admit().await;
    /// assert!(matches!(admitted, Ok(_) | Err(Error::MaxCostExceeded { .. })));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn at_most(self, max_cost: Option<Result<MaxCost, MaxCostError>>) -> Self {
        Self { max_cost, ..self }
    }
}

impl Service {
    /// Refuses a request that costs more than its client allows.
    pub(super) async fn check_max_cost(
        &self,
        caller: Caller<'_>,
        price: Credits,
        max_cost: Option<Result<MaxCost, MaxCostError>>,
        is_maximum: bool,
    ) -> Result<(), Error> {
        let error = match max_cost {
            None => return Ok(()),
            Some(Ok(max_cost)) if max_cost.covers(price) => return Ok(()),
            Some(Ok(max_cost)) => Error::MaxCostExceeded { price, max_cost, is_maximum },
            Some(Err(error)) => Error::InvalidParameter([("Max-Cost".to_owned(), error.to_string())].into()),
        };
        // Callers that may pay without a key may see the price.
        let is_keyless = caller.key.is_none() && self.offers().accepts_keyless();
        if is_keyless && matches!(error, Error::MaxCostExceeded { .. }) {
            return Err(error);
        }
        Err(Box::pin(self.access.after_authentication(caller, error)).await)
    }
}
