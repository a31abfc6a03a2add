//! The members of an account, for operators.

use metering_core::access::AccountId;
use metering_core::wire::MemberDocument;

use crate::administration::Administration;
use crate::error::AdminError;
use crate::wire::AccountMembersDocument;

/// How many of the newest entries of the log are shown.
const LOGGED: u32 = 100;

impl Administration {
    /// The members of an account, its open invitations, and the newest entries of its log.
    ///
    /// # Errors
    /// [`AdminError::NoSuchAccount`], or when the store fails.
    pub async fn members(&self, id: &AccountId) -> Result<AccountMembersDocument, AdminError> {
        self.account(id).await?;
        let (members, invitations) = (self.store.members(id).await?, self.store.invitations(id).await?);
        let now = self.clock.now();
        let open = invitations.iter().filter(|invitation| invitation.is_live(now)).map(MemberDocument::from);
        let data = members.iter().map(|member| MemberDocument::of(member, None)).chain(open).collect();
        let log = self.store.account_log(id, None, LOGGED).await?.items.into_iter().map(Into::into).collect();
        Ok(AccountMembersDocument { data, log })
    }
}
