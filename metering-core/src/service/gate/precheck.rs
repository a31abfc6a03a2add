//! Refuses requests by their head, before their body is read.

use crate::access::key_use::KeyUse;
use crate::access::scope::Scope;
use crate::catalogue::ModelRefusal;
use crate::charging::precheck;
use crate::charging::refusal::Refusal;
use crate::charging::replay::Retry;
use crate::charging::rule::Debit;
use crate::error::Error;

use super::MatchedRequest;

impl MatchedRequest<'_, '_> {
    /// Refuses the request if it would be refused whatever its body: without a live key or a payment, on a path without
    /// a route, with a key that may not be used for it, above a rate limit, or without credits. Call it before the body
    /// is read.
    ///
    /// It reads the store at most once, and does not charge or count anything. [`MatchedRequest::admit`] may still
    /// refuse an accepted request. A request that may repeat an earlier one (`retry`) needs no credits of its own.
    ///
    /// ```
    /// # use metering_core::Error;
    /// use metering_core::charging::Retry;
    /// # use metering_core::service::MatchedRequest;
    /// # async fn read_body() -> String { String::new() }
    /// # async fn serve(found: MatchedRequest<'_, '_>) -> Result<(), Error> {
    /// found.precheck(Retry::No).await?;
    /// let body = read_body().await;
    /// # drop(body);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Same as [`Service::admit`](crate::Service::admit). Nothing is charged.
    pub async fn precheck(self, retry: Retry) -> Result<(), Error> {
        let Self { service, request, max_cost, sign_in, matched, .. } = self;
        let caller = request.caller();
        let (route, path) = match matched {
            Ok(matched) => matched,
            Err(none) => {
                let error = none.into_error(service);
                return Err(service.access.after_authentication(caller, error).await);
            }
        };
        // Payments are credited before the charge.
        if !route.metered || request.payment.is_some() {
            return Ok(());
        }
        let (price, _) = match route.read(&path, request.query) {
            Ok(read) => read,
            Err(refusal) => return Err(service.access.after_authentication(caller, refusal.into()).await),
        };
        let by_usage = match route.usage_price_of(&path, None) {
            Ok(by_usage) => by_usage,
            // The body names the model.
            Err(ModelRefusal::Unread(_)) => route.usage_price().cloned(),
            Err(unsold) => return Err(service.access.after_authentication(caller, unsold.into()).await),
        };
        let depends_on_body = by_usage.as_ref().is_some_and(|price| price.needs_request_body());
        let most = by_usage.as_ref().map_or(price, |by_usage| by_usage.hold(None));
        let Some(key) = request.key else {
            return match service.offers().accepts_keyless() {
                false => Err(Error::Unauthorized),
                true if sign_in.is_some() || max_cost.is_some() || depends_on_body => Ok(()),
                true => Err(Error::PaymentRequired { price: most }),
            };
        };
        // Refused before the key's rights are checked.
        let has_other_refusal = max_cost.is_some() || matches!(request.idempotency_key, Some(Err(_)));
        let may_repeat = retry != Retry::No || request.idempotency_key.is_some();
        let taking = match by_usage {
            _ if may_repeat || has_other_refusal => None,
            // The body decides how much must be paid.
            Some(_) if depends_on_body && service.offers().has_offers() => None,
            Some(_) if depends_on_body => Some(Debit::Charge(most)),
            Some(_) => Some(Debit::Hold(most)),
            // There may be a free allowance.
            None if route.volume_tiers().is_some() => Some(Debit::Nothing),
            None => Some(Debit::Charge(price)),
        };
        let line = route.usage_line(request.source);
        let (called, at) = ((&*line.http_method, &*line.route_template), service.access.now());
        let used_for = match has_other_refusal {
            true => KeyUse { scope: None, route: None, address: request.address, at },
            false => KeyUse { scope: Some(Scope::Call), route: Some(called), address: request.address, at },
        };
        let checked = match service.access.store.key_holder(&key.hash()).await? {
            Some(holder) => precheck::check(&holder, &used_for, taking),
            None => Err(Refusal::UnknownKey),
        };
        match checked {
            Ok(()) => Ok(()),
            Err(refusal) => {
                service.charging.meter.count_refusal(refusal.clone());
                Err(service.refused(refusal).await)
            }
        }
    }
}
