//! API keys, exact prepaid credits and charging for metered routes, for Rust services.
//!
//! A [`Service`] opens accounts with a key and credits, charges requests to them, and refunds requests that could not
//! be delivered. Add a backend: `metering-sqlite`, `metering-postgres`, or [`MemoryStore`] for tests. A charge is on
//! disk when its receipt is returned.
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
//!     println!("balance: {} credits", service.usage().balance(Some(&key)).await?.credit_balance);
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
//! - Selling plans on chains: [`Service::with_payments`], with a [`ChainReader`](chains::ChainReader) such as that of
//!   `metering-evm`; the example program `sell_a_plan` runs a whole purchase in memory. Payments that come with requests
//!   (x402, MPP): [`Service::with_request_payments`], with the hook of `metering-pay`. Free signups:
//!   [`Service::signups`].
//! - A backend of your own: [`Store`], which is enough to charge, then [`PaymentStore`] and the other traits in
//!   [`store`]; [`decide`](charging::decide) and [`backend`] do the arithmetic, and the crate `metering-conformance`
//!   tests it.
//!
//! The guide is `docs/embedding.md` in the repository. The crate does no network or disk I/O, and takes time and
//! randomness from [`Clock`] and [`Randomness`]. Rules are pure functions over plain values.
#![deny(missing_docs)]

pub mod access;
pub mod backend;
pub mod catalogue;
pub mod chains;
pub mod charging;
pub mod clock;
mod decision;
mod error;
pub mod events;
mod hex_word;
pub mod imports;
#[cfg(feature = "tower")]
mod layer;
mod lower_hex;
pub mod money;
mod named_enum;
pub mod oauth;
pub mod offers;
pub mod operators;
pub mod payments;
pub mod prices;
pub mod random;
mod random_id;
mod raw_bytes;
pub mod receipts;
pub mod retry;
pub mod secret;
pub mod service;
mod shown_fields;
pub mod signups;
pub mod store;
mod text_traits;
pub mod trace;
pub mod usage;
pub mod wire;

pub use access::{Account, AccountId, ApiKey, RateLimits};
pub use catalogue::Catalogue;
pub use charging::charge::{Charge, Decision, Receipt};
pub use charging::meter::{Meter, MeterConfig, MeterError};
pub use charging::refusal::Refusal;
pub use charging::request_id::RequestId;
pub use clock::{Clock, Day, SystemClock, Timestamp};
pub use error::{ChildAccountError, Error, KeyConflict, MemberError, PaymentRefusal, PaymentRequired};
#[cfg(feature = "tower")]
pub use layer::{Charged, InFlightSlot, Metered, MeteringLayer, Privacy, RequestBody};
pub use money::Credits;
pub use random::{Randomness, SystemRandomness};
pub use service::config::ServiceConfig;
pub use service::metering::Service;
pub use store::memory::MemoryStore;
pub use store::{FullStore, NewAccount, PaymentStore, Store, StoreError};
pub use usage::{ClientSource, UsageLine};

/// Runs the program in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
