//! Requests whose cost is known only after they were served: settled by services that report over HTTP, and looked up
//! by their callers.

use std::sync::Arc;

use crate::access::credentials::Caller;
use crate::access::key_id::KeyNumber;
use crate::access::scope::Scope;
use crate::catalogue::{Catalogue, FreeStatuses, MAX_PRICE, Route, UsagePrice};
use crate::charging::hold::{Hold, HoldAction, HoldId, HoldUpdate};
use crate::charging::meter::Meter;
use crate::error::Error;
use crate::prices::PriceNumber;
use crate::service::Access;
use crate::service::charged_request::ChargedRequest;
use crate::service::metering::Service;
use crate::store::PriceStore;
use crate::wire::{CaptureRequest, HoldResponse, RequestDocument, RequestsDocument, SettleRequest};

/// The most holds in one response.
const MAX_ENTRIES: u32 = 100;

/// Requests whose credits are held, from [`Service::holds`].
#[derive(Debug, Clone, Copy)]
pub struct Holds<'s> {
    access: &'s Access,
    catalogue: &'s Catalogue,
    meter: &'s Meter,
    price_store: Option<&'s dyn PriceStore>,
    /// The version of the catalogue.
    price_version: Option<PriceNumber>,
}

impl Service {
    /// Requests whose credits are held. [`Service::hold_for`] places a hold.
    #[must_use]
    pub fn holds(&self) -> Holds<'_> {
        Holds {
            access: &self.access,
            catalogue: self.catalogue(),
            meter: self.meter(),
            price_store: self.charging.price_store.as_deref(),
            price_version: self.charging.price_version,
        }
    }
}

impl<'h> Holds<'h> {
    /// A request of the caller's account whose credits are held, or were settled within the last day; or one that was
    /// charged at once, as long as the account's recent activity has its charge. A key without the scope `read` finds
    /// only its own requests.
    ///
    /// # Errors
    /// [`Error::Unauthorized`] without a live key, [`Error::NoSuchRequest`], or when the store fails.
    pub async fn get(self, caller: impl Into<Caller<'_>>, id: &str) -> Result<RequestDocument, Error> {
        let holder = self.access.holder_with_any(caller.into(), &[Scope::Read, Scope::Call]).await?;
        let own = holder.key();
        let may_read = |key: KeyNumber| own.is_some_and(|own| own.terms.scopes.has(Scope::Read) || own.number == key);
        let (id, store, account): (HoldId, _, _) =
            (id.parse().map_err(|_| Error::NoSuchRequest)?, &*self.access.store, &holder.account.id);
        if let Some(hold) = store.hold(&id).await? {
            let is_own = hold.account == *account && may_read(hold.key);
            return if is_own { Ok((&hold).into()) } else { Err(Error::NoSuchRequest) };
        }
        let found = ChargedRequest::find(store, &id, Some(account)).await?.filter(|found| may_read(found.key));
        let found = found.ok_or(Error::NoSuchRequest)?;
        let keys = store.key_labels(account).await?.into_iter().collect();
        let version = match self.price_store {
            Some(prices) => prices.price_versions(found.at()).await?.in_force(found.at()).map(|version| version.number),
            None => None,
        };
        let line = found.line().filter(|_| version == self.price_version);
        let route = line.and_then(|line| route_of_template(self.catalogue, &line.route_template, &line.http_method));
        found.document(found.in_words(&keys, version, route)).ok_or(Error::NoSuchRequest)
    }

    /// The requests of the caller's account whose credits are held now, newest first, at most 100.
    ///
    /// # Errors
    /// [`Error::Unauthorized`] without a live key, [`Error::KeyNotAllowed`] when it may not read, or when the store
    /// fails.
    pub async fn list(self, caller: impl Into<Caller<'_>>) -> Result<RequestsDocument, Error> {
        let account = self.access.authorize(caller, Scope::Read).await?;
        let holds = self.access.store.open_holds(&account.id, MAX_ENTRIES).await?;
        Ok(RequestsDocument { data: holds.iter().map(RequestDocument::from).collect() })
    }

