//! Requests whose cost is known only after they were served: opened and settled by a guard, by services that report
//! over HTTP, and looked up by their callers.

use std::time::Duration;

use crate::access::credentials::Caller;
use crate::access::scope::Scope;
use crate::catalogue::{FreeStatuses, MAX_PRICE, Route};
use crate::charging::HoldGuard;
use crate::charging::charge::Charge;
use crate::charging::hold::{Hold, HoldAction, HoldId, HoldTerms, HoldUpdate};
use crate::error::Error;
use crate::money::credits::Credits;
use crate::random::SystemRandomness;
use crate::service::{RequestPayment, Service};
use crate::wire::{
    CaptureRequest, HoldFields, HoldRequest, HoldResponse, RequestDocument, RequestsDocument, SettleRequest,
};

/// The most holds in one response.
const MAX_ENTRIES: u32 = 100;
/// The lease of a hold that a service makes over HTTP, unless it asks for another one.
const DEFAULT_LEASE: Duration = Duration::from_secs(15 * 60);

impl Service {
    /// Holds the price of a request, whose cost its guard captures later. A refusal is an error, as clients know it.
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
    /// As [`Service::charge`]. The balance must cover all that is to be held.
    pub async fn hold(&self, charge: Charge, fallback: Credits) -> Result<HoldGuard, Error> {
        let charge = charge.with_hold(self.hold_terms(fallback));
        // The receipt of a hold always says what is held.
        self.meter.guard(self.charge(charge).await?).map_err(|_| Error::Internal)
    }

    /// The terms of a hold that this process settles.
    pub(super) fn hold_terms(&self, fallback: Credits) -> HoldTerms {
        HoldTerms::new(&SystemRandomness, self.config.hold_lease, fallback)
    }

    /// A request of the caller's account whose credits are held, or were settled within the last day. A key without the
    /// scope `read` finds only its own requests.
    ///
    /// # Errors
    /// [`Error::Unauthorized`] without a live key, [`Error::NoSuchRequest`], or when the store fails.
    pub async fn request(&self, caller: impl Into<Caller<'_>>, id: &str) -> Result<RequestDocument, Error> {
        let holder = self.holder_with_any(caller.into(), &[Scope::Read, Scope::Call]).await?;
        let hold = self.find_hold(id).await?;
        let own = holder.key();
        let may_read = own.is_some_and(|own| own.terms.scopes.has(Scope::Read) || own.number == hold.key);
        if hold.account == holder.account.id && may_read { Ok((&hold).into()) } else { Err(Error::NoSuchRequest) }
    }

    /// The requests of the caller's account whose credits are held now, newest first, at most 100.
    ///
    /// # Errors
    /// [`Error::Unauthorized`] without a live key, [`Error::KeyNotAllowed`] when it may not read, or when the store
    /// fails.
    pub async fn held_requests(&self, caller: impl Into<Caller<'_>>) -> Result<RequestsDocument, Error> {
        let account = self.authorize(caller, Scope::Read).await?;
        let holds = self.store.open_holds(&account.id, MAX_ENTRIES).await?;
        Ok(RequestsDocument { data: holds.iter().map(RequestDocument::from).collect() })
    }

    /// Holds credits for a request that another service will serve. That service captures or releases them.
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
    /// let held = service.hold_for(Some(&key), &request).await?;
    /// assert_eq!(held.credit_balance.to_string(), "1.5");
    /// let report = CaptureRequest { id: held.request.id.clone(), amount: Some("0.1".parse()?), ..CaptureRequest::default() };
    /// let captured = service.capture_held(&report).await?;
    /// assert_eq!(captured.credit_balance.to_string(), "1.9");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of a metered route, and [`Error::ValidationFailed`] when a field is invalid.
    pub async fn hold_for(&self, caller: impl Into<Caller<'_>>, request: &HoldRequest) -> Result<HoldResponse, Error> {
        self.hold_paid(caller, request, None).await
    }

    /// Same as [`Service::hold_for`]. A payment that came with the request is credited first, to the account of the
    /// key.
    ///
    /// # Errors
    /// Those of [`Service::hold_for`], and [`Error::Offer`] when the payment was not credited, or not yet.
    pub async fn hold_paid(
        &self,
        caller: impl Into<Caller<'_>>,
        request: &HoldRequest,
        payment: Option<&dyn RequestPayment>,
    ) -> Result<HoldResponse, Error> {
        let charge = self.paid_charge(caller.into(), &request.of, Some(&request.terms), payment).await?;
        let receipt = self.charge(charge).await?;
        let id = receipt.hold.ok_or(Error::Internal)?.id;
        let hold = self.store.hold(&id).await?.ok_or(Error::NoSuchRequest)?;
        Ok(HoldResponse::new(&hold, receipt.balance, !receipt.repeated))
    }

    /// Captures what a held request cost, as the service that served it reports.
    ///
    /// # Errors
    /// [`Error::NoSuchRequest`], [`Error::ValidationFailed`], or when the meter or the store fails.
    pub async fn capture_held(&self, report: &CaptureRequest) -> Result<HoldResponse, Error> {
        let hold = self.find_hold(&report.id).await?;
        let action = self.capture_action(&hold, report)?;
        self.update_hold(hold, action).await
    }

