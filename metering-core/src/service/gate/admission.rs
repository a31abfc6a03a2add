use std::sync::Arc;

use crate::access::key::KeyHash;
use crate::catalogue::body::CheckedBody;
use crate::catalogue::route::Route;
use crate::catalogue::usage_price::UsagePrice;
use crate::charging::charge::Receipt;
use crate::charging::{EarlyReceipt, ExpectedCharge, HoldGuard};
use crate::service::Paid;

/// An admitted request.
#[derive(Debug)]
pub struct Admission<'c> {
    /// The route that it matches.
    pub route: &'c Route,
    /// Path and query in normal form. Forward exactly this.
    pub target: String,
    /// Its body, if its route [declares](crate::catalogue::BodyRules) it. Forward exactly this, as `application/json`.
    pub body: Option<CheckedBody>,
    /// Its price, if its route is priced by usage: that of its model, if models have their own.
    pub usage_price: Option<Arc<UsagePrice>>,
    /// How it was admitted.
    pub kind: AdmissionKind,
    /// The payment that came with it.
    pub paid: Option<Paid>,
    /// The hash of the key that pays; `None` if the route is not metered.
    pub key: Option<KeyHash>,
}

/// How a request was admitted.
#[derive(Debug)]
pub enum AdmissionKind {
    /// It was charged, and the charge is durable. For a [proxied](crate::service::MatchedRequest::proxied) request, its
    /// price may be held instead: the receipt shows it, and the proxy settles it.
    Charged(Receipt),
    /// It was charged, and the charge may not be on disk yet. Only for requests that [may
    /// overlap](crate::service::MatchedRequest::overlapping) with their flush.
    Early(EarlyReceipt),
    /// Its charge is not decided yet, and will clearly be accepted. Also only for requests that may overlap.
    Expected(ExpectedCharge),
    /// Its route is priced by usage: the most that it may cost is held, durably. Capture its cost.
    Held(HoldGuard),
    /// The route is not metered.
    Free,
}
