//! Admission to metered routes: finds the route, sets the price and charges the request.

mod max_cost;
mod no_match;
mod proxied;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tracing::{Instrument, info_span};

use crate::access::credentials::Caller;
use crate::access::key::{ApiKey, KeyFault};
use crate::catalogue::path::RequestPath;
use crate::catalogue::route::Route;
use crate::charging::HoldGuard;
use crate::charging::charge::{Charge, Decision, Receipt, Refusal};
use crate::charging::delivery::{DeliveryTerms, Fingerprint, IdempotencyKey, IdempotencyKeyError};
use crate::charging::max_cost::{MaxCost, MaxCostError};
use crate::charging::request_id::RequestId;
use crate::charging::volume::VolumeTerms;
use crate::error::{Error, KeyBudget, PaymentRequired};
use crate::money::credits::Credits;
use crate::service::{Links, Paid, Presented, Service};
use crate::trace;
use crate::usage::ClientSource;

use no_match::NoMatch;
pub use proxied::Proxied;

/// The longest request path stored in recent activity, in bytes.
const MAX_PATH_KEPT: usize = 256;

/// The parts of a request that admission needs.
#[derive(Debug, Clone, Copy)]
pub struct RequestHead<'r> {
    /// Its API key, if it has a well-formed one.
    pub key: Option<&'r ApiKey>,
    /// Where it came from, if that is known. A key that is restricted to networks needs it.
    pub address: Option<IpAddr>,
    /// Its method.
    pub method: &'r str,
    /// Its body, if it was read. For a price by usage, the requests of an idempotency key must have the same body, and
    /// what is held may be estimated from it.
    pub body: Option<RequestContent<'r>>,
    /// Its path, as received.
    pub path: &'r str,
    /// Its query, as received, without the question mark.
    pub query: Option<&'r str>,
    /// The kind of client that sent it.
    pub source: ClientSource,
    /// Its idempotency key, if it has one.
    pub idempotency_key: Option<Result<&'r IdempotencyKey, IdempotencyKeyError>>,
    /// The payment that came with it ([`Service::presented`]).
    pub payment: Option<&'r Presented>,
}

/// The body of a request that was read.
#[derive(Debug, Clone, Copy)]
pub struct RequestContent<'r> {
    /// The bytes.
    pub bytes: &'r [u8],
    /// Whether they are encoded (`Content-Encoding`), so that their length and content say nothing.
    pub is_encoded: bool,
}

impl<'r> RequestHead<'r> {
    const fn caller(&self) -> Caller<'r> {
        Caller { key: self.key, address: self.address }
    }
}

/// An admitted request.
#[derive(Debug)]
pub struct Admission<'c> {
    /// The route that it matches.
    pub route: &'c Route,
    /// Path and query in normal form. Forward exactly this.
    pub target: String,
    /// How it was admitted.
    pub kind: AdmissionKind,
    /// What was paid with it.
    pub paid: Option<Paid>,
}

/// How a request was admitted.
#[derive(Debug)]
pub enum AdmissionKind {
    /// It was charged, and the charge is durable. For a [proxied](Found::proxied) request, its price may be held instead:
    /// the receipt says so, and the proxy settles it.
    Charged(Receipt),
    /// Its route is priced by usage: the most that it may cost is held, durably. Capture what it cost.
    Held(HoldGuard),
    /// The route is not metered.
    Free,
}

/// A request whose path was parsed and matched against the catalogue, without reading the store. To charge it, call
/// [`Found::admit`].
pub struct Found<'s, 'r> {
    service: &'s Service,
    request: RequestHead<'r>,
    max_cost: Option<Result<MaxCost, MaxCostError>>,
    sign_in: Option<&'r str>,
    proxied: Option<Proxied>,
    matched: Result<(&'s Route, RequestPath<'r>), NoMatch<'r>>,
}

impl fmt::Debug for Found<'_, '_> {
    /// Leaves out the sign-in, which can be used once.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Found").field("request", &self.request).field("matched", &self.matched).finish_non_exhaustive()
    }
}

