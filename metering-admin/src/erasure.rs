//! Erases the personal data of the owner of an account.

use metering_core::access::AccountId;
use metering_core::clock::Timestamp;

use crate::action::Action;
use crate::administration::{Administration, locked, no_account};
use crate::audited::{Step, Target, json, requested};
use crate::calls::accounts::EraseAccount;
use crate::error::AdminError;
use crate::wire::{EraseRequest, ErasureDocument};

impl Administration {
    /// The changes that [`Administration::erase_account`] would make.
    ///
    /// # Errors
    /// [`AdminError::NoSuchAccount`], or when the store fails.
    pub async fn erasure(&self, id: &AccountId, receipts: bool) -> Result<ErasureDocument, AdminError> {
        let found = self.store.erasure(id, receipts).await?.ok_or_else(|| no_account(id))?;
        Ok(ErasureDocument::from(&found))
    }

    /// Erases the personal data of the owner of an account, and revokes the account. Its postings stay, under its id.
    ///
    /// # Errors
    /// [`AdminError::NoSuchAccount`], or when the store fails.
    pub async fn erase_account(
        &self,
        action: &Action,
        id: &AccountId,
        request: &EraseRequest,
    ) -> Result<ErasureDocument, AdminError> {
        type Args = (AccountId, bool, Timestamp);
        // The log does not get the earlier state of the account.
        let exists: Step<Args, Option<String>, _> =
            |store, (id, ..)| Box::pin(async move { locked(store, id).await.map(|_| None) });
        let erase: Step<Args, _, _> = |store, (id, receipts, now)| {
            Box::pin(async move {
                let erased = store.erase_account(id, *receipts, *now).await?.ok_or_else(|| no_account(id))?;
                Ok(ErasureDocument::from(&erased))
            })
        };
        let asked = requested(&EraseRequest { receipts: request.receipts, reason: String::new() });
        let target = Target::of::<EraseAccount>(id, action).asked(asked);
        let args = (id.clone(), request.receipts, self.clock.now());
        self.audited(target, args, exists, erase, |erased| json(&erased.account)).await
    }
}
