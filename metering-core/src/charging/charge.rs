//! A charge, the account state that it is decided on, the decision, and the refund that undoes it.

use std::net::IpAddr;
use std::sync::Arc;

use crate::access::account::{AccountId, RateLimits, Totals};
use crate::access::key::{ApiKey, KeyHash};
use crate::access::key_id::KeyNumber;
use crate::charging::delivery::{Attempt, DeliveryTerms};
use crate::charging::hold::{Held, HoldAction, HoldTerms, HoldUpdate};
use crate::charging::in_flight::{InFlight, Slot};
use crate::charging::rate::{RateStatus, Window};
use crate::charging::refusal::Refusal;
use crate::charging::request_id::RequestId;
use crate::charging::volume::{CountedRoute, Volume, VolumeTerms};
use crate::clock::{Day, Month, Timestamp};
use crate::money::alert::BalanceAlert;
use crate::money::credits::Credits;
use crate::prices::number::PriceNumber;
use crate::usage::{ClientSource, UsageLine};

/// A request to charge.
///
/// ```
/// use metering_core::{ApiKey, Charge, Credits, RequestId, SystemRandomness};
///
/// let key = ApiKey::generate(&SystemRandomness);
/// let charge = Charge::new(&key, Credits::BASE_CALL, "GET", "/quotes/{number}");
/// // To record the path, and to charge a retry only once:
/// let charge = charge.with_path("/quotes/17").with_request_id(RequestId::parse("order-17")?);
/// # Ok::<(), metering_core::charging::RequestIdError>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Charge {
    /// The API key it came with.
    pub key: KeyHash,
    /// Its price, zero or more. With [`by_volume`](Self::by_volume), the most that it may cost.
    pub price: Credits,
    /// Set if the route has volume tiers: the price depends on the request's number in the month.
    pub by_volume: Option<VolumeTerms>,
    /// The usage line it is booked on.
    pub line: UsageLine,
    /// The requested path, for the account's recent activity.
    pub request_path: Arc<str>,
    /// Identifies the request: a retry gets the first result and is not charged again.
    pub request_id: Option<RequestId>,
    /// Set for a forwarded request whose `request_id` comes [from an idempotency key](RequestId::of_idempotency_key): a
    /// retry is accepted only until a response has been delivered.
    pub delivery: Option<DeliveryTerms>,
    /// Where the request came from, if that is known. A key that is restricted to networks needs it.
    pub address: Option<IpAddr>,
    /// Counts the requests in flight, for keys with a limit on them. Without it, that limit is not enforced.
    pub in_flight: Option<InFlight>,
    /// Set if the price is the most that the request may cost: it is held, and captured when the cost is known.
    pub hold: Option<HoldTerms>,
    /// The version of the price list that the price is from, for the receipt.
    pub price_version: Option<PriceNumber>,
    /// For a hold: the most tokens that the request is expected to use, which count towards limits on tokens per minute.
    /// `None` if it uses none.
    pub tokens: Option<u32>,
    /// For a hold: whether a signed payment backs it; the balance then need not cover it. The hold keeps the id of its
    /// terms, because the payment names it.
    pub is_backed: bool,
}

impl Charge {
    /// A charge for a request of a client with this key, to a route that has this method and path template. Without a
    /// request id; the path that recent activity shows is the template.
    #[must_use]
    pub fn new(key: &ApiKey, price: Credits, method: &str, template: &str) -> Self {
        let route_template = template.into();
        let line = UsageLine { route_template, http_method: method.into(), source: ClientSource::Direct };
        Self::of(key.hash(), price, line)
    }

    /// A charge for a request with the key that has this hash, booked on a line. Without a request id; recent activity
    /// shows the line's template as its path.
    #[must_use]
    pub fn of(key: KeyHash, price: Credits, line: UsageLine) -> Self {
        Self {
            key,
            price,
            by_volume: None,
            request_path: Arc::clone(&line.route_template),
            line,
            request_id: None,
            delivery: None,
            address: None,
            in_flight: None,
            hold: None,
            price_version: None,
            tokens: None,
            is_backed: false,
        }
    }

    /// The tokens to count when it is accepted: at least one for a hold that uses any, so no request is accepted above
    /// a limit.
    #[must_use]
    pub fn counted_tokens(&self) -> Option<u32> {
        self.tokens.filter(|_| self.hold.is_some()).map(|tokens| tokens.max(1))
    }

    /// The route whose count the price depends on.
    #[must_use]
    pub fn counted_route(&self) -> Option<CountedRoute> {
        self.by_volume.as_ref().map(|_| CountedRoute::of(&self.line))
    }
}

