//! Notes on accounts. Each is in the audit log, and nowhere else.

use metering_core::access::AccountId;
use metering_core::service::account_notes;

use crate::action::{Action, one_line};
use crate::administration::{Administration, locked};
use crate::audited::{Step, Target, requested};
use crate::calls::accounts::WriteNote;
use crate::error::AdminError;
use crate::wire::{AccountDocument, NoteRequest};

impl Administration {
    /// Writes a note on an account, revoked or not.
    ///
    /// # Errors
    /// [`AdminError::Invalid`], [`AdminError::NoSuchAccount`], or when the store fails.
    pub async fn write_note(&self, action: &Action, id: &AccountId, note: &str) -> Result<(), AdminError> {
        let note = NoteRequest { note: one_line("note", note)?, reason: String::new() };
        let target = Target::of::<WriteNote>(id, action).asked(requested(&note));
        let exists: Step<AccountId, Option<String>, _> =
            |store, id| Box::pin(async move { locked(store, id).await.map(|_| None) });
        let write: Step<AccountId, (), AdminError> = |_, _| Box::pin(std::future::ready(Ok(())));
        self.audited(target, id.clone(), exists, write, |()| None).await
    }

    /// An account with its newest notes.
    ///
    /// # Errors
    /// [`AdminError::NoSuchAccount`], or when the store fails.
    pub async fn account_with_notes(&self, id: &AccountId) -> Result<AccountDocument, AdminError> {
        let account = AccountDocument::from(&self.account(id).await?);
        Ok(AccountDocument { notes: account_notes(&*self.store, id).await?, ..account })
    }
}
