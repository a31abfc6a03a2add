//! A store's accounts, usage and deliveries, in a form that does not depend on the backend.

use std::fmt;
use std::sync::Arc;

use metering_core::RequestId;
use metering_core::access::{Account, AccountId, KeyNumber};
use metering_core::chains::Address;
use metering_core::charging::{CountedRoute, StoredResult, UsageKind, Volume, Window};
use metering_core::clock::{Day, Timestamp};
use metering_core::events::{DeliveryId, Progress, WebhookId};
use metering_core::money::{Credits, LedgerEntry};
use metering_core::usage::UsageLine;

/// An account, all its data for deciding charges, and the number of its entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountRecord {
    /// The account.
    pub account: Account,
    /// Accepted requests in the current minute.
    pub minute: Window,
    /// Accepted requests in the current day.
    pub day: Window,
    /// How many entries it has: all of its ledger entries, and the usage entries among the last
    /// [`ACTIVITY_KEPT`](metering_core::usage::ACTIVITY_KEPT) of both together. Older usage entries are not moved.
    pub entries: u64,
    /// The day it was last processed for a refill.
    pub refilled_on: Option<Day>,
}

/// A ledger entry. It keeps its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerRecord {
    /// The entry.
    pub entry: LedgerEntry,
    /// How many newer entries its account has, ledger and usage together; `None` when it is not among the last
    /// [`ACTIVITY_KEPT`](metering_core::usage::ACTIVITY_KEPT).
    pub newer: Option<u32>,
}

/// A usage entry, among the last [`ACTIVITY_KEPT`](metering_core::usage::ACTIVITY_KEPT) entries of its account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActivityRecord {
    /// The account.
    pub account: AccountId,
    /// How many newer entries its account has, ledger and usage together.
    pub newer: u32,
    /// Route, method and source.
    pub line: UsageLine,
    /// The key that the requests came with.
    pub key: KeyNumber,
    /// The change of the balance.
    pub amount: Credits,
    /// How the usage came about.
    pub kind: UsageKind,
    /// How many requests share it.
    pub calls: u64,
    /// The path of the requests, if all have the same.
    pub request_path: Option<Arc<str>>,
    /// When it was written.
    pub created_at: Timestamp,
}

/// The outcome of a charge with a request id, while it is remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyRecord {
    /// The account of the request.
    pub account: AccountId,
    /// Its id.
    pub request: RequestId,
    /// The outcome.
    pub result: StoredResult,
    /// When it expires.
    pub expires_at: Timestamp,
}

/// The requests of an account to a route with volume tiers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeRecord {
    /// The account.
    pub account: AccountId,
    /// The route.
    pub route: CountedRoute,
    /// The requests of its newest month.
    pub volume: Volume,
}

/// A wallet that is linked to an account by an earlier proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalletLink {
    /// The wallet.
    pub wallet: Address,
    /// The account.
    pub account: AccountId,
}

/// The places of a wallet's transactions
/// ([`AuthorizationStore::assign_gas_place`](metering_core::store::AuthorizationStore::assign_gas_place)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GasPlacesRecord {
    /// The chain's id (EIP-155).
    pub chain_id: u64,
    /// The wallet that pays the gas.
    pub wallet: Address,
    /// The first place that was never assigned.
    pub next: u64,
    /// The places that were given back and not assigned again, in ascending order.
    pub given_back: Vec<u64>,
}

/// How far a chain has been scanned for payments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanMark {
    /// The chain's id.
    pub chain_id: u64,
    /// The last scanned block.
    pub block: u64,
}

/// A used solution of a bot challenge.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SolutionRecord {
    /// The solution.
    pub solution: [u8; 32],
    /// When its challenge expires.
    pub expires_at: Timestamp,
}

impl fmt::Debug for SolutionRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SolutionRecord({}…, {})", hex::encode(&self.solution[..4]), self.expires_at)
    }
}

/// A delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryRecord {
    /// Its id.
    pub id: DeliveryId,
    /// Where to.
    pub webhook: WebhookId,
    /// The number of its event.
    pub event: i64,
    /// Its progress.
    pub progress: Progress,
}
