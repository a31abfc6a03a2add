//! Admission to metered routes: finds the route, sets the price and charges the request.

mod admission;
mod matched_request;
mod max_cost;
mod no_match;
mod overlap;
mod precheck;
mod proxied;
mod request_head;

use crate::access::key::KeyFault;
use crate::charging::charge::{Charge, Decision, Receipt};
use crate::charging::hold::HoldTerms;
use crate::charging::refusal::Refusal;
use crate::charging::{EarlyDecision, HoldGuard};
use crate::error::{Error, PaymentRequired};
use crate::money::credits::Credits;
use crate::random::SystemRandomness;
use crate::service::Links;
use crate::service::metering::Service;

pub use admission::{Admission, AdmissionKind};
pub use matched_request::MatchedRequest;
use no_match::NoMatch;
pub use proxied::Proxied;
pub(crate) use request_head::kept_path;
pub use request_head::{RequestContent, RequestHead};

impl Service {
    /// Finds a request's route. Parses the path and matches it once; reads nothing from the store.
    ///
    /// Use it instead of [`Service::admit`] where something depends on the route before the request is charged. A
    /// request that matches no route is refused by [`MatchedRequest::admit`], after its key is checked: without a live key, a
    /// caller learns nothing more.
    ///
    /// ```
    /// # use metering_core::service::RequestHead;
    /// # use metering_core::{Error, Receipt, Service};
    /// use metering_core::service::AdmissionKind;
    ///
    /// /// Charges requests, except for streams while the service is busy.
    /// async fn charge(service: &Service, request: RequestHead<'_>, busy: bool) -> Result<Option<Receipt>, Error> {
    ///     let found = service.find(request);
    ///     if busy && found.route().is_some_and(|route| route.sse) {
    ///         return Err(Error::Overloaded);
    ///     }
    ///     match found.admit().await?.kind {
    ///         AdmissionKind::Charged(receipt) => Ok(Some(receipt)),
    ///         _ => Ok(None),
    ///     }
    /// }
    /// ```
    #[must_use]
    pub fn find<'r>(&self, request: RequestHead<'r>) -> MatchedRequest<'_, 'r> {
        let matched = match self.catalogue().path(request.path) {
            Ok(path) => match self.catalogue().find(request.method, &path) {
                Ok(route) => Ok((route, path)),
                Err(refusal) => Err(NoMatch::Route(path, refusal)),
            },
            Err(error) => Err(NoMatch::Path(error)),
        };
        MatchedRequest {
            service: self,
            request,
            max_cost: None,
            sign_in: None,
            proxied: None,
            id: None,
            may_overlap: false,
            matched,
        }
    }

    /// Admits a request to its route and charges it if the route is metered: [`Service::find`], then [`MatchedRequest::admit`].
    ///
    /// ```
    /// use metering_core::access::Credentials;
    /// use metering_core::service::{AdmissionKind, RequestHead};
    /// use metering_core::{Catalogue, MemoryStore, Service, ServiceConfig};
    /// # use std::sync::Arc;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let catalogue = Catalogue::from_json(
    ///     r#"{"market": "M", "version": 1, "endpoints": [
    ///         {"path": "/search", "method": "GET", "metered": true, "price": "0.5",
    ///          "params": [{"name": "text", "in": "query", "type": "string", "required": true}]}]}"#,
    /// )?;
    /// let service = Service::start(Arc::new(MemoryStore::new()), catalogue, ServiceConfig::default());
    /// # let (_, key) = service.open_account("my-agent", "2".parse()?).await?;
    /// # let request = http::Request::get("/search?text=coffee").header("x-api-key", key.expose()).body(())?;
    ///
    /// let headers = request.headers();
    /// let credentials = Credentials::read(|name| headers.get_all(name).iter().map(|value| value.as_bytes()));
    /// let head = RequestHead {
    ///     key: credentials.key.as_ref(),
    ///     address: None, // of the connection, or as the proxy reports it
    ///     method: request.method().as_str(),
    ///     body: None, // of the request, for routes that are priced by usage
    ///     path: request.uri().path(),
    ///     query: request.uri().query(),
    ///     source: credentials.source,
    ///     idempotency_key: credentials.idempotency_key(),
    ///     payment: None, // or `service.offers().read(…)`
    /// };
    /// let admission = service.admit(head).await?;
    /// assert_eq!(admission.target, "/search?text=coffee"); // forward this
    /// let AdmissionKind::Charged(receipt) = admission.kind else { return Err("the route is metered".into()) };
    /// assert_eq!(receipt.balance.to_string(), "1.5");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See the table of metered routes in docs/protocol.md. Nothing is charged, unless the error reports an unknown
    /// outcome.
    pub async fn admit(&self, request: RequestHead<'_>) -> Result<Admission<'_>, Error> {
        self.find(request).admit().await
    }

    /// Makes one charge, whose price and route the caller decides. A refusal is an error, in its form for clients.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use metering_core::{Charge, MemoryStore, Service};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let service = Service::with_defaults(Arc::new(MemoryStore::new()));
    /// let (_, key) = service.open_account("my-agent", "2".parse()?).await?;
    /// let receipt = service.charge(Charge::new(&key, "0.25".parse()?, "GET", "/quotes/{number}")).await?;
    /// assert_eq!(receipt.balance.to_string(), "1.75");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::KeyRefused`], [`Error::Refused`], [`Error::InsufficientCredits`], or when the meter or the store fails.
    /// Nothing is charged, unless the error reports an unknown outcome.
    pub async fn charge(&self, mut charge: Charge) -> Result<Receipt, Error> {
        charge.in_flight.get_or_insert_with(|| self.charging.in_flight.clone());
        match self.charging.meter.charge(charge).await? {
            Decision::Accepted(receipt) => Ok(receipt),
            Decision::Refused(refusal) => Err(Box::pin(self.refused(refusal)).await),
        }
    }

    /// [`Service::charge`], whose receipt may not be on disk yet, or not known.
    async fn charge_early(&self, charge: Charge) -> Result<AdmissionKind, Error> {
        match self.charging.meter.charge_early(charge).await? {
            EarlyDecision::Accepted(receipt) => Ok(AdmissionKind::Early(receipt)),
            EarlyDecision::Expected(charge) => Ok(AdmissionKind::Expected(charge)),
            EarlyDecision::Refused(refusal) => Err(Box::pin(self.refused(refusal)).await),
        }
    }

    /// Holds the price of a request, whose cost its guard captures later. A refusal is an error, in its form for
    /// clients.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use metering_core::{Charge, Credits, MemoryStore, Service};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let service = Service::with_defaults(Arc::new(MemoryStore::new()));
    /// let (_, key) = service.open_account("my-agent", "2".parse()?).await?;
    /// let most = Charge::new(&key, "0.5".parse()?, "POST", "/chat");
    /// let guard = service.hold(most, Credits::ZERO).await?;
    /// // Serve the request. If the guard is dropped instead, nothing is charged: that is what the zero says.
    /// let captured = guard.capture("0.02".parse()?).await?;
    /// assert_eq!(captured.balance.to_string(), "1.98");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// `fallback` is captured if the cost is not reported, at most the hold.
    ///
    /// # Errors
    /// As [`Service::charge`]. The balance must cover the whole hold.
    pub async fn hold(&self, charge: Charge, fallback: Credits) -> Result<HoldGuard, Error> {
        let charge = charge.with_hold(self.hold_terms(fallback));
        // The receipt of a hold always has the held amount.
        self.charging.meter.guard(self.charge(charge).await?).map_err(|_| Error::Internal)
    }

    /// The terms of a hold that this process settles.
    fn hold_terms(&self, fallback: Credits) -> HoldTerms {
        HoldTerms::new(&SystemRandomness, self.config.hold_lease, fallback)
    }

    /// The error of a refused charge, in its form for clients: for a charge of the [meter](Service::meter), or one that
    /// was [expected](AdmissionKind::Expected) to be accepted.
    pub async fn refused(&self, refusal: Refusal) -> Error {
        match refusal {
            Refusal::UnknownKey => Error::KeyRefused(KeyFault::NotLive),
            Refusal::Key(refusal) => refusal.into(),
            Refusal::Repeated(repetition) => Error::Repeated(repetition),
            Refusal::MaxCostExceeded { price, max_cost } => {
                Error::MaxCostExceeded { price, max_cost, is_maximum: false }
            }
            Refusal::InsufficientCredits { balance, required, rate } => {
                let plans = match self.payments().plans().await {
                    Ok(plans) => plans,
                    Err(error) => return error,
                };
                let Links { plans: plans_url, top_up: topup_url, .. } = self.config.links.clone();
                let payment_required = PaymentRequired { balance, required, rate, plans_url, topup_url, plans };
                Error::InsufficientCredits(Box::new(payment_required))
            }
            refusal => Error::Refused(Box::new(refusal)),
        }
    }
}