/// Methods that set one field of a charge and return it.
macro_rules! setters {
    ($($method:ident, $field:ident: $argument:ty, $doc:literal;)*) => {
        impl Charge {
            $(
                #[doc = $doc]
                #[must_use]
                pub fn $method(mut self, $field: $argument) -> Self {
                    self.$field = $field.into();
                    self
                }
            )*
        }
    };
}

setters! {
    with_price, price: Credits, "With another price.";
    with_line, line: UsageLine, "Booked on another line.";
    with_path, request_path: impl Into<Arc<str>>, "With the path that recent activity shows.";
    with_request_id, request_id: impl Into<Option<RequestId>>, "With a request id, so that a retry is not charged again.";
    with_delivery, delivery: impl Into<Option<DeliveryTerms>>, "With an idempotency key's terms.";
    with_address, address: impl Into<Option<IpAddr>>, "With the address that the request came from.";
    with_in_flight, in_flight: impl Into<Option<InFlight>>, "With the counter of requests in flight.";
    with_hold, hold: impl Into<Option<HoldTerms>>, "Held, and captured when the cost is known.";
    with_by_volume, by_volume: impl Into<Option<VolumeTerms>>, "Priced by the request's number in the month.";
    with_tokens, tokens: impl Into<Option<u32>>, "With the most tokens that it is expected to use, if it is a hold.";
    with_price_version, price_version: impl Into<Option<PriceNumber>>, "With the version of the price list.";
}

/// Everything the charge rule reads from an account and everything a charge changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeterState {
    /// Its balance and totals.
    pub totals: Totals,
    /// Its rate limits.
    pub limits: RateLimits,
    /// When it gets the event `balance.low`.
    pub alert: BalanceAlert,
    /// Accepted requests of the minute.
    pub minute: Window,
    /// Accepted requests of the day.
    pub day: Window,
}

impl MeterState {
    /// The account's use of its rate limits at `now`, before any further request.
    #[must_use]
    pub fn rate_status(&self, now: Timestamp) -> RateStatus {
        RateStatus::of(self.limits, self.minute, self.day, now)
    }

    /// Counts requests that were accepted at `now`, as [`decide`](super::decide) does: for backends that store the
    /// charges, and compute the windows from it later.
    pub fn count_accepted(&mut self, calls: u64, now: Timestamp) {
        let RateStatus { minute, day, .. } = self.rate_status(now);
        let more = |window: Window| {
            let calls = u32::try_from(calls).unwrap_or(u32::MAX);
            Window { index: window.index, count: window.count.saturating_add(calls) }
        };
        (self.minute, self.day) = (more(minute), more(day));
    }
}

/// The decision on a charge.
///
/// ```
/// use metering_core::{Decision, Refusal};
///
/// /// The HTTP status of the response to a request with this decision.
/// fn status(decision: &Decision) -> u16 {
///     match decision {
///         Decision::Accepted(_) => 200,
///         Decision::Refused(Refusal::UnknownKey) => 401,
///         Decision::Refused(Refusal::InsufficientCredits { .. }) => 402,
///         Decision::Refused(Refusal::RateLimited { .. }) => 429,
///         Decision::Refused(_) => 409,
///     }
/// }
/// assert_eq!(status(&Decision::Refused(Refusal::UnknownKey)), 401);
/// ```
#[derive(Debug, PartialEq, Eq)]
pub enum Decision {
    /// Charged; serve it.
    Accepted(Receipt),
    /// Not charged; do not serve the request.
    Refused(Refusal),
}

impl Decision {
    /// Its name in traces.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Accepted(receipt) if receipt.repeated => "repeated",
            Self::Accepted(receipt) if receipt.hold.is_some() => "held",
            Self::Accepted(_) => "charged",
            Self::Refused(refusal) => refusal.kind().as_str(),
        }
    }
}

