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
use crate::receipts::Statement;
use crate::service::Access;
use crate::service::charged_request::ChargedRequest;
use crate::service::metering::Service;
use crate::service::receipt_setup::ReceiptSetup;
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
    receipts: Option<&'s ReceiptSetup>,
    prefers_receipt: bool,
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
            receipts: self.charging.receipts.as_ref(),
            prefers_receipt: false,
        }
    }
}

impl<'h> Holds<'h> {
    /// Makes [`Holds::get`] sign a receipt of the captured amount, if the client
    /// [prefers](crate::wire::prefers_receipt) one and the service signs any.
    #[must_use]
    pub const fn with_receipt(self, prefers_receipt: bool) -> Self {
        Self { prefers_receipt, ..self }
    }

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
            if !is_own {
                return Err(Error::NoSuchRequest);
            }
            return Ok(RequestDocument { receipt: self.receipt_of(&hold).await, ..(&hold).into() });
        }
        let found = ChargedRequest::find(store, &id, Some(account)).await?.filter(|found| may_read(found.key));
        let found = found.ok_or(Error::NoSuchRequest)?;
        let keys = store.key_labels(account).await?.into_iter().collect();
        let version = match self.price_store {
            Some(prices) => prices.price_versions(found.at()).await?.in_force(found.at()).map(|version| version.number),
            None => None,
        };
        let line = found.line().filter(|_| version == self.price_version);
        let route = line.and_then(|line| route_of_template(self.catalogue, line.template(), &line.http_method));
        found.document(found.in_words(&keys, version, route)).ok_or(Error::NoSuchRequest)
    }

    /// The signed receipt of the amount captured from a hold. Balance and price version are not stored with it.
    async fn receipt_of(self, hold: &Hold) -> Option<String> {
        let receipts = self.receipts.filter(|_| self.prefers_receipt)?;
        receipts.sign(Statement::of_capture(hold, None, None)?).await
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

    /// Captures the cost of a held request, as the service that served it reports.
    ///
    /// # Errors
    /// [`Error::NoSuchRequest`], [`Error::ValidationFailed`], or when the meter or the store fails.
    pub async fn capture(self, report: &CaptureRequest) -> Result<HoldResponse, Error> {
        let hold = self.find(&report.id).await?;
        let price = self.price_of(&hold, report)?;
        let action = capture_action(price, report)?;
        let tokens = price.zip(report.units.as_ref()).and_then(|(price, units)| price.used_tokens(units));
        self.update(hold, action, tokens).await
    }

    /// Releases the hold of a request that was not served.
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
        let route = route_of_template(self.catalogue, hold.line.template(), &hold.line.http_method);
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

    /// The price that a hold is captured by, if its route is priced by usage: the price of the model that the report or
    /// the request's path names. Without one, units have no price; an amount is captured by the rules for all models.
    fn price_of(self, hold: &Hold, report: &CaptureRequest) -> Result<Option<&'h Arc<UsagePrice>>, Error> {
        let route = route_of_template(self.catalogue, hold.line.template(), &hold.line.http_method);
        let Some((route, price)) = route.and_then(|route| Some((route, route.usage_price()?))) else { return Ok(None) };
        let found = match report.model.clone().or_else(|| route.model_in_path(&hold.request_path)) {
            Some(model) => {
                price.of_model(&model).map_err(|_| "has no price on this route; send amount instead of units")
            }
            None if price.is_by_model() => Err("is required: the prices of units depend on the model on this route"),
            None => Ok(price),
        };
        match found {
            Err(problem) if report.units.is_some() => Err(Error::field("model", problem)),
            found => Ok(Some(found.unwrap_or(price))),
        }
    }
}

/// The amount to capture: the reported one, or the cost of the units by the price, or else the fallback.
fn capture_action(price: Option<&Arc<UsagePrice>>, report: &CaptureRequest) -> Result<HoldAction, Error> {
    let may_exceed = price.is_some_and(|price| price.may_exceed_hold());
    match (report.amount, &report.units) {
        (Some(_), Some(_)) => Err(Error::field("units", "must not be given together with amount")),
        (Some(cost), None) if cost.is_negative() => Err(Error::field("amount", "must be zero or more")),
        (Some(cost), None) if cost > MAX_PRICE => Err(Error::field("amount", format!("must be at most {MAX_PRICE}"))),
        (Some(cost), None) => {
            let cost = price.map_or(cost, |price| price.cost_of_credits(cost));
            Ok(HoldAction::Capture { cost, may_exceed })
        }
        (None, Some(units)) => {
            let missing = || Error::field("units", "the catalogue has no prices of units for this route; send amount");
            let cost = price.ok_or_else(missing)?.cost(units).map_err(|error| Error::field("units", error))?;
            Ok(HoldAction::Capture { cost, may_exceed })
        }
        (None, None) => Ok(HoldAction::CaptureFallback),
    }
}

