//! The part of the storage contract for accounts of other services.

use async_trait::async_trait;

use crate::access::account::AccountId;
use crate::access::secret_record::SecretRecord;
use crate::clock::Timestamp;
use crate::imports::{AccountImported, ImportMode, ImportedAccount};
use crate::store::{PaymentStore, StoreError};

/// Imports accounts of other services, and returns the hashes of secrets for an export.
#[async_trait]
pub trait ImportStore: PaymentStore {
    /// Imports accounts with their keys, ledger entries, daily totals and used transactions, in order, all in one
    /// transaction. The outcomes are in the order of `accounts`.
    ///
    /// An account that was imported before is found by its id, and is left unchanged: an interrupted import is simply
    /// run again. Two imports of the same accounts at the same time create each account once.
    /// [`import_account`](crate::backend::decision::import_account) has the refusals in order, and skips what another
    /// account already has. No events are written, because nothing happened to these accounts in this
    /// service.
    ///
    /// With [`ImportMode::Check`], nothing is written, and each account is decided on the current store, without those
    /// before it.
    async fn import_accounts(
        &self,
        accounts: Vec<ImportedAccount>,
        mode: ImportMode,
        now: Timestamp,
    ) -> Result<Vec<AccountImported>, StoreError>;

    /// The secrets of an account's keys that are not revoked, or were revoked with the account, by key and hash. Empty
    /// when there is no such account.
    async fn key_secrets(&self, account: &AccountId) -> Result<Vec<SecretRecord>, StoreError>;
}