/// Proof of a charge: who was charged how much, and everything a refund needs.
///
/// Not `Clone` on purpose: a refund consumes it, so a charge cannot be refunded twice.
///
/// ```
/// use metering_core::{Charge, MemoryStore, Service};
/// # use std::sync::Arc;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let service = Service::with_defaults(Arc::new(MemoryStore::new()));
/// # let (account, key) = service.open_account("my-agent", "2".parse()?).await?;
/// let receipt = service.charge(Charge::new(&key, "0.25".parse()?, "GET", "/price")).await?;
/// assert_eq!((receipt.account, receipt.charged), (account.id, "0.25".parse()?));
/// assert_eq!(&*receipt.line.route_template, "/price");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Receipt {
    /// The account that was charged.
    pub account: AccountId,
    /// How much. Zero for a hold.
    pub charged: Credits,
    /// The held amount, if the charge is a hold.
    pub hold: Option<Held>,
    /// The balance after it.
    pub balance: Credits,
    /// The usage row that it was booked on.
    pub line: UsageLine,
    /// The UTC day that it was booked on.
    pub day: Day,
    /// The requested path.
    pub request_path: Arc<str>,
    /// The key that it was charged with.
    pub key: KeyNumber,
    /// The use of the key's rate limits, or of the account's if the key has none.
    pub rate: RateStatus,
    /// Whether this repeats the result of an earlier request with the same id: then nothing was charged now.
    pub repeated: bool,
    /// Which attempt this is, for a request with an idempotency key.
    pub delivery: Option<Attempt>,
    /// Counts the request as in flight, for a key with a limit on that.
    pub slot: Option<Slot>,
    /// The version of the price list that the charge is from. Not known for a repeated result.
    pub price_version: Option<PriceNumber>,
    /// The account's requests to the route in the month after this one, if the route has volume tiers.
    pub volume: Option<Volume>,
}

/// Records that a response to a request with an idempotency key was passed on: the key is used up.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settlement {
    /// The key's account.
    pub account: AccountId,
    /// The key.
    pub request: RequestId,
    /// The usage row that the charge was booked on.
    pub line: UsageLine,
}

/// A refund of a charge, because its response could not be delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refund {
    /// The keys and budgets that the refund credits.
    pub account: AccountId,
    /// The key that was charged.
    pub key: KeyNumber,
    /// How much.
    pub amount: Credits,
    /// The usage row that the charge was booked on.
    pub line: UsageLine,
    /// The UTC day that the charge was booked on; the refund is booked on the same.
    pub day: Day,
    /// The requested path.
    pub request_path: Arc<str>,
    /// Which attempt failed, for a request with an idempotency key. The refund also forgets the key.
    pub delivery: Option<Attempt>,
    /// The month whose count of its route the charge has a place in, if the route has volume tiers. The refund frees
    /// the place. Just after a month begins, that may be the month after [`day`](Self::day).
    pub counted_in: Option<Month>,
}

impl Refund {
    /// The same refund, booked on the account's first key: for a charge whose key was deleted since. Only the account
    /// and its first key get the credits back, and no budget in between.
    pub(crate) fn of_first_key(self) -> Self {
        Self { key: KeyNumber::FIRST, ..self }
    }

    /// The route in whose count the refund frees a place.
    #[must_use]
    pub fn counted_route(&self) -> Option<CountedRoute> {
        self.counted_in.map(|_| CountedRoute::of(&self.line))
    }
}

impl Receipt {
    /// The refund of this charge; `None` when there is nothing to refund. A hold is not refunded but
    /// [released](Self::hold_update).
    ///
    /// A later attempt at a request with an idempotency key was not charged itself; its refund returns the first
    /// attempt's charge.
    #[must_use]
    pub fn into_refund(self) -> Option<Refund> {
        let counted_in = self.counted_in();
        let Self { account, key, charged, line, day, request_path, repeated, delivery, hold, .. } = self;
        let owed = delivery.is_some() || ((charged.is_positive() || counted_in.is_some()) && !repeated);
        let owed = owed && hold.is_none();
        owed.then_some(Refund { account, key, amount: charged, line, day, request_path, delivery, counted_in })
    }

    /// The posting that settles the hold, or renews its lease; `None` when the charge is not a hold.
    #[must_use]
    pub fn hold_update(&self, action: HoldAction) -> Option<HoldUpdate> {
        let gives_up = matches!(action, HoldAction::Release | HoldAction::CaptureFallback);
        let delivery = self.delivery.clone().filter(|_| gives_up);
        let counted_in = self.counted_in();
        let account = self.account.clone();
        self.hold.map(|held| HoldUpdate { delivery, counted_in, ..HoldUpdate::new(account, held.id, action) })
    }

    /// The month that the request was counted in. A repeated result shows a later count; the original was of its day.
    fn counted_in(&self) -> Option<Month> {
        self.volume.as_ref().map(|volume| if self.repeated { self.day.month() } else { volume.month })
    }

    /// The record to write once a response has been passed on; `None` without an idempotency key.
    #[must_use]
    pub fn settlement(&self) -> Option<Settlement> {
        let Attempt { request, .. } = self.delivery.clone()?;
        Some(Settlement { account: self.account.clone(), request, line: self.line.clone() })
    }
}
