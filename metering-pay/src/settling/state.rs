//! The shared state of a process's tasks that settle authorizations.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use metering_core::chains::ChainReader;
use metering_core::clock::Clock;
use metering_core::payments::ExchangeRates;
use metering_core::shown_fields;
use metering_core::store::AuthorizationStore;
use tokio::sync::watch;

use super::guard::RevertGuard;
use crate::offers::{
    AuthorizationId, AuthorizationRecord, Facilitator, RevertLimits, SettlementPolicy, Submitter, TokenReader,
};

/// One chain that offers are paid on.
#[derive(Debug, Clone)]
pub struct OfferChain {
    /// Reads transactions.
    pub reader: Arc<dyn ChainReader>,
    /// Reads tokens.
    pub tokens: Arc<dyn TokenReader>,
    /// The executors of authorizations.
    pub settler: Settler,
}

/// The executors of authorizations.
#[derive(Debug, Clone)]
pub enum Settler {
    /// The service itself.
    Own(Arc<dyn Submitter>),
    /// A facilitator.
    Facilitator(Arc<dyn Facilitator>),
}

/// The status of an authorization, as its waiters see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SettlingStatus {
    /// It is being settled.
    InProgress,
    /// It was credited, or has failed. The record.
    Finished(Box<AuthorizationRecord>),
}

/// Settles authorizations.
pub(crate) struct Settling {
    pub(crate) store: Arc<dyn AuthorizationStore>,
    pub(crate) chains: BTreeMap<u64, OfferChain>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) policy: SettlementPolicy,
    /// How often to look at the chain.
    pub(crate) poll: Duration,
    /// Whether payments of wallets with code are executed by the service itself.
    pub(crate) contract_wallets: bool,
    /// Limits reverts at the service's cost.
    pub(crate) guard: Arc<RevertGuard>,
    /// The rates of the currency in which receipts express payments.
    pub(super) rates: Option<Arc<ExchangeRates>>,
    /// How many payments for usage failed in this process although their requests were served.
    pub(crate) unpaid: AtomicU64,
    /// The tasks of this process.
    pub(super) tasks: Mutex<HashMap<AuthorizationId, watch::Receiver<SettlingStatus>>>,
}

shown_fields!(Settling: chains);

impl Settling {
    pub(crate) fn new(
        store: Arc<dyn AuthorizationStore>,
        chains: BTreeMap<u64, OfferChain>,
        clock: Arc<dyn Clock>,
        policy: SettlementPolicy,
        poll: Duration,
        (contract_wallets, reverts): (bool, RevertLimits),
        rates: Option<Arc<ExchangeRates>>,
    ) -> Arc<Self> {
        let guard = RevertGuard::new(reverts, Arc::clone(&clock));
        Arc::new(Self {
            store,
            chains,
            clock,
            policy,
            poll,
            contract_wallets,
            guard,
            rates,
            unpaid: AtomicU64::new(0),
            tasks: Mutex::default(),
        })
    }
}
