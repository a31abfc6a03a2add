//! Imports accounts of other services.

use metering_core::clock::Timestamp;
use metering_core::imports::{AccountImported, ImportMode, ImportedAccount};

use crate::action::Action;
use crate::administration::Administration;
use crate::audited::{Step, Target, json, nothing};
use crate::call::ACCOUNTS_IMPORT;
use crate::error::AdminError;

impl Administration {
    /// Imports accounts, all in one transaction, and logs it as one action.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn import_accounts(
        &self,
        action: &Action,
        accounts: Vec<ImportedAccount>,
    ) -> Result<Vec<AccountImported>, AdminError> {
        let ids = accounts.first().zip(accounts.last()).map(|(first, last)| format!("{} to {}", first.id, last.id));
        let target = Target::named(ACCOUNTS_IMPORT, ids.unwrap_or_default(), action);
        let target = target.asked(format!(r#"{{"accounts":{}}}"#, accounts.len()));
        let import: Step<(Vec<ImportedAccount>, Timestamp), _, AdminError> = |store, (accounts, now)| {
            Box::pin(async move { Ok(store.import_accounts(accounts.clone(), ImportMode::Write, *now).await?) })
        };
        self.audited(target, (accounts, self.clock.now()), nothing, import, |outcomes| {
            let created = outcomes.iter().filter(|outcome| matches!(outcome, AccountImported::Created { .. })).count();
            json(&serde_json::json!({ "created": created }))
        })
        .await
    }

    /// The result that [`Administration::import_accounts`] would have. Writes nothing.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn check_import(&self, accounts: Vec<ImportedAccount>) -> Result<Vec<AccountImported>, AdminError> {
        Ok(self.store.import_accounts(accounts, ImportMode::Check, self.clock.now()).await?)
    }
}
