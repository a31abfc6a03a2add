//! [`Charged`]: the inner service's view of the charge of its request, and how it settles a hold.

mod backed;
mod expected;
mod receipt;
mod refund;
mod response;
mod upstream;
mod wanted_receipt;

use std::sync::Arc;
use std::time::Duration;

use http::{Response, StatusCode};
use tokio::sync::Mutex;
use tracing::{Instrument, Span};
use wanted_receipt::WantedReceipt;

use super::late_refusal::LateRefusal;
use super::money::Money;
use super::response::{set_headers, set_metered};
use crate::access::account::AccountId;
use crate::catalogue::{Counts, ErrorShape, FreeStatuses, Route, UsagePrice};
use crate::charging::charge::Settlement;
use crate::charging::hold::HoldUpdated;
use crate::charging::in_flight::Slot;
use crate::charging::meter::{EarlyReceipt, HoldGuard, MeterError};
use crate::charging::rate::RateStatus;
use crate::error::Error;
use crate::money::credits::Credits;
use crate::service::metering::Service;
use crate::service::{Paid, RequestPayment};
use crate::shown_fields::shown_fields;
use crate::trace;
use crate::wire::MeteredHeaders;

/// The account and amount of a charge or a hold. Every charged request has it in its extensions.
///
/// [`MeteringLayer`](crate::MeteringLayer) and [`Charged::refund`] have examples of a service that reads it. When the
/// last clone is dropped, a hold that was not captured is settled by the rule of its route's price.
#[derive(Clone)]
#[non_exhaustive]
pub struct Charged {
    /// The account that was charged.
    pub account: AccountId,
    /// The price of this request, or the amount held for it.
    pub amount: Credits,
    /// The balance after it; `None` if the request is served [before that is known](crate::MeteringLayer::overlap).
    pub balance: Option<Credits>,
    /// The template of the charged route.
    pub route_template: Arc<str>,
    usage_price: Option<Arc<UsagePrice>>,
    shared: Arc<Shared>,
}

/// The state that all clones of a [`Charged`] share.
struct Shared {
    service: Arc<Service>,
    free_statuses: FreeStatuses,
    /// The span of the request, for settlements after its response has begun.
    span: Span,
    state: Mutex<State>,
}

struct State {
    money: Money,
    /// `None` while the charge is not decided.
    rate: Option<RateStatus>,
    /// Which headers the route's clients read.
    errors: ErrorShape,
    /// The record to write when the response is passed on.
    settlement: Option<Settlement>,
    /// The headers with the request's cost; `None` if there are none to set, or once they are set.
    headers: Option<MeteredHeaders>,
    /// The payment that came with the request, and its outcome.
    payment: Option<(Arc<dyn RequestPayment>, Paid)>,
    /// The outcome of the refund, if there was one.
    refund: Result<(), Error>,
    /// Counts the request as in flight, if its key limits that.
    slot: Option<Slot>,
    /// For a request that started before its charge was decided.
    late: Option<Box<LateRefusal>>,
    /// The signed receipt, if the response has one.
    receipt: Option<Box<WantedReceipt>>,
}

/// How long a response waits until its hold is settled. Settling continues in the background.
const SETTLE_WAIT: Duration = Duration::from_secs(5);

impl Charged {
    pub(super) fn new(service: &Arc<Service>, mut receipt: EarlyReceipt, route: &Route) -> Self {
        let slot = receipt.take_slot();
        Self::of(service, slot, route, Money::Charged(receipt))
    }

    /// `usage_price` belongs to the request, whose model may have its own.
    pub(super) fn held(
        service: &Arc<Service>,
        mut guard: HoldGuard,
        route: &Route,
        usage_price: Option<Arc<UsagePrice>>,
    ) -> Self {
        let slot = guard.take_slot();
        Self { usage_price, ..Self::of(service, slot, route, Money::Held(guard)) }
    }

    fn of(service: &Arc<Service>, slot: Option<Slot>, route: &Route, money: Money) -> Self {
        let Some(receipt) = money.receipt() else { unreachable!("nothing is settled yet") };
        Self {
            account: receipt.account.clone(),
            amount: receipt.hold.map_or(receipt.charged, |held| held.amount),
            balance: Some(receipt.balance),
            route_template: Arc::clone(&route.template),
            usage_price: None,
            shared: Arc::new(Shared {
                service: Arc::clone(service),
                free_statuses: route.free_statuses.clone(),
                span: trace::current(),
                state: Mutex::new(State {
                    rate: Some(receipt.rate),
                    errors: route.errors,
                    settlement: receipt.settlement(),
                    headers: Some(MeteredHeaders::of(receipt)),
                    money,
                    payment: None,
                    refund: Ok(()),
                    slot,
                    late: None,
                    receipt: None,
                }),
            }),
        }
    }

