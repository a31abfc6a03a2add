//! The items of a batch, their outcomes, and the results that are stored for requests with an id.

use crate::charging::charge::{Charge, Decision, Refund, Settlement};
use crate::charging::delivery::Delivery;
use crate::charging::hold::{HoldId, HoldUpdate, HoldUpdated};
use crate::clock::Timestamp;
use crate::money::credits::Credits;

/// One item of a batch.
#[derive(Debug, Clone)]
pub enum Posting {
    /// Charge a request.
    Charge(Charge),
    /// Refund a charge.
    Refund(Refund),
    /// Record that a response was passed on.
    Settle(Settlement),
    /// Settle a hold, or renew its lease.
    Hold(HoldUpdate),
}

/// The result of one posting.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The decision on a charge.
    Decided(Decision),
    /// The balance after a refund; `None` when its account does not exist or the amount would overflow.
    Refunded(Option<Credits>),
    /// The settlement is done, whether or not its key was still stored.
    Settled,
    /// The hold after an update; `None` when there is no such hold any more.
    Hold(Option<HoldUpdated>),
    /// The store cannot record this posting, for this reason. It changed nothing, and the rest of its batch is not
    /// affected.
    Failed(String),
}

/// The stored result of a charge with a request id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredResult {
    /// The charged or held amount.
    pub charged: Credits,
    /// The balance after it.
    pub balance: Credits,
    /// The state of its delivery, if it has an idempotency key.
    pub delivery: Option<Delivery>,
    /// The hold that it opened, if it was not a charge.
    pub hold: Option<HoldId>,
}

/// A stored result with its expiry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remembered {
    /// The result.
    pub result: StoredResult,
    /// [`RequestId::RETENTION`](crate::RequestId::RETENTION) after its charge.
    pub expires_at: Timestamp,
}
