//! A request that was matched against the catalogue, and its admission.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tracing::{Instrument, info_span};

use crate::catalogue::body::{BodyRules, CheckedBody, problem_of_body};
use crate::catalogue::path::RequestPath;
use crate::catalogue::route::Route;
use crate::catalogue::usage_price::UsagePrice;
use crate::charging::charge::Charge;
use crate::charging::delivery::{DeliveryTerms, Fingerprint};
use crate::charging::hold::{HoldId, HoldTerms};
use crate::charging::max_cost::{MaxCost, MaxCostError};
use crate::charging::request_id::RequestId;
use crate::charging::volume::VolumeTerms;
use crate::error::Error;
use crate::money::credits::Credits;
use crate::service::metering::Service;
use crate::service::{RequestPayment, RequestedResource};
use crate::shown_fields::shown_fields;
use crate::trace;
use crate::wire::ErrorCode;

use super::admission::{Admission, AdmissionKind};
use super::no_match::NoMatch;
use super::proxied::{self, Proxied};
use super::request_head::{RequestHead, kept_path};

/// A request whose path was parsed and matched against the catalogue, without reading the store. To charge it, call
/// [`MatchedRequest::admit`].
pub struct MatchedRequest<'s, 'r> {
    pub(super) service: &'s Service,
    pub(super) request: RequestHead<'r>,
    pub(super) max_cost: Option<Result<MaxCost, MaxCostError>>,
    pub(super) sign_in: Option<&'r str>,
    pub(super) proxied: Option<Proxied>,
    pub(super) id: Option<HoldId>,
    pub(super) may_overlap: bool,
    pub(super) matched: Result<(&'s Route, RequestPath<'r>), NoMatch<'r>>,
}

// Leaves out the sign-in, which can be used once.
shown_fields!(MatchedRequest<'_, '_>: request, matched);