    /// Adds the receipt of a payment to the response.
    pub(super) async fn paid_with(&self, presented: Box<dyn RequestPayment>, paid: Paid) {
        self.shared.state.lock().await.payment = Some((presented.into(), paid));
    }

    /// How the route is priced by usage; `None` for a request at a fixed price.
    #[must_use]
    pub const fn usage_price(&self) -> Option<&Arc<UsagePrice>> {
        self.usage_price.as_ref()
    }

    /// Whether a response with this status costs nothing, by the [free statuses](Route::free_statuses) of the route.
    /// The layer refunds such a response, or releases the hold, and passes it on.
    #[must_use]
    pub fn is_free(&self, status: StatusCode) -> bool {
        self.shared.free_statuses.contains(status.as_u16())
    }

    /// Captures the cost of a request with a hold, at least the minimum of its route's price, and releases the rest.
    /// The price decides whether a cost above the hold is charged in full.
    ///
    /// Call it before returning the response, whose headers then show the charge; or later, from its body. `None` if
    /// there is no hold, or it is already being settled.
    ///
    /// ```
    /// use http::{Request, Response};
    /// use metering_core::{Charged, Error};
    ///
    /// /// A report costs a hundredth of a credit for each of its rows.
    /// async fn report(request: Request<String>) -> Result<Response<String>, Error> {
    ///     let rows: Vec<&str> = request.body().lines().collect();
    ///     if let Some(charged) = request.extensions().get::<Charged>() {
    ///         charged.capture(format!("0.{:02}", rows.len()).parse().map_err(|_| Error::Internal)?).await?;
    ///     }
    ///     Ok(Response::new(rows.join(";")))
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::sync::Arc;
    /// # use metering_core::{Catalogue, MemoryStore, MeteringLayer, Service, ServiceConfig};
    /// # use tower::{ServiceBuilder, ServiceExt, service_fn};
    /// let catalogue = Catalogue::from_json(
    ///     r#"{"market": "M", "version": 1, "endpoints": [{"path": "/report", "method": "POST", "metered": true,
    ///         "price": {"max": "0.5", "report": {"header": "x-cost"}}}]}"#,
    /// )?;
    /// # let service = Arc::new(Service::start(Arc::new(MemoryStore::new()), catalogue, ServiceConfig::default()));
    /// # let (_, key) = service.open_account("my-agent", "2".parse()?).await?;
    /// # let served = ServiceBuilder::new().layer(MeteringLayer::new(service)).service(service_fn(report));
    /// # let request = Request::post("/report").header("x-api-key", key.expose()).body("a\nb\nc".to_owned())?;
    /// let response = served.oneshot(request).await?; // a request with three rows, through the layer
    /// assert_eq!(response.headers()["x-bds-credit-charged"], "0.03");
    /// assert_eq!(response.headers()["x-bds-credit-balance"], "1.97");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When it could not be recorded within five seconds. It is tried again in the background; if the process ends
    /// first, the hold is settled by its rule when its lease ends.
    pub async fn capture(&self, cost: Credits) -> Result<Option<HoldUpdated>, Error> {
        let mut state = self.shared.state.lock().await;
        let Some(guard) = state.take_hold() else { return Ok(None) };
        let price = self.usage_price.as_ref();
        let cost = price.map_or(cost, |price| price.cost_of_credits(cost));
        if price.is_some_and(|price| price.may_exceed_hold()) {
            self.settled(&mut state, guard.capture_in_full(cost)).await
        } else {
            self.settled(&mut state, guard.capture(cost)).await
        }
    }

    /// Records the tokens that the request used, before its cost is captured: they then count towards limits on tokens
    /// per minute, instead of the expected ones. `None` if they are not known.
    pub async fn used_tokens(&self, tokens: Option<u32>) {
        if let Money::Held(guard) = &mut self.shared.state.lock().await.money {
            guard.used_tokens(tokens);
        }
    }

    /// Captures the cost of these units, by the price of the route. `None` as in [`Charged::capture`].
    ///
    /// # Errors
    /// [`Error::Internal`] when the price does not have one of the units, which is logged; otherwise as
    /// [`Charged::capture`].
    pub async fn capture_units(&self, counts: &Counts) -> Result<Option<HoldUpdated>, Error> {
        let Some(price) = &self.usage_price else { return Ok(None) };
        match price.cost(counts) {
            Ok(cost) => {
                self.used_tokens(price.used_tokens(counts)).await;
                self.capture(cost).await
            }
            Err(error) => {
                tracing::error!(%error, route = %self.route_template, "the units of a request have no price");
                Err(Error::Internal)
            }
        }
    }

