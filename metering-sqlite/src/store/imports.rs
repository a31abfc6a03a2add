//! Implements the part of the storage contract for accounts of other services.

use async_trait::async_trait;
use metering_core::imports::{AccountImported, ImportMode, ImportedAccount};
use metering_core::store::ImportStore;
use metering_core::transfer::SecretRecord;
use metering_core::{AccountId, Timestamp};

use crate::access::imports;
use crate::error::Result;
use crate::journal::Snapshot;
use crate::store::SqliteStore;

#[async_trait]
impl ImportStore for SqliteStore {
    async fn import_accounts(
        &self,
        accounts: Vec<ImportedAccount>,
        mode: ImportMode,
        now: Timestamp,
    ) -> Result<Vec<AccountImported>> {
        let import = move |snapshot: &Snapshot<'_>| imports::import(snapshot, accounts, mode, now);
        match mode {
            ImportMode::Write => self.writer.write(import).await,
            ImportMode::Check => self.read(import).await,
        }
    }

    async fn key_secrets(&self, account: &AccountId) -> Result<Vec<SecretRecord>> {
        let account = account.clone();
        self.read(move |connection| imports::secrets(connection, &account)).await
    }
}