impl<'s> MatchedRequest<'s, '_> {
    /// The route that the request matches. Its parameters have not been checked.
    #[must_use]
    pub fn route(&self) -> Option<&'s Route> {
        self.matched.as_ref().ok().map(|(route, _)| *route)
    }

    /// The same request with a payment, which is not read before it is known that the path is metered here.
    #[must_use]
    pub fn paid_with<'p>(self, payment: Option<&'p dyn RequestPayment>) -> MatchedRequest<'s, 'p>
    where
        Self: 'p,
    {
        let mut found: MatchedRequest<'s, 'p> = self;
        found.request.payment = payment;
        found
    }

    /// The same request with the sign-in of a wallet ([`Offers::sign_in`](crate::service::Offers::sign_in)). It is used
    /// if the request has neither a key nor a payment.
    #[must_use]
    pub fn signed_in_with<'p>(self, sign_in: Option<&'p str>) -> MatchedRequest<'s, 'p>
    where
        Self: 'p,
    {
        let mut found: MatchedRequest<'s, 'p> = self;
        found.sign_in = sign_in;
        found
    }

    /// The same request, from a proxy that forwards it itself.
    #[must_use]
    pub fn proxied(self, proxied: Proxied) -> Self {
        Self { proxied: Some(proxied), ..self }
    }

    /// The same request, whose hold gets this id if its route is priced by usage.
    #[must_use]
    pub fn identified(self, id: HoldId) -> Self {
        Self { id: Some(id), ..self }
    }

    /// Whether the path is unrelated to the catalogue: it is valid, and its first segment is not that of any route
    /// ([`Catalogue::covers`](crate::Catalogue::covers)).
    #[must_use]
    pub fn is_uncovered(&self) -> bool {
        matches!(&self.matched, Err(NoMatch::Route(path, _)) if !self.service.catalogue().covers(path))
    }

    /// Charges the request if its route is metered, or holds its maximum cost if its route is priced by usage.
    ///
    /// # Errors
    /// Same as [`Service::admit`].
    pub async fn admit(self) -> Result<Admission<'s>, Error> {
        let Self { service, request, max_cost, sign_in, proxied, id, may_overlap, matched } = self;
        let (route, path) = match matched {
            Ok(matched) => matched,
            Err(none) => {
                let error = none.into_error(service);
                return Err(refused(service, &request, error).await);
            }
        };
        let Read { price, target, body, usage_price } = match read(route, &path, &request, proxied.is_some()) {
            Ok(read) => read,
            Err(error) if route.metered => return Err(refused(service, &request, error).await),
            Err(error) => return Err(error),
        };
        if !route.metered {
            return Ok(Admission {
                route,
                target,
                body,
                usage_price,
                kind: AdmissionKind::Free,
                paid: None,
                key: None,
            });
        }
        // Boxed, so requests that cost nothing do not have the size of those that are charged.
        Box::pin(async move {
            let line = route.usage_line(request.source);
            let line = match usage_price.as_ref().and_then(|price| price.listed_as()) {
                Some(model) => line.of_model(model),
                None => line,
            };
            let fingerprint = || {
                let fingerprint = Fingerprint::of(request.method, &target, &line);
                let body = request.body.filter(|_| usage_price.is_some());
                body.map_or(fingerprint, |body| fingerprint.with_body(body.bytes))
            };
            let own_id = match request.idempotency_key.transpose() {
                Ok(key) => key.map(RequestId::of_idempotency_key),
                Err(error) => {
                    let fields = [("Idempotency-Key".to_owned(), error.to_string())].into();
                    return Err(refused(service, &request, Error::InvalidParameter(fields)).await);
                }
            };
            let (price, hold, tokens) = match &usage_price {
                Some(by_usage) => {
                    let forwarded = forwarded(body.as_ref(), &request);
                    let most = by_usage.hold(forwarded);
                    let terms = service.hold_terms(by_usage.without_report(most));
                    (most, Some(terms), by_usage.expected_tokens(forwarded))
                }
                None => (price, None, None),
            };
            let hold = proxied.as_ref().map_or(hold, |proxied| proxied.hold_terms(price, hold));
            let hold = hold.map(|terms| HoldTerms { id: id.unwrap_or(terms.id), ..terms });
            let by_volume = route.volume_tiers().map(|tiers| {
                let max_cost = max_cost.and_then(Result::ok);
                VolumeTerms { tiers: Arc::clone(tiers), max_cost }
            });
            // The price of a volume tier is known only in the charge, which compares it. A payment before the request
            // is for the most expensive upstream.
            let has_account = request.key.is_some() || sign_in.is_some();
            let is_compared_later = by_volume.is_some() && has_account && request.payment.is_none();
            let known_price = if is_compared_later { Credits::ZERO } else { price };
            let is_maximum = hold.is_some() || by_volume.is_some();
            service.check_max_cost(request.caller(), known_price, max_cost, is_maximum).await?;
            let paid = match request.payment {
                Some(presented) => {
                    let asked = service.offers().resource(request.path, request.query, Some(route));
                    let asked = RequestedResource { is_held: usage_price.is_some(), ..asked };
                    let paying = service.offers().pay(presented, request.caller(), fingerprint(), price, asked);
                    Some(Box::pin(paying.instrument(info_span!(target: trace::TARGET, "pay"))).await?)
                }
                None => None,
            };
            let backing = paid.as_ref().and_then(|paid| paid.hold);
            let hold = hold.map(|terms| HoldTerms { id: backing.unwrap_or(terms.id), ..terms });
            let key = match (&paid, request.key) {
                (Some(paid), _) => paid.key,
                (None, Some(key)) => key.hash(),
                (None, None) => Box::pin(service.offers().key_without_credentials(sign_in, price)).await?,
            };
            let of_payment = paid.as_ref().and_then(|paid| paid.request_id.clone());
            let is_of_payment = of_payment.is_some();
            let request_id = of_payment.or(own_id);
            let of_proxy = proxied.as_ref().filter(|_| request_id.is_none()).and_then(Proxied::stored_id);
            let is_of_proxy = of_proxy.is_some();
            let request_id = request_id.or(of_proxy);
            // A proxy that retries got no response; it need not wait.
            let lease = if is_of_proxy { Duration::ZERO } else { service.config.delivery_lease };
            let delivery = request_id.is_some().then(|| DeliveryTerms { fingerprint: fingerprint(), lease });
            let request_path = kept_path(path.as_str());
            let (address, in_flight) = (request.address, Some(service.charging.in_flight.clone()));
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
                tokens,
                is_backed: backing.is_some(),
            };
            let is_charged_once = charge.request_id.is_none() && charge.hold.is_none();
            if may_overlap && route.overlaps() && is_charged_once && paid.is_none() && proxied.is_none() {
                let kind = service.charge_early(charge).await?;
                return Ok(Admission { route, target, body, usage_price, kind, paid, key: Some(key) });
            }
            let charged = service.charge(charge).await;
            let is_refused = charged.as_ref().is_err_and(|error| error.code() != ErrorCode::OutcomeUnknown);
            if let Some(presented) = request.payment.filter(|_| is_refused && backing.is_some()) {
                Box::pin(service.offers().not_charged(presented)).await;
            }
            let mut receipt = charged.map_err(|error| match error {
                // The client sent no idempotency key.
                Error::Repeated(repetition) if is_of_payment => Error::PaymentRepeated(repetition),
                error => error,
            })?;
            if is_of_proxy {
                // The outcome of the request is unknown here, so the id stays valid for the proxy's retries.
                receipt.delivery = None;
            }
            let kind = if proxied.is_some() {
                AdmissionKind::Charged(receipt)
            } else {
                match service.charging.meter.guard(receipt) {
                    Ok(guard) => AdmissionKind::Held(guard),
                    Err(receipt) => AdmissionKind::Charged(receipt),
                }
            };
            Ok(Admission { route, target, body, usage_price, kind, paid, key: Some(key) })
        })
        .await
    }
}

