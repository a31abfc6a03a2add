//! Holds for requests that another service will serve.

use std::time::Duration;

use crate::access::credentials::Caller;
use crate::catalogue::{MAX_PRICE, Route};
use crate::charging::hold::HoldTerms;
use crate::error::Error;
use crate::money::credits::Credits;
use crate::random::SystemRandomness;
use crate::service::RequestPayment;
use crate::service::metering::Service;
use crate::wire::{HoldFields, HoldRequest, HoldResponse};

/// The default lease of a hold that a service opens over HTTP.
const DEFAULT_LEASE: Duration = Duration::from_secs(15 * 60);

impl Service {
    /// Holds credits for a request that another service will serve. The other service captures or releases them. A
    /// payment that came with the request is credited first, to the account of the key.
    ///
    /// ```
    /// use metering_core::wire::{CaptureRequest, HoldRequest};
    /// use metering_core::{MemoryStore, Service};
    /// # use std::sync::Arc;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let service = Service::with_defaults(Arc::new(MemoryStore::new()));
    /// # let (_, key) = service.open_account("my-agent", "2".parse()?).await?;
    /// let request: HoldRequest = serde_json::from_str(
    ///     r#"{"path": "/render/17", "method": "POST", "route_template": "/render/{id}", "amount": "0.5"}"#,
    /// )?;
    /// let held = service.hold_for(Some(&key), &request, None).await?;
    /// assert_eq!(held.credit_balance.to_string(), "1.5");
    /// let report = CaptureRequest { id: held.request.id.clone(), amount: Some("0.1".parse()?), ..CaptureRequest::default() };
    /// let captured = service.holds().capture(&report).await?;
    /// assert_eq!(captured.credit_balance.to_string(), "1.9");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of a metered route; [`Error::ValidationFailed`] when a field is invalid; and [`Error::Offer`] when the
    /// payment was not credited, or not yet.
    pub async fn hold_for(
        &self,
        caller: impl Into<Caller<'_>>,
        request: &HoldRequest,
        payment: Option<&dyn RequestPayment>,
    ) -> Result<HoldResponse, Error> {
        let charge = self.paid_charge(caller.into(), &request.of, Some(&request.terms), payment).await?;
        let receipt = self.charge(charge).await?;
        let id = receipt.hold.ok_or(Error::Internal)?.id;
        let hold = self.access.store.hold(&id).await?.ok_or(Error::NoSuchRequest)?;
        Ok(HoldResponse::new(&hold, receipt.balance, !receipt.repeated))
    }
}

/// The amount to hold, and its terms. `listed` is the price without a hold.
pub(super) fn held_price(
    fields: &HoldFields,
    route: Option<&Route>,
    listed: impl FnOnce() -> Result<Credits, Error>,
) -> Result<(Credits, HoldTerms), Error> {
    let HoldFields { amount, fallback, lease_seconds } = *fields;
    // Not zero, or a caller could make a request free.
    if amount.is_some_and(|amount| !amount.is_positive() || amount > MAX_PRICE) {
        return Err(Error::field("amount", format!("must be above 0 and at most {MAX_PRICE}")));
    }
    if fallback.is_some_and(Credits::is_negative) {
        return Err(Error::field("fallback", "must be zero or more"));
    }
    let by_usage = route.and_then(Route::usage_price);
    let amount = match amount.or(by_usage.map(|price| price.max())) {
        Some(amount) => amount,
        None => listed()?,
    };
    let fallback = fallback.or(by_usage.map(|price| price.without_report(amount))).unwrap_or(Credits::ZERO);
    Ok((amount, HoldTerms::new(&SystemRandomness, lease(lease_seconds)?, fallback)))
}

/// The lease that a service requests.
fn lease(seconds: Option<u32>) -> Result<Duration, Error> {
    match seconds {
        None => Ok(DEFAULT_LEASE),
        Some(seconds) => {
            let (lease, leases) = (Duration::from_secs(seconds.into()), HoldTerms::LEASES);
            let problem = || format!("must be {} to {}", leases.start().as_secs(), leases.end().as_secs());
            if leases.contains(&lease) { Ok(lease) } else { Err(Error::field("lease_seconds", problem())) }
        }
    }
}
