//! Requests whose credits are held: those of an account, and any one by its id.

use metering_core::access::AccountId;
use metering_core::charging::HoldId;

use crate::administration::Administration;
use crate::error::AdminError;
use crate::wire::{AccountRequestDocument, AccountRequestsDocument};

impl Administration {
    /// The requests of an account whose credits are held now, newest first, at most `limit`.
    ///
    /// # Errors
    /// [`AdminError::NoSuchAccount`], or when the store fails.
    pub async fn held_requests(&self, id: &AccountId, limit: u32) -> Result<AccountRequestsDocument, AdminError> {
        self.account(id).await?;
        let holds = self.store.open_holds(id, limit).await?;
        let keys = self.store.key_labels(id).await?.into_iter().collect();
        let requests = holds.iter().map(|hold| AccountRequestDocument::new(hold, &keys)).collect();
        Ok(AccountRequestsDocument { requests })
    }

    /// A request of any account whose credits are held, or were held until it was settled. The store keeps settled ones
    /// for [`Hold::RETENTION`](metering_core::charging::Hold::RETENTION).
    ///
    /// # Errors
    /// [`AdminError::NotFound`], or when the store fails.
    pub async fn request(&self, id: &HoldId) -> Result<AccountRequestDocument, AdminError> {
        let missing = || AdminError::NotFound(format!("no request {id}; a settled request is kept for a day"));
        let hold = self.store.hold(id).await?.ok_or_else(missing)?;
        let keys = self.store.key_labels(&hold.account).await?.into_iter().collect();
        Ok(AccountRequestDocument::new(&hold, &keys))
    }
}