    /// Releases what is held for a request that was not served.
    ///
    /// # Errors
    /// [`Error::NoSuchRequest`], or when the meter or the store fails.
    pub async fn release_held(&self, id: &str) -> Result<HoldResponse, Error> {
        let hold = self.find_hold(id).await?;
        self.update_hold(hold, HoldAction::Release).await
    }

    /// Settles a proxy's request by the status of its response: one of the route's
    /// [free statuses](Route::free_statuses) releases the hold, any other status charges it.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use metering_core::service::{AdmissionKind, Proxied, RequestHead};
    /// use metering_core::wire::SettleRequest;
    /// # use metering_core::{Catalogue, ClientSource, MemoryStore, Service, ServiceConfig};
    /// # use std::sync::Arc;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let catalogue = Catalogue::from_json(
    /// #     r#"{"market": "M", "version": 1,
    /// #         "endpoints": [{"path": "/price", "method": "GET", "metered": true, "price": "0.5"}]}"#,
    /// # )?;
    /// # let service = Service::start(Arc::new(MemoryStore::new()), catalogue, ServiceConfig::default());
    /// # let (_, key) = service.open_account("my-agent", "2".parse()?).await?;
    /// # let head = RequestHead { key: Some(&key), address: None, method: "GET", body: None, path: "/price", query: None,
    /// #     source: ClientSource::Direct, idempotency_key: None, payment: None };
    /// let proxied = Proxied { hold: Some(Duration::from_secs(60)), ..Proxied::default() };
    /// let admission = service.find(head).proxied(proxied).admit().await?;
    /// let AdmissionKind::Charged(receipt) = admission.kind else { return Err("the route is metered".into()) };
    /// let request_id = receipt.hold.ok_or("it is held")?.id.to_string();
    /// let settled = service.settle_proxied(&SettleRequest { request_id, status: 502 }).await?;
    /// assert_eq!(settled.credit_balance.to_string(), "2");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::NoSuchRequest`], [`Error::ValidationFailed`], or when the meter or the store fails.
    pub async fn settle_proxied(&self, ended: &SettleRequest) -> Result<HoldResponse, Error> {
        if !(100..600).contains(&ended.status) {
            return Err(Error::field("status", "must be an HTTP status, 100 to 599"));
        }
        let hold = self.find_hold(&ended.request_id).await?;
        let route = self.route_of_template(&hold.line.route_template, &hold.line.http_method);
        let free = route.map_or_else(FreeStatuses::default, |route| route.free_statuses.clone());
        let action = if free.contains(ended.status) { HoldAction::Release } else { HoldAction::CaptureFallback };
        self.update_hold(hold, action).await
    }

    async fn update_hold(&self, hold: Hold, action: HoldAction) -> Result<HoldResponse, Error> {
        let update = HoldUpdate { account: hold.account, id: hold.id, action, delivery: None, counted_in: None };
        let updated = self.meter.update_hold(update).await?;
        Ok(HoldResponse::new(&updated.hold, updated.balance, updated.changed))
    }

    async fn find_hold(&self, id: &str) -> Result<Hold, Error> {
        let id: HoldId = id.parse().map_err(|_| Error::NoSuchRequest)?;
        self.store.hold(&id).await?.ok_or(Error::NoSuchRequest)
    }

    /// What to capture: the amount, or the cost of the units by the price of the route, or else the fallback.
    fn capture_action(&self, hold: &Hold, report: &CaptureRequest) -> Result<HoldAction, Error> {
        let line = &hold.line;
        let price = || self.route_of_template(&line.route_template, &line.http_method)?.usage_price();
        let may_exceed = || price().is_some_and(|price| price.may_exceed_hold());
        match (report.amount, &report.units) {
            (Some(_), Some(_)) => Err(Error::field("units", "must not be given together with amount")),
            (Some(cost), None) if cost.is_negative() => Err(Error::field("amount", "must be zero or more")),
            (Some(cost), None) if cost > MAX_PRICE => {
                Err(Error::field("amount", format!("must be at most {MAX_PRICE}")))
            }
            (Some(cost), None) => {
                let cost = price().map_or(cost, |price| price.cost_of_credits(cost));
                Ok(HoldAction::Capture { cost, may_exceed: may_exceed() })
            }
            (None, Some(units)) => {
                let missing =
                    || Error::field("units", "the catalogue has no prices of units for this route; send amount");
                let cost = price().ok_or_else(missing)?.cost(units).map_err(|error| Error::field("units", error))?;
                Ok(HoldAction::Capture { cost, may_exceed: may_exceed() })
            }
            (None, None) => Ok(HoldAction::CaptureFallback),
        }
    }
}

/// What to hold, and its terms. `listed` is the price without a hold.
pub(super) fn held_price(
    fields: &HoldFields,
    route: Option<&Route>,
    listed: impl FnOnce() -> Result<Credits, Error>,
) -> Result<(Credits, HoldTerms), Error> {
    let HoldFields { amount, fallback, lease_seconds } = *fields;
    // Not zero, so that no caller can make a request free.
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

/// The lease that a service asks for.
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