impl<'s> Found<'s, '_> {
    /// The route that the request matches. Its parameters have not been checked.
    #[must_use]
    pub fn route(&self) -> Option<&'s Route> {
        self.matched.as_ref().ok().map(|(route, _)| *route)
    }

    /// The same request with a payment, which is not read before it is known that the path is metered here.
    #[must_use]
    pub fn paid_with<'p>(self, payment: Option<&'p Presented>) -> Found<'s, 'p>
    where
        Self: 'p,
    {
        let mut found: Found<'s, 'p> = self;
        found.request.payment = payment;
        found
    }

    /// The same request with the sign-in of a wallet ([`Service::sign_in`]). It counts if the request has neither a key
    /// nor a payment.
    #[must_use]
    pub fn signed_in_with<'p>(self, sign_in: Option<&'p str>) -> Found<'s, 'p>
    where
        Self: 'p,
    {
        let mut found: Found<'s, 'p> = self;
        found.sign_in = sign_in;
        found
    }

    /// The same request, which a proxy asks about and forwards itself.
    #[must_use]
    pub fn proxied(self, proxied: Proxied) -> Self {
        Self { proxied: Some(proxied), ..self }
    }

    /// Whether the path has nothing to do with the catalogue: it is valid, and its first segment is not that of any
    /// route ([`Catalogue::covers`](crate::Catalogue::covers)).
    #[must_use]
    pub fn is_uncovered(&self) -> bool {
        matches!(&self.matched, Err(NoMatch::Route(path, _)) if !self.service.catalogue.covers(path))
    }

    /// Charges the request if its route is metered, or holds what it may cost if its route is priced by usage.
    ///
    /// # Errors
    /// Same as [`Service::admit`].
    pub async fn admit(self) -> Result<Admission<'s>, Error> {
        let Self { service, request, max_cost, sign_in, proxied, matched } = self;
        let (route, path) = match matched {
            Ok(matched) => matched,
            Err(none) => {
                let error = none.into_error(service);
                return Err(service.after_authentication(request.caller(), error).await);
            }
        };
        let priced = info_span!(target: trace::TARGET, "price").in_scope(|| {
            let priced = route.read(&path, request.query).map_err(Error::from);
            match proxied {
                Some(_) => priced.and_then(|priced| proxied::check_spelling(&request, &path).map(|()| priced)),
                None => priced,
            }
        });
        let (price, query) = match priced {
            Ok(priced) => priced,
            Err(error) if route.metered => return Err(service.after_authentication(request.caller(), error).await),
            Err(error) => return Err(error),
        };
        let target = match query {
            Some(query) => format!("{}?{query}", path.as_str()),
            None => path.as_str().to_owned(),
        };
        if !route.metered {
            return Ok(Admission { route, target, kind: AdmissionKind::Free, paid: None });
        }
        let line = route.usage_line(request.source);
        let fingerprint = || {
            let fingerprint = Fingerprint::of(request.method, &target, &line);
            let body = request.body.filter(|_| route.usage_price().is_some());
            body.map_or(fingerprint, |body| fingerprint.with_body(body.bytes))
        };
        let own_id = match request.idempotency_key.transpose() {
            Ok(key) => key.map(RequestId::of_idempotency_key),
            Err(error) => {
                let fields = [("Idempotency-Key".to_owned(), error.to_string())].into();
                return Err(service.after_authentication(request.caller(), Error::InvalidParameter(fields)).await);
            }
        };
        let (price, hold) = match route.usage_price() {
            Some(by_usage) => {
                let readable = request.body.filter(|body| !body.is_encoded);
                let most = by_usage.hold(readable.map(|body| body.bytes));
                (most, Some(service.hold_terms(by_usage.without_report(most))))
            }
            None => (price, None),
        };
        let hold = proxied.as_ref().map_or(hold, |proxied| proxied.hold_terms(price, hold));
        let by_volume = route.volume_tiers().map(|tiers| {
            let max_cost = max_cost.and_then(Result::ok);
            VolumeTerms { tiers: Arc::clone(tiers), max_cost }
        });
        // The price of a volume tier is known only in the charge, which compares it. What is paid before is the dearest.
        let is_compared_later = by_volume.is_some() && request.key.is_some() && request.payment.is_none();
        let known_price = if is_compared_later { Credits::ZERO } else { price };
        let is_maximum = hold.is_some() || by_volume.is_some();
        service.check_max_cost(request.caller(), known_price, max_cost, is_maximum).await?;
        let paid = match request.payment {
            Some(presented) => {
                let paying = presented.paying(request.caller(), fingerprint(), price);
                let paid = service.pay(paying).instrument(info_span!(target: trace::TARGET, "pay")).await?;
                presented.credited(&paid);
                Some(paid)
            }
            None => None,
        };
        let key = match (&paid, request.key) {
            (Some(paid), _) => paid.key,
            (None, Some(key)) => key.hash(),
            (None, None) if !service.accepts_keyless_payments() => return Err(Error::Unauthorized),
            (None, None) => match sign_in {
                Some(sign_in) => service.key_of_wallet(sign_in, price).await?,
                None => return Err(Error::PaymentRequired { price }),
            },
        };
        let request_id = paid.as_ref().and_then(|paid| paid.request_id.clone()).or(own_id);
        let of_proxy = proxied.as_ref().filter(|_| request_id.is_none()).and_then(Proxied::stored_id);
        let is_of_proxy = of_proxy.is_some();
        let request_id = request_id.or(of_proxy);
        // A proxy that asks again has had no response; it need not wait.
        let lease = if is_of_proxy { Duration::ZERO } else { service.config.delivery_lease };
        let delivery = request_id.is_some().then(|| DeliveryTerms { fingerprint: fingerprint(), lease });
        let request_path = kept_path(path.as_str());
        let (address, in_flight) = (request.address, Some(service.in_flight.clone()));
        let price_version = service.price_version();
        let charge = Charge {
            key,
            price,
            by_volume,
            line,
            request_path,
            request_id,
            delivery,
            address,
            in_flight,
            hold,
            price_version,
        };
        let mut receipt = service.charge(charge).await?;
        if is_of_proxy {
            // Nobody here learns whether the request was served, so the id stays good for the proxy's retries.
            receipt.delivery = None;
        }
        let kind = if proxied.is_some() {
            AdmissionKind::Charged(receipt)
        } else {
            match service.meter.guard(receipt) {
                Ok(guard) => AdmissionKind::Held(guard),
                Err(receipt) => AdmissionKind::Charged(receipt),
            }
        };
        Ok(Admission { route, target, kind, paid })
    }
}

