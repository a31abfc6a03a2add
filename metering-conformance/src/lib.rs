//! The conformance suite: the storage contract as tests for any backend.
//!
//! Each module has the contracts of one subject: async functions that take a fresh, empty store and panic if it breaks
//! the contract. [`store_conformance!`](crate::store_conformance) generates a test for each of them:
//!
//! ```
//! use std::sync::Arc;
//!
//! use metering_core::MemoryStore;
//!
//! /// A fresh store, and a guard that must live as long as it, for example a temporary directory.
//! async fn fresh() -> (Arc<MemoryStore>, ()) {
//!     (Arc::new(MemoryStore::new()), ())
//! }
//!
//! metering_conformance::charging_conformance!(fresh);
//! ```
//!
//! A backend for charging alone, like this one, implements only [`Store`], and runs
//! [`charging_conformance!`](crate::charging_conformance).
//!
//! In addition, [`agrees_on_random_operations`] compares a store with a simple model of the whole contract, and
//! [`openers_agree`] does so for several openers (stores opened on the same database) that take turns.
#![deny(missing_docs)]
#![allow(clippy::unwrap_used, reason = "these are tests, compiled as a library so that every backend can run them")]

use std::future::Future;
use std::sync::Arc;

use metering_core::store::{FullStore, Store};
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};
use tokio::runtime::{Builder, Runtime};

pub mod accounts;
pub mod activity;
mod agreement;
pub mod audit;
pub mod authorization_claims;
pub mod authorization_credits;
pub mod authorization_identifiers;
pub mod authorization_places;
mod authorization_scene;
pub mod authorization_usage;
pub mod authorizations;
pub mod auto_top_ups;
pub mod browser_links;
pub mod browser_sessions;
pub mod buyers;
pub mod caps;
pub mod challenges;
pub mod charging;
pub mod child_accounts;
pub mod claim_refusals;
pub mod claims;
mod contracts;
pub mod deliveries;
pub mod delivery_claims;
pub mod email_links;
pub mod emails;
pub mod ended_keys;
pub mod erasure;
pub mod event_alerts;
pub mod event_budgets;
pub mod event_causes;
pub mod event_payments;
mod event_scene;
pub mod expiry;
pub mod hold_batches;
pub mod hold_budgets;
pub mod hold_reads;
pub mod hold_requests;
mod hold_scene;
pub mod hold_usage;
pub mod holds;
pub mod idempotency_keys;
pub mod imports;
mod key_agreement;
pub mod key_budgets;
pub mod key_chains;
pub mod key_changes;
pub mod key_recovery;
mod key_scene;
pub mod key_terms;
pub mod keys;
pub mod late_claims;
pub mod ledger;
pub mod log;
pub mod log_leaves;
mod log_openers;
pub mod lookups;
pub mod members;
mod model;
pub mod newest_lists;
pub mod oauth_grants;
pub mod oauth_records;
mod operation;
pub mod operations;
pub mod operators;
pub mod paging;
pub mod payment_races;
pub mod payment_records;
pub mod plans;
pub mod prices;
pub mod processors;
pub mod quote_amounts;
pub mod quotes;
pub mod races;
mod reading;
mod receipt_openers;
pub mod receipts;
pub mod recipients;
pub mod refills;
pub mod refunds;
pub mod request_ids;
pub mod revocation;
pub mod rotation;
mod sale;
pub mod sales_report;
pub mod scan_marks;
mod scene;
pub mod settlements;
pub mod sign_ins;
pub mod signups;
pub mod token_limits;
mod token_openers;
pub mod top_up_quotes;
pub mod topups;
pub mod transactions;
pub mod unclaimed;
pub mod unreadable;
pub mod usage;
pub mod usage_sinks;
pub mod verification;
pub mod volumes;
pub mod wallets;
pub mod webhooks;

pub use agreement::agrees_with_model;
pub use key_agreement::openers_agree_on_keys;
pub use log_openers::openers_notice_a_log;
pub use operation::{
    AuthorizationOperation, HoldStep, Item, KeyOperation, Operation, Price, Sale, Signup, operations,
    operations_by_turns,
};
pub use receipt_openers::openers_number_receipts;
pub use token_openers::openers_share_a_token_limit;

/// Runs one contract on a fresh store. [`store_conformance!`](crate::store_conformance) generates calls to this.
///
/// The runtime has several threads, so that tasks of a contract really run in parallel.
///
/// # Panics
/// When the store breaks the contract.
pub fn run<S: ?Sized, G, F, C>(fresh: impl FnOnce() -> F, contract: impl FnOnce(Arc<S>) -> C)
where
    F: Future<Output = (Arc<S>, G)>,
    C: Future<Output = ()>,
{
    runtime().block_on(async {
        let (store, _guard) = fresh().await;
        contract(store).await;
    });
}

/// Runs one contract like [`run`], and then verifies the store's books: all totals must add up.
///
/// # Panics
/// When the store breaks the contract, or its totals do not add up.
#[doc(hidden)]
pub fn run_verified<S: Store + ?Sized, G, F, C>(fresh: impl FnOnce() -> F, contract: impl FnOnce(Arc<S>) -> C)
where
    F: Future<Output = (Arc<S>, G)>,
    C: Future<Output = ()>,
{
    runtime().block_on(async {
        let (store, _guard) = fresh().await;
        contract(Arc::clone(&store)).await;
        scene::assert_no_discrepancies(&store.verify().await.unwrap());
    });
}

/// Compares fresh stores with the model, on `cases` random sequences of [`operations()`].
///
/// # Panics
/// When they disagree, with the shortest sequence found that shows it.
pub fn agrees_on_random_operations<G, F>(cases: u32, fresh: impl Fn() -> F)
where
    F: Future<Output = (Arc<dyn FullStore>, G)>,
{
    compare_with_model(cases, &operations(), || async {
        let (store, guard) = fresh().await;
        ([store], guard)
    });
}

/// Compares two openers of one fresh database with the model, on `cases` random sequences of [`operations_by_turns`]:
/// despite its caches, each must see the other's changes immediately.
///
/// # Panics
/// When they disagree, with the shortest sequence found that shows it.
pub fn openers_agree<G, F>(cases: u32, fresh_pair: impl Fn() -> F)
where
    F: Future<Output = ([Arc<dyn FullStore>; 2], G)>,
{
    compare_with_model(cases, &operations_by_turns(), fresh_pair);
}

fn compare_with_model<const OPENERS: usize, G, F>(
    cases: u32,
    sequences: &impl Strategy<Value = Vec<Operation>>,
    fresh: impl Fn() -> F,
) where
    F: Future<Output = ([Arc<dyn FullStore>; OPENERS], G)>,
{
    let runtime = runtime();
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(sequences, |operations| {
        runtime.block_on(async {
            let (openers, _guard) = fresh().await;
            agrees_with_model(openers.into(), operations).await;
        });
        Ok::<(), TestCaseError>(())
    });
    match outcome {
        Ok(()) => {}
        Err(TestError::Fail(reason, shortest)) => panic!("{reason}\nafter these operations: {shortest:#?}"),
        Err(abort @ TestError::Abort(_)) => panic!("{abort}"),
    }
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(4).enable_all().build().expect("the runtime starts")
}

/// Compiles the program in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