/// The error of a request that is not charged. Boxed to keep the future of a request small.
async fn refused(service: &Service, request: &RequestHead<'_>, error: Error) -> Error {
    Box::pin(service.access.after_authentication(request.caller(), error)).await
}

/// The parsed parts of a request that matches a route.
struct Read {
    price: Credits,
    /// In normal form.
    target: String,
    /// If the route declares its body.
    body: Option<CheckedBody>,
    /// The price of the request, if its route is priced by usage.
    usage_price: Option<Arc<UsagePrice>>,
}

/// The body that the upstream gets, if it can be read: it determines the request's maximum cost.
fn forwarded<'b>(checked: Option<&'b CheckedBody>, request: &RequestHead<'b>) -> Option<&'b [u8]> {
    let readable = request.body.filter(|body| !body.is_encoded).map(|body| body.bytes);
    checked.map(AsRef::as_ref).or(readable)
}

/// Reads a request that matches a route. Checks its parameters and its body, and the spelling of its target if it comes
/// from a proxy.
fn read(route: &Route, path: &RequestPath<'_>, request: &RequestHead<'_>, is_proxied: bool) -> Result<Read, Error> {
    let _span = info_span!(target: trace::TARGET, "price").entered();
    let (price, query) = route.read(path, request.query)?;
    if is_proxied {
        proxied::check_spelling(request, path)?;
    }
    let target = match query {
        Some(query) => [path.as_str(), "?", &query].concat(),
        None => path.as_str().to_owned(),
    };
    let body = route.body.as_ref().map(|rules| checked(rules, request, is_proxied)).transpose();
    let body = body.map_err(Error::InvalidParameter)?;
    let usage_price = route.usage_price_of(path, forwarded(body.as_ref(), request))?;
    Ok(Read { price, target, body, usage_price })
}

/// The request's body after its route's rules. A body that was not read here is unknown.
fn checked(
    rules: &BodyRules,
    request: &RequestHead<'_>,
    is_proxied: bool,
) -> Result<CheckedBody, BTreeMap<String, String>> {
    match request.body {
        _ if is_proxied => Err(problem_of_body(
            "is checked and changed on this route, which a proxy that forwards requests itself cannot do; send the request \
             to the gateway",
        )),
        None => Err(problem_of_body("is checked on this route, and was not read")),
        Some(body) if body.is_encoded => Err(problem_of_body("must not be encoded; send it without Content-Encoding")),
        Some(body) => rules.check(body.bytes),
    }
}
