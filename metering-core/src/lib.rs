//! API keys, exact prepaid credits and charging for metered routes, for Rust services.
//!
//! A [`Service`] opens accounts with a key and credits, charges requests to them, and refunds what could not be
//! delivered. Add a backend: `metering-sqlite`, `metering-postgres`, or [`MemoryStore`] for tests. A charge is on disk
//! when its receipt is returned.
//!
//! # The first charge
//!
//! ```
//! use std::sync::Arc;
//!
//! use metering_core::{Charge, MemoryStore, Service};
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let service = Service::with_defaults(Arc::new(MemoryStore::new()));
//!     let (account, key) = service.open_account("my-agent", "2".parse()?).await?;
//!     let receipt = service.charge(Charge::new(&key, "0.25".parse()?, "GET", "/quotes/{number}")).await?;
//!     println!("{} paid {} credits", account.id, receipt.charged);
//!     println!("balance: {} credits", service.balance(Some(&key)).await?.credit_balance);
//!     service.meter().drain().await;
//!     Ok(())
//! }
//! ```
//!
//! # Where next
//!
//! - Routes and prices from a file: [`Catalogue`], [`Service::start`] and [`Service::admit`]; with the feature `tower`,
//!   `MeteringLayer` does it for any HTTP service.
//! - Decisions instead of errors, without a catalogue: [`Meter`]. Amounts: [`Credits`].
//! - Selling plans on chains: [`Service::with_payments`], with a [`ChainReader`] such as that of `metering-evm`. Free
//!   signups: [`Service::with_signup`].
//! - A backend of your own: [`Store`], which is enough to charge, then [`PaymentStore`] and [`SignupStore`]; [`Tally`]
//!   and [`backend`] do the arithmetic, and the feature `conformance` tests it.
//!
//! The guide is `docs/embedding.md` in the repository. The crate does no network or disk I/O, and gets time and
//! randomness from [`Clock`] and [`Randomness`]. Rules are pure functions over plain values.
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

/// Runs the program in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
