//! API keys, exact prepaid credits and charging for metered routes.
//!
//! This crate is the domain only: it does no network or disk I/O, and gets time and randomness from [`Clock`] and
//! [`Randomness`]. Rules are pure functions over plain values. A [`Store`] keeps the values; each of its methods is
//! atomic. Add a backend (`metering-sqlite`, or [`MemoryStore`] for tests), start a [`Meter`], and charge.
#![deny(missing_docs)]

mod account;
mod address;
pub mod backend;
mod bot;
mod catalogue;
mod chain;
mod charge;
mod clock;
#[cfg(feature = "conformance")]
pub mod conformance;
mod credentials;
mod credits;
mod decimal;
mod decision;
mod delivery;
mod error;
mod invisible;
mod key;
#[cfg(feature = "tower")]
mod layer;
mod ledger;
mod memory;
mod meter;
mod nearest;
mod not_before;
mod override_headers;
mod path;
mod payment;
mod plan;
mod price;
mod proof;
mod quote;
mod random;
mod recipient;
mod recovery;
mod request;
mod request_id;
pub mod retry;
mod route;
mod service;
mod signature;
mod signup;
mod spelling;
mod store;
mod tally;
mod transaction;
pub mod transfer;
mod trie;
mod units;
mod usage;
pub mod wire;

pub use account::{
    Account, AccountId, AccountIdError, AgentName, AgentNameError, Email, EmailError, Payer, RateLimits, Totals,
};
pub use address::{Address, AddressError};
pub use bot::{BotCheck, BotCheckError, BotVerdict, SolutionId};
pub use catalogue::{Catalogue, CatalogueError, Resolved, RouteRefusal};
pub use chain::{
    AccountCode, Block, BlockHash, Chain, ChainError, ChainReader, Depth, Evidence, Heights, NativeTransfer,
    PaymentsFound, PendingTransaction, TokenTransfer, TransactionStatus,
};
pub use charge::{
    Attempt, Charge, Decision, LimitWindow, MeterState, RateStatus, Receipt, Refund, Refusal, Settlement, Window,
};
pub use clock::{Clock, ClockSkew, Day, SystemClock, Timestamp};
pub use credentials::Credentials;
pub use credits::{ATOMS_PER_CREDIT, Credits};
pub use decimal::DecimalError;
pub use delivery::{Delivery, DeliveryTerms, Fingerprint, IdempotencyKey, IdempotencyKeyError, Repetition};
pub use error::{Error, PaymentRequired};
pub use key::{ApiKey, KeyFault, KeyHash, MalformedKey};
#[cfg(feature = "tower")]
pub use layer::{Charged, Metered, MeteringLayer};
pub use ledger::{LedgerEntry, LedgerKind, NewLedgerEntry, PaymentRef};
pub use memory::MemoryStore;
pub use meter::{Meter, MeterConfig, MeterEnd, MeterError, MeterStats};
pub use not_before::{NotBefore, NotBeforeError};
pub use override_headers::{is_same_header, overrides_request, starts_like_header};
pub use path::{RequestPath, TargetError};
pub use payment::{
    ArrivalLocation, ChainView, Payment, PaymentError, PaymentFault, PaymentRecord, PaymentSettlement, PaymentTarget,
    PaymentUse, RecoveryError, SettlementDecision, SettlementEntry, SettlementStep, UnreadableArrival, decide,
};
pub use plan::{PaymentKind, Plan, PlanError, PlanKey, TokenAmount};
pub use price::{LookbackTiers, Multiplier, Pricing, Weight};
pub use proof::payer_proof_message;
pub use quote::{MalformedNonce, NonceHash, Quote, QuoteNonce, QuoteState, draw_amount};
pub use random::{Randomness, SystemRandomness};
pub use recipient::{RecipientChanges, RecipientRecord, Registration, register_recipients};
pub use recovery::Challenge;
pub use request_id::{RequestId, RequestIdError};
pub use route::{Param, ParamLocation, ParamType, Route};
pub use service::{
    Admission, AdmissionKind, Arrival, Arrivals, BillingSettings, Found, PaymentSettings, RefundResult, RequestHead,
    Service, ServiceConfig, SettlementReport, SignupSettings, WatchReport, arrivals, payment_targets,
};
pub use signature::{WalletSignature, WalletSignatureError, signer, signing_digest};
pub use signup::{MalformedCode, MalformedToken, SessionHash, SessionToken, SignupError, SignupSession, UserCode};
pub use store::{
    Claim, Claimed, Created, Cursor, Discrepancy, FullStore, KeyDelivery, NewAccount, Page, PaymentCredit,
    PaymentCredited, PaymentSettled, PaymentStore, Posted, QuoteOpened, QuotePrecedence, SettlementChange,
    SignupApproved, SignupOpened, SignupRedeemed, SignupStore, Store, StoreError, Verification,
};
pub use tally::{Changes, DailyChange, Outcome, Posting, Remembered, StoredResult, Tally, UsageChange, UsageKind};
pub use transaction::{TxHash, TxHashError, TxRef};
pub use units::{TokenUnits, TokenUnitsError};
pub use usage::{
    ACTIVITY_KEPT, Activity, ActivityKind, ClientSource, DailyTotal, DayRange, DayUsage, EndpointUsage, UsageLine,
    UsageReport,
};
