//! The parent and the children of an account, for operators.

use metering_core::access::AccountId;
use metering_core::store::Cursor;

use crate::administration::Administration;
use crate::error::AdminError;
use crate::wire::{AccountDocument, AccountFamilyDocument};

impl Administration {
    /// The parent of an account, and its child accounts, oldest first, at most `limit` after `after`.
    ///
    /// # Errors
    /// [`AdminError::NoSuchAccount`], or when the store fails, or `after` is not a cursor of this list.
    pub async fn family(
        &self,
        id: &AccountId,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<AccountFamilyDocument, AdminError> {
        self.account(id).await?;
        let parent = self.store.parent_account(id).await?;
        let page = self.store.child_accounts(id, after, limit).await?;
        Ok(AccountFamilyDocument {
            parent: parent.as_ref().map(AccountDocument::from),
            accounts: page.items.iter().map(AccountDocument::from).collect(),
            next: page.next.map(|next| next.as_str().to_owned()),
        })
    }
}