/// The catalogue's route for a caller's template. `HEAD` falls back to `GET`.
pub(super) fn route_of_template<'c>(catalogue: &'c Catalogue, template: &str, method: &str) -> Option<&'c Route> {
    let of = |method| catalogue.by_template(method, template);
    of(method).or_else(|| if method == "HEAD" { of("GET") } else { None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::config::ServiceConfig;
    use crate::store::memory::MemoryStore;
    use crate::wire::HoldRequest;

    #[tokio::test]
    async fn units_are_captured_by_the_price_of_the_model() {
        let price = |place: &str| {
            format!(
                r#""price": {{"max": "1", "model": {place}, "report": {{"json": {{"t": "/t"}}}},
                   "models": {{"small": {{"units": {{"t": "0.1"}}}}, "large*": {{"units": {{"t": "0.2"}}, "min": "0.3"}}}}}}"#
            )
        };
        let (in_body, in_path) = (price(r#"{"json": "/model"}"#), price(r#"{"param": "model"}"#));
        let catalogue = Catalogue::from_json(&format!(
            r#"{{"market": "M", "version": 1, "endpoints": [
                {{"path": "/chat", "method": "POST", "metered": true, {in_body}}},
                {{"path": "/m/{{model}}:run", "method": "POST", "metered": true, {in_path},
                  "params": [{{"name": "model", "in": "path", "type": "string"}}]}}]}}"#
        ));
        let catalogue = catalogue.unwrap_or_else(|error| panic!("{error}"));
        let service = Service::start(Arc::new(MemoryStore::new()), catalogue, ServiceConfig::default());
        let (_, key) = service.open_account("agent", "100".parse().unwrap()).await.unwrap();
        // path, report, charged or the field with the problem
        let table = [
            ("/chat", r#""model": "small", "units": {"t": 3}"#, Ok("0.3")),
            ("/chat", r#""model": "large-2", "units": {"t": 3}"#, Ok("0.6")),
            ("/chat", r#""model": "large-2", "amount": "0.1""#, Ok("0.3")),
            ("/chat", r#""amount": "0.1""#, Ok("0.1")),
            ("/chat", r#""model": "gone", "amount": "0.1""#, Ok("0.1")),
            ("/chat", r#""model": "gone", "units": {"t": 3}"#, Err("model")),
            ("/chat", r#""units": {"t": 3}"#, Err("model")),
            ("/chat", r#""model": "small", "units": {"x": 3}"#, Err("units")),
            ("/m/small:run", r#""units": {"t": 3}"#, Ok("0.3")),
            ("/m/large-2:run", r#""units": {"t": 3}"#, Ok("0.6")),
            ("/m/large-2:run", r#""model": "small", "units": {"t": 3}"#, Ok("0.3")),
        ];
        for (path, report, expected) in table {
            let template = if path == "/chat" { path } else { "/m/{model}:run" };
            let request: HoldRequest = serde_json::from_str(&format!(
                r#"{{"path": "{path}", "method": "POST", "route_template": "{template}"}}"#
            ))
            .unwrap();
            let held = service.hold_for(Some(&key), &request, None).await.unwrap();
            let report: CaptureRequest =
                serde_json::from_str(&format!(r#"{{"id": "{}", {report}}}"#, held.request.id)).unwrap();
            match (service.holds().capture(&report).await, expected) {
                (Ok(captured), Ok(charged)) => assert_eq!(captured.request.charged.to_string(), charged, "{report:?}"),
                (Err(Error::ValidationFailed(problems)), Err(field)) => {
                    assert!(problems.contains_key(field), "{report:?}: {problems:?}");
                }
                (outcome, _) => panic!("{report:?}: {outcome:?}"),
            }
        }
    }

    #[tokio::test]
    async fn usage_is_counted_by_model_and_keys_are_allowed_by_route() {
        use crate::service::{AdmissionKind, RequestContent, RequestHead};
        use crate::usage::ClientSource;
        use crate::wire::CreateKeyRequest;

        let catalogue = Catalogue::from_json(
            r#"{"market": "M", "version": 1, "endpoints": [{"path": "/chat", "method": "POST", "metered": true,
                "price": {"max": "1", "model": {"json": "/model"}, "report": {"json": {"t": "/t"}},
                    "models": {"small": {"units": {"t": "0.1"}}, "large*": {"units": {"t": "0.2"}}}}}]}"#,
        );
        let service = Service::start(Arc::new(MemoryStore::new()), catalogue.unwrap(), ServiceConfig::default());
        let (_, owner) = service.open_account("agent", "100".parse().unwrap()).await.unwrap();
        let request: CreateKeyRequest = serde_json::from_str(r#"{"name": "chat", "routes": ["POST /chat"]}"#).unwrap();
        let made = service.keys().create(Some(&owner), &request, None).await.unwrap();
        let key = made.key.key();
        for (model, cost) in [("small", "0.1"), ("large-1", "0.2"), ("large-2", "0.3")] {
            let body = format!(r#"{{"model": "{model}"}}"#);
            let body = Some(RequestContent { bytes: body.as_bytes(), is_encoded: false });
            let (source, path, method) = (ClientSource::Direct, "/chat", "POST");
            let head = RequestHead {
                key: Some(key),
                address: None,
                method,
                body,
                path,
                query: None,
                source,
                idempotency_key: None,
                payment: None,
            };
            let AdmissionKind::Held(guard) = service.find(head).admit().await.unwrap().kind else { panic!("{model}") };
            let held = guard.capture(cost.parse().unwrap()).await.unwrap().hold;
            let found = service.holds().get(Some(key), &held.id.to_string()).await.unwrap();
            assert_eq!(found.route_template, "/chat");
        }
        let usage = service.usage().by_endpoint(Some(&owner), 7, 10).await.unwrap();
        let found = usage.by_endpoint.iter().map(|used| {
            (used.route_template.as_str(), used.model.as_deref(), used.call_count, used.credits_used.to_string())
        });
        let expected = [("/chat", Some("large*"), 2, "0.5".to_owned()), ("/chat", Some("small"), 1, "0.1".to_owned())];
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }
}
