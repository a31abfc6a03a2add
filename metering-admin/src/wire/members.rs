//! The members of an account.

use metering_core::wire::{AccountActionDocument, MemberDocument};
use serde::{Deserialize, Serialize};

/// The response to `GET /admin/accounts/{id}/members`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AccountMembersDocument {
    /// Members in the order of joining, then open invitations.
    pub data: Vec<MemberDocument>,
    /// The newest entries of the account's own log, newest first, at most 100.
    pub log: Vec<AccountActionDocument>,
}
