//! Implements the part of the storage contract for accounts of other services.

use std::sync::Arc;

use async_trait::async_trait;
use metering_core::imports::{AccountImported, ImportMode, ImportedAccount};
use metering_core::store::ImportStore;
use metering_core::transfer::SecretRecord;
use metering_core::{AccountId, StoreError, Timestamp};

use crate::charging::known::SharedKnown;
use crate::store::PostgresStore;
use crate::transfer::import::foreign;

type Result<T> = std::result::Result<T, StoreError>;

#[async_trait]
impl ImportStore for PostgresStore {
    async fn import_accounts(
        &self,
        accounts: Vec<ImportedAccount>,
        mode: ImportMode,
        now: Timestamp,
    ) -> Result<Vec<AccountImported>> {
        let accounts = Arc::new(accounts);
        if mode == ImportMode::Check {
            return self
                .read(move |client| {
                    let accounts = Arc::clone(&accounts);
                    Box::pin(async move { foreign::check(client, &accounts, now).await })
                })
                .await;
        }
        let lines: Vec<_> = accounts.iter().flat_map(|new| &new.usage).map(|usage| usage.line.clone()).collect();
        let lines = self
            .read(|client| {
                let (lines, known) = (lines.clone(), SharedKnown::clone(&self.known));
                Box::pin(async move { known.lines(client, &lines.iter().collect::<Vec<_>>()).await })
            })
            .await?;
        let lines = Arc::new(lines);
        self.write(move |write| {
            let (accounts, lines) = (Arc::clone(&accounts), Arc::clone(&lines));
            Box::pin(async move { foreign::import(write, &accounts, &lines, now).await })
        })
        .await
    }

    async fn key_secrets(&self, account: &AccountId) -> Result<Vec<SecretRecord>> {
        let account = account.clone();
        self.read(move |client| {
            let account = account.clone();
            Box::pin(async move { foreign::secrets(client, &account).await })
        })
        .await
    }
}
