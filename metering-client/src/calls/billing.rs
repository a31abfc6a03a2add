//! Charging over HTTP, for services that serve the requests themselves.

use metering_core::call;
use metering_core::wire::{
    CaptureRequest, DeductRequest, DeductResponse, HoldRequest, HoldResponse, LookupResponse, ReleaseRequest,
    SettleRequest,
};

use super::access::{BILLING, BILLING_WITH_KEY};

call! {
    /// Charge a request that another service serves
    ///
    /// Exists only if the operator has configured an internal billing secret. Where the service offers payments with
    /// requests, pass on the client's payment headers with this request, and the payment headers of the response to the
    /// client. The same applies to `Prefer: metering-receipt` and the header `Metering-Receipt`.
    Deduct("deduct") = POST "/internal/billing/deduct" in "internal" for BILLING_WITH_KEY;
    takes((), DeductRequest);
    returns(200, "Charged": DeductResponse)
        or(KeyExpired, InsufficientCredits, KeyBudgetExhausted,
            PaymentRefused: "nothing was taken. Offers are as in the 402 of metered routes", KeyScope, KeyNetwork,
            PaymentCredited, RateLimited, Overloaded, OutcomeUnknown, SettlementPending, SettlementUnavailable);

    /// Look up the account of a key, without charging
    ///
    /// Exists only if the operator has configured an internal billing secret.
    Lookup("lookup") = POST "/internal/billing/lookup" in "internal" for BILLING_WITH_KEY;
    returns(200, "The account": LookupResponse);

    /// Hold credits for a request that another service serves
    ///
    /// For requests whose cost is known only afterwards: hold its maximum cost, serve it, then capture its cost, or
    /// release the hold if it was not served. A hold that is neither captured nor released is charged its `fallback`
    /// when its lease ends. With a `request_id`, a retry gets the first hold. Exists only if the operator has
    /// configured an internal billing secret.
    Hold("hold") = POST "/internal/billing/hold" in "internal" for BILLING_WITH_KEY;
    takes((), HoldRequest);
    returns(200, "Held": HoldResponse)
        or(KeyExpired, InsufficientCredits: "the balance does not cover the hold", KeyBudgetExhausted,
            PaymentRefused: "nothing was taken. Offers are as in the 402 of metered routes", KeyScope, KeyNetwork,
            PaymentCredited, RateLimited, Overloaded, OutcomeUnknown, SettlementPending, SettlementUnavailable);

    /// Capture the cost of a held request
    ///
    /// Charges `amount`, or the price of `units`, and releases the rest. Without either, the hold's fallback is
    /// charged. A hold is settled once: a repeated request changes nothing and gets the first outcome. Needs no key.
    Capture("capture") = POST "/internal/billing/capture" in "internal" for BILLING;
    takes((), CaptureRequest);
    returns(200, "Captured, now or before": HoldResponse)
        or(NotFound: "there is no such request, or no secret is configured", OutcomeUnknown);

    /// Release the hold of a request that was not served
    ///
    /// Nothing is charged. A hold is settled once: a repeated request changes nothing and gets the first outcome. Needs
    /// no key.
    Release("release") = POST "/internal/billing/release" in "internal" for BILLING;
    takes((), ReleaseRequest);
    returns(200, "Released, now or before": HoldResponse)
        or(NotFound: "there is no such request, or no secret is configured", OutcomeUnknown);

    /// Settle a request that a proxy checked before
    ///
    /// With the status of the response: one of the route's free statuses, by default 429 and 5xx, releases the hold,
    /// and any other status captures it. A request is settled once: a repeated one changes nothing and gets the first
    /// outcome. Without it, the request is charged when `authorize.settle_within` has passed. Needs no key.
    Settle("settle") = POST "/internal/billing/settle" in "internal" for BILLING;
    takes((), SettleRequest);
    returns(200, "Settled, now or before": HoldResponse)
        or(NotFound: "there is no such request, or no secret is configured", OutcomeUnknown);
}