impl Service {
    /// Finds a request's route. Parses the path and matches it once; reads nothing from the store.
    ///
    /// Use it instead of [`Service::admit`] where something depends on the route before the request is charged. A
    /// request that matches no route is refused by [`Found::admit`], after its key is checked: without a live key, a
    /// caller learns nothing else.
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
    ///         AdmissionKind::Held(_) | AdmissionKind::Free => Ok(None),
    ///     }
    /// }
    /// ```
    #[must_use]
    pub fn find<'r>(&self, request: RequestHead<'r>) -> Found<'_, 'r> {
        let matched = match RequestPath::parse(request.path) {
            Ok(path) => match self.catalogue.find(request.method, &path) {
                Ok(route) => Ok((route, path)),
                Err(refusal) => Err(NoMatch::Route(path, refusal)),
            },
            Err(error) => Err(NoMatch::Path(error)),
        };
        Found { service: self, request, max_cost: None, sign_in: None, proxied: None, matched }
    }

    /// Admits a request to its route and charges it if the route is metered: [`Service::find`], then [`Found::admit`].
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
    ///     payment: None, // or `service.presented(…)`
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
    /// See the table of metered routes in docs/protocol.md. Nothing is charged, unless the error says that the outcome
    /// is unknown.
    pub async fn admit(&self, request: RequestHead<'_>) -> Result<Admission<'_>, Error> {
        self.find(request).admit().await
    }

    /// Replaces `error` with the authentication error for a caller without a live key: that error always comes first.
    pub(crate) async fn after_authentication(&self, caller: impl Into<Caller<'_>>, error: Error) -> Error {
        match self.authenticate(caller).await {
            Ok(_) => error,
            Err(refused) => refused,
        }
    }

    /// Makes one charge, whose price and route the caller decides. A refusal is an error, as clients know it.
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
    /// [`Error::KeyRefused`], [`Error::RateLimited`], [`Error::InsufficientCredits`], or when the meter or the store
    /// fails. Nothing is charged, unless the error says that the outcome is unknown.
    pub async fn charge(&self, charge: Charge) -> Result<Receipt, Error> {
        let in_flight = charge.in_flight.or_else(|| Some(self.in_flight.clone()));
        match self.meter.charge(Charge { in_flight, ..charge }).await? {
            Decision::Accepted(receipt) => Ok(receipt),
            Decision::Refused(Refusal::UnknownKey) => Err(Error::KeyRefused(KeyFault::NotLive)),
            Decision::Refused(Refusal::Key(refusal)) => Err(refusal.into()),
            Decision::Refused(Refusal::TooManyInFlight) => Err(Error::TooManyInFlight),
            Decision::Refused(Refusal::KeyBudget { exhausted, rate }) => {
                Err(Error::KeyBudget(Box::new(KeyBudget { exhausted, rate })))
            }
            Decision::Refused(Refusal::Repeated(repetition)) => Err(Error::Repeated(repetition)),
            Decision::Refused(Refusal::RateLimited { window, rate }) => Err(Error::RateLimited { window, rate }),
            Decision::Refused(Refusal::MaxCostExceeded { price, max_cost }) => {
                Err(Error::MaxCostExceeded { price, max_cost, is_maximum: false })
            }
            Decision::Refused(Refusal::InsufficientCredits { balance, required, rate }) => {
                let plans = self.plans().await?;
                let Links { plans: plans_url, top_up: topup_url, .. } = self.config.links.clone();
                let payment_required = PaymentRequired { balance, required, rate, plans_url, topup_url, plans };
                Err(Error::InsufficientCredits(Box::new(payment_required)))
            }
        }
    }
}

/// The part of a path that recent activity stores.
pub(crate) fn kept_path(path: &str) -> Arc<str> {
    path[..path.floor_char_boundary(MAX_PATH_KEPT)].into()
}