    /// Captures what a held request cost, as the service that served it reports.
    ///
    /// # Errors
    /// [`Error::NoSuchRequest`], [`Error::ValidationFailed`], or when the meter or the store fails.
    pub async fn capture(self, report: &CaptureRequest) -> Result<HoldResponse, Error> {
        let hold = self.find(&report.id).await?;
        let action = self.capture_action(&hold, report)?;
        let tokens = report.units.as_ref().and_then(|units| self.price_of(&hold)?.used_tokens(units));
        self.update(hold, action, tokens).await
    }

    /// Releases what is held for a request that was not served.
    ///
    /// # Errors
    /// [`Error::NoSuchRequest`], or when the meter or the store fails.
    pub async fn release(self, id: &str) -> Result<HoldResponse, Error> {
        let hold = self.find(id).await?;
        self.update(hold, HoldAction::Release, None).await
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
    /// let settled = service.holds().settle(&SettleRequest { request_id, status: 502 }).await?;
    /// assert_eq!(settled.credit_balance.to_string(), "2");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::NoSuchRequest`], [`Error::ValidationFailed`], or when the meter or the store fails.
    pub async fn settle(self, ended: &SettleRequest) -> Result<HoldResponse, Error> {
        if !(100..600).contains(&ended.status) {
            return Err(Error::field("status", "must be an HTTP status, 100 to 599"));
        }
        let hold = self.find(&ended.request_id).await?;
        let route = route_of_template(self.catalogue, &hold.line.route_template, &hold.line.http_method);
        let free = route.map_or_else(FreeStatuses::default, |route| route.free_statuses.clone());
        let action = if free.contains(ended.status) { HoldAction::Release } else { HoldAction::CaptureFallback };
        self.update(hold, action, None).await
    }

    async fn update(self, hold: Hold, action: HoldAction, tokens: Option<u32>) -> Result<HoldResponse, Error> {
        let update = HoldUpdate { tokens, ..HoldUpdate::new(hold.account, hold.id, action) };
        let updated = self.meter.update_hold(update).await?;
        Ok(HoldResponse::new(&updated.hold, updated.balance, updated.changed))
    }

    async fn find(self, id: &str) -> Result<Hold, Error> {
        let id: HoldId = id.parse().map_err(|_| Error::NoSuchRequest)?;
        self.access.store.hold(&id).await?.ok_or(Error::NoSuchRequest)
    }

    /// The price of a hold's route, if that is priced by usage.
    fn price_of(self, hold: &Hold) -> Option<&'h Arc<UsagePrice>> {
        route_of_template(self.catalogue, &hold.line.route_template, &hold.line.http_method)?.usage_price()
    }

    /// What to capture: the amount, or the cost of the units by the price of the route, or else the fallback.
    fn capture_action(self, hold: &Hold, report: &CaptureRequest) -> Result<HoldAction, Error> {
        let price = || self.price_of(hold);
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
                let price = price().ok_or_else(missing)?;
                if price.is_by_model() {
                    let problem =
                        "their prices depend on the model on this route, which is not known here; send amount";
                    return Err(Error::field("units", problem));
                }
                let cost = price.cost(units).map_err(|error| Error::field("units", error))?;
                Ok(HoldAction::Capture { cost, may_exceed: may_exceed() })
            }
            (None, None) => Ok(HoldAction::CaptureFallback),
        }
    }
}

/// The catalogue's route for a caller's template. `HEAD` falls back to `GET`.
pub(super) fn route_of_template<'c>(catalogue: &'c Catalogue, template: &str, method: &str) -> Option<&'c Route> {
    let of = |method| catalogue.by_template(method, template);
    of(method).or_else(|| if method == "HEAD" { of("GET") } else { None })
}
