//! The part of the storage contract for members of accounts, their sign-ins, and the accounts' own logs.

use async_trait::async_trait;

use crate::access::account::AccountId;
use crate::access::browser_session::{BrowserSession, NewBrowserSession};
use crate::access::member::{
    AccountAction, AccountActor, Identity, Invitation, Member, MemberId, NewAccountAction, SignInChoice, SignInProof,
};
use crate::access::role::MemberRole;
use crate::clock::Timestamp;
use crate::signups::link::LinkHash;
use crate::store::{BrowserSessionStore, Cursor, Page, StoreError};

/// Stores the members of accounts.
///
/// A change of members is written with its entry in the account's log and its event.
#[async_trait]
pub trait MemberStore: BrowserSessionStore {
    /// The members of an account, in the order of joining. Empty when there is no such account.
    async fn members(&self, account: &AccountId) -> Result<Vec<Member>, StoreError>;

    /// The invitations of an account, expired ones too, in the order in which they were made.
    async fn invitations(&self, account: &AccountId) -> Result<Vec<Invitation>, StoreError>;

    /// The invitation whose link has this token, expired or not.
    async fn invitation(&self, token: &LinkHash) -> Result<Option<Invitation>, StoreError>;

    /// Stores an invitation. [`invite`](crate::backend::decision::invite) has the refusals in order.
    async fn invite(&self, invitation: Invitation, actor: AccountActor) -> Result<Invited, StoreError>;

    /// Gives an invitation that is sent by mail another token, in place of its own. `None` when the account has no such
    /// invitation.
    async fn readdress_invitation(
        &self,
        account: &AccountId,
        id: MemberId,
        token: LinkHash,
    ) -> Result<Option<Invitation>, StoreError>;

    /// Changes or removes a member or an invitation, and ends the sessions of a member that is removed.
    /// [`change_member`](crate::backend::decision::change_member) has the refusals in order.
    async fn change_member(
        &self,
        account: &AccountId,
        id: MemberId,
        actor: AccountActor,
        change: MemberChange,
        now: Timestamp,
    ) -> Result<MemberChanged, StoreError>;

    /// Stores a sign-in that was begun.
    async fn open_sign_in(&self, proof: SignInProof) -> Result<(), StoreError>;

    /// The sign-in whose link has this token, expired or not.
    async fn sign_in_proof(&self, token: &LinkHash) -> Result<Option<SignInProof>, StoreError>;

    /// The accounts that an identity can sign in to and that are not revoked: the one whose own verified address or wallet
    /// it is first, then those that it is a member of, in the order of joining.
    async fn sign_in_choices(&self, identity: &Identity) -> Result<Vec<SignInChoice>, StoreError>;

    /// Uses up a sign-in, and stores a session of its identity in one of its accounts. `None`, and nothing changes, when
    /// [`sign_in`](crate::backend::decision::sign_in) refuses it.
    async fn sign_in(
        &self,
        proof: &LinkHash,
        account: &AccountId,
        new: NewBrowserSession,
    ) -> Result<Option<BrowserSession>, StoreError>;

    /// Joins by the link of an invitation that was sent by mail, or of a sign-in that accepts an invitation, uses up both,
    /// and stores a session. `None`, and nothing changes, when [`join`](crate::backend::decision::join) refuses it.
    async fn join(&self, link: &LinkHash, new: NewBrowserSession) -> Result<Option<BrowserSession>, StoreError>;

    /// Adds an entry to an account's log, and returns its number. Deletes all but the newest
    /// [`AccountAction::MAX_PER_ACCOUNT`]. `None` when there is no such account, or it is revoked.
    async fn log_account_action(
        &self,
        account: &AccountId,
        action: NewAccountAction,
    ) -> Result<Option<i64>, StoreError>;

    /// Adds the status of the response to an entry without one.
    async fn end_account_action(&self, account: &AccountId, number: i64, status: u16) -> Result<(), StoreError>;

    /// Entries of an account's log, newest first, at most `limit` after `after`.
    async fn account_log(
        &self,
        account: &AccountId,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<AccountAction>, StoreError>;
}

/// The outcome of [`MemberStore::invite`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Invited {
    /// The invitation is stored.
    Invited,
    /// There is no such account, or it is revoked.
    NoSuchAccount,
    /// The address belongs to a member.
    IsMember,
    /// The account has reached its limit of members and invitations.
    TooMany,
}

/// A change of a member or an invitation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberChange {
    /// Another role.
    Role(MemberRole),
    /// Removes it.
    Remove,
}

/// The outcome of [`MemberStore::change_member`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberChanged {
    /// It was changed.
    Changed,
    /// The account has no such member or invitation, or is revoked; nothing changed.
    NoSuchMember,
    /// No owner would be left among the members; nothing changed.
    LastOwner,
}
