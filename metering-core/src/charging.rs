//! The charge path: the rule that accepts or refuses a charge, idempotency keys, and the [`Meter`](crate::Meter), which
//! commits charges in batches.
//!
//! The rule is pure and stated once; every backend applies it through [`decide`]. A [`Receipt`](crate::Receipt) exists
//! only for a charge that is on disk; before that, there is an [`EarlyReceipt`], or before the decision an
//! [`ExpectedCharge`].

pub(crate) mod batch;
pub(crate) mod charge;
pub(crate) mod delivery;
pub(crate) mod hold;
pub(crate) mod in_flight;
pub(crate) mod key_meter;
pub(crate) mod max_cost;
pub(crate) mod meter;
pub(crate) mod posting;
pub(crate) mod precheck;
pub(crate) mod rate;
pub(crate) mod refusal;
pub(crate) mod replay;
pub(crate) mod request_id;
mod request_mark;
pub(crate) mod returned_places;
pub(crate) mod rule;
pub(crate) mod tally;
pub(crate) mod tokens;
pub(crate) mod volume;

pub use batch::{Decided, Facts, StoredHold, StoredHoldOf, decide};
pub use charge::{MeterState, Refund, Settlement};
pub use delivery::{Attempt, Delivery, DeliveryTerms, Fingerprint, IdempotencyKey, IdempotencyKeyError, Repetition};
pub use hold::{
    Held, Hold, HoldAction, HoldId, HoldIdError, HoldTerms, HoldUpdate, HoldUpdated, SettleReason, SettledHold,
};
pub use in_flight::{InFlight, Slot};
pub use key_meter::{ExhaustedBudget, KeyLimit, KeyMeter, KeyState, remaining};
pub use max_cost::{MaxCost, MaxCostError};
pub use meter::{
    EarlyDecision, EarlyReceipt, ExpectedCharge, HoldDecision, HoldGuard, MeterEnd, MeterStats, WakeTogether,
    wake_together,
};
pub use posting::{Outcome, Posting, Remembered, StoredResult};
pub use rate::{LimitWindow, RateStatus, RateWindows, TokenStatus, Window};
pub use refusal::RefusalKind;
pub use replay::{Progress, REPLAYED_HEADER, RETRY_COUNT_HEADER, ReplayKey, Retry, is_kept};
pub use request_id::RequestIdError;
pub use returned_places::{ReturnedPlaces, ReturnedPlacesError};
pub use tally::{Changes, HoldChange, UsageChange, UsageKind};
pub use tokens::{HeldTokens, HeldTokensError, TokenScope};
pub use volume::{CountedRoute, Volume, VolumeTerms};