    /// Settles the hold of a request whose cost was not reported, by the rule of its route's price. `None` as in
    /// [`Charged::capture`].
    ///
    /// # Errors
    /// As [`Charged::capture`].
    pub async fn capture_without_report(&self) -> Result<Option<HoldUpdated>, Error> {
        let mut state = self.shared.state.lock().await;
        let Some(guard) = state.take_hold() else { return Ok(None) };
        self.settled(&mut state, guard.capture_fallback()).await
    }

    /// Releases the hold of a request that costs nothing, although its response is passed on. `None` as in
    /// [`Charged::capture`].
    ///
    /// # Errors
    /// As [`Charged::capture`].
    pub async fn release(&self) -> Result<Option<HoldUpdated>, Error> {
        let mut state = self.shared.state.lock().await;
        let Some(guard) = state.take_hold() else { return Ok(None) };
        self.settled(&mut state, guard.release()).await
    }

    /// The client disconnected before its response: the request no longer counts as in flight for its key, although the
    /// upstream may still be working on it.
    pub async fn end_in_flight(&self) {
        drop(self.shared.state.lock().await.slot.take());
    }

    /// Waits until a hold is settled, and updates the response's charge.
    async fn settled(
        &self,
        state: &mut State,
        settling: impl Future<Output = Result<HoldUpdated, MeterError>>,
    ) -> Result<Option<HoldUpdated>, Error> {
        let settled = self.settling(settling).await.ok_or(Error::StorageUnavailable)??;
        if !settled.changed {
            tracing::warn!(id = %settled.hold.id, "the cost of a request was reported after its hold was settled");
        }
        state.set_settled(&settled);
        state.begin_to_settle_payment(&self.shared.service);
        Ok(Some(settled))
    }

    /// Waits until a hold is settled, but not for long: settling continues without the response.
    async fn settling<T>(&self, settling: impl Future<Output = T>) -> Option<T> {
        tokio::time::timeout(SETTLE_WAIT, settling.instrument(self.shared.span.clone())).await.ok()
    }
}

impl State {
    /// Waits until the charge is on disk. The future may be dropped, and another one awaited.
    async fn on_disk(&mut self, service: &Service) -> Result<(), Error> {
        if matches!(self.money, Money::Expected(_) | Money::Refused(_)) {
            Box::pin(self.decided(service)).await;
        }
        let error = match &mut self.money {
            Money::Charged(early) => match early.flushed().await {
                Ok(()) => return Ok(()),
                Err(error) => Error::from(error),
            },
            Money::Failed(error) => return Err(error.clone()),
            Money::Expected(_) | Money::Refused(_) => unreachable!("it is decided, and a refusal is an error"),
            Money::Held(_) | Money::Captured | Money::Refunded => return Ok(()),
        };
        self.money = Money::Failed(error.clone());
        // They show the charge.
        self.headers = None;
        self.settlement = None;
        self.receipt = None;
        Err(error)
    }

    /// The charge that the response reports for a settled hold.
    fn set_settled(&mut self, settled: &HoldUpdated) {
        self.headers = self.rate.map(|rate| MeteredHeaders::settled(rate, settled));
        if let Some(receipt) = &mut self.receipt {
            receipt.captures(settled);
        }
    }

    /// Sets the response headers with the request's cost, and the receipt of its payment.
    fn set_headers<R>(&mut self, response: &mut Response<R>) {
        let metered = self.headers.take();
        if let Some(metered) = &metered {
            set_metered(response.headers_mut(), metered);
            if let (ErrorShape::Anthropic, Some(rate)) = (self.errors, self.rate) {
                response.extensions_mut().insert(rate);
            }
        }
        let Some((presented, paid)) = &self.payment else { return };
        let balance = metered.map_or(paid.account.totals.balance, |metered| metered.balance());
        let receipt = presented.receipt(paid, balance, response.status().as_u16());
        set_headers(response.headers_mut(), receipt);
        if paid.hold.is_none() {
            self.payment = None;
        }
    }

    /// The hold, if it is not being settled yet.
    fn take_hold(&mut self) -> Option<HoldGuard> {
        match std::mem::replace(&mut self.money, Money::Captured) {
            Money::Held(guard) => Some(guard),
            other => {
                self.money = other;
                None
            }
        }
    }
}

shown_fields!(Charged: account, amount, balance, route_template);
