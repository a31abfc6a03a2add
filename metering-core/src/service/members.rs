//! Members of an account: who they are, how they are invited and changed, and the account's own log.
//!
//! How they sign in is in [`BrowserSessions`](crate::service::BrowserSessions).

mod setup;

use std::sync::Arc;

use crate::access::account::AccountId;
use crate::access::credentials::Caller;
use crate::access::email::Email;
use crate::access::issued_key::KeyHolder;
use crate::access::key::KeyFault;
use crate::access::member::{AccountActor, Invitation, Member, MemberId, NewAccountAction};
use crate::access::role::{MemberRole, Right};
use crate::error::{Error, MemberError};
use crate::random::SystemRandomness;
use crate::service::Access;
use crate::service::fields::{Fields, known_cursor, within};
use crate::service::metering::Service;
use crate::service::signups::SignupSetup;
use crate::signups::link::LinkToken;
use crate::signups::mail::MailRequest;
use crate::signups::signup::SignupError;
use crate::store::{Cursor, Invited, MemberChange, MemberChanged, MemberStore};
use crate::wire::{
    AccountLogDocument, ChangeMemberRequest, InvitationResponse, InviteMemberRequest, MemberDocument, MemberResponse,
    MembersDocument, RemovedMemberResponse,
};

pub(super) use setup::MemberSetup;

/// The most entries of the log in one response.
const MAX_ENTRIES: u32 = 100;
/// Represents the caller's member, in place of an id.
const CURRENT: &str = "current";

/// Members of accounts, from [`Service::members`].
#[derive(Debug, Clone, Copy)]
pub struct Members<'s> {
    access: &'s Access,
    signups: &'s SignupSetup,
    setup: Option<&'s MemberSetup>,
}

/// An entry of an account's log whose call is in progress.
#[derive(Debug, Clone)]
pub struct BegunAction {
    account: AccountId,
    number: i64,
}

impl Service {
    /// Offers members of accounts. Without this, only keys and the account's own address or wallet sign in to it.
    ///
    /// `store` must be the service's own store. `sign_in_url` is the page that links of invitations open; it takes the
    /// token after `#sign-in=`.
    #[must_use]
    pub fn with_members(mut self, store: Arc<dyn MemberStore>, sign_in_url: &str) -> Self {
        self.members = Some(MemberSetup { store, sign_in_url: sign_in_url.into() });
        self
    }

    /// Members of accounts.
    #[must_use]
    pub fn members(&self) -> Members<'_> {
        Members { access: &self.access, signups: &self.signups, setup: self.members.as_ref() }
    }
}

impl<'s> Members<'s> {
    /// The members of the caller's account, and its open invitations.
    ///
    /// # Errors
    /// [`Error::Unauthorized`] without the first key or a member's session; [`MemberError::NotOffered`]; or when the
    /// store fails.
    pub async fn list(self, caller: impl Into<Caller<'_>>) -> Result<MembersDocument, Error> {
        let caller = caller.into();
        let account = self.access.first_holder(caller, Right::Read).await?.account.id;
        let store = self.store()?;
        let current = caller.member().map(|member| member.id);
        let (members, now) = (store.members(&account).await?, self.access.now());
        let mut data: Vec<_> = members.iter().map(|member| MemberDocument::of(member, current)).collect();
        let invitations = store.invitations(&account).await?;
        data.extend(invitations.iter().filter(|invitation| invitation.is_live(now)).map(MemberDocument::from));
        Ok(MembersDocument { data })
    }

    /// Invites someone: by mail, or with a link to pass on.
    ///
    /// ```
    /// use metering_core::Service;
    /// use metering_core::wire::InviteMemberRequest;
    /// use metering_sqlite::SqliteStore;
    /// # use std::sync::Arc;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let store = Arc::new(SqliteStore::in_memory()?);
    /// let service = Service::with_defaults(store.clone()).with_members(store, "https://api.example.com/sign-in");
    /// let (_, key) = service.open_account("acme", "2".parse()?).await?;
    /// let request = InviteMemberRequest { role: Some("viewer".to_owned()), email: None };
    /// let invited = service.members().invite(&key, &request).await?;
    /// assert!(invited.url.ok_or("it is not mailed")?.starts_with("https://api.example.com/sign-in#sign-in="));
    /// assert_eq!(service.members().list(&key).await?.data, [invited.data]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Members::list`], and for a role that does not own; [`Error::ValidationFailed`]; [`MemberError::IsMember`];
    /// [`MemberError::TooMany`]; [`SignupError::NoMail`] when the service sends no mail.
    pub async fn invite(
        self,
        caller: impl Into<Caller<'_>>,
        request: &InviteMemberRequest,
    ) -> Result<InvitationResponse, Error> {
        let caller = caller.into();
        let holder = self.access.first_holder(caller, Right::Own).await?;
        let (store, setup) = (self.store()?, self.setup.ok_or(MemberError::NotOffered)?);
        let mut fields = Fields::default();
        let role: Option<MemberRole> = fields.parsed("role", request.role.as_deref());
        let email: Option<Email> = fields.optional("email", request.email.as_deref());
        let role = role.filter(|_| fields.is_empty());
        let Some(role) = role else { return Err(fields.into_error()) };
        let mailer = email.is_some().then(|| self.signups.mailer()).transpose()?;
        // An invitation that is mailed does not use this token: the mailer makes another.
        let (token, created_at) = (LinkToken::generate(&SystemRandomness), self.access.now());
        let invitation = Invitation {
            id: MemberId::generate(&SystemRandomness),
            token: token.hash(),
            account: holder.account.id.clone(),
            role,
            email,
            created_at,
            expires_at: created_at.saturating_add(Invitation::LIFETIME),
        };
        let data = MemberDocument::from(&invitation);
        let (account, id) = (invitation.account.clone(), invitation.id);
        match store.invite(invitation, actor(caller, &holder)?).await? {
            Invited::Invited => {}
            Invited::NoSuchAccount => return Err(Error::KeyRefused(KeyFault::NotLive)),
            Invited::IsMember => return Err(MemberError::IsMember.into()),
            Invited::TooMany => return Err(MemberError::TooMany.into()),
        }
        let url = match mailer.map(|mailer| mailer.queue(MailRequest::Invitation(account, id))) {
            Some(true) => None,
            // The invitation is kept, and is replaced by the next one to this address.
            Some(false) => return Err(SignupError::MailBusy.into()),
            None => Some(format!("{}#sign-in={}", setup.sign_in_url, token.expose())),
        };
        Ok(InvitationResponse { data, url })
    }

    /// Changes the role of a member, or of an invited person. It takes effect with the member's next request.
    ///
    /// # Errors
    /// As [`Members::invite`]; [`MemberError::NoSuchMember`]; [`MemberError::LastOwner`].
    pub async fn change(
        self,
        caller: impl Into<Caller<'_>>,
        id: &str,
        request: &ChangeMemberRequest,
    ) -> Result<MemberResponse, Error> {
        let caller = caller.into();
        let holder = self.access.first_holder(caller, Right::Own).await?;
        let mut fields = Fields::default();
        let role: Option<MemberRole> = fields.parsed("role", request.role.as_deref());
        let Some(role) = role else { return Err(fields.into_error()) };
        let id = self.apply(caller, &holder, id, MemberChange::Role(role)).await?;
        let listed = self.list(caller).await?.data.into_iter().find(|document| document.id == id.to_string());
        Ok(MemberResponse { data: listed.ok_or(MemberError::NoSuchMember)? })
    }

    /// Removes a member, whose sessions end, or withdraws an invitation. `current` represents the caller's member, who
    /// may leave with any role.
    ///
    /// # Errors
    /// As [`Members::change`].
    pub async fn remove(self, caller: impl Into<Caller<'_>>, id: &str) -> Result<RemovedMemberResponse, Error> {
        let caller = caller.into();
        let is_own = caller.member().is_some_and(|member| id == CURRENT || id == member.id.to_string());
        let right = if is_own { Right::Read } else { Right::Own };
        let holder = self.access.first_holder(caller, right).await?;
        self.apply(caller, &holder, id, MemberChange::Remove).await?;
        Ok(RemovedMemberResponse { removed: true })
    }

    /// The account's log, newest first: at most `limit` entries (1 to 100) after `after`.
    ///
    /// # Errors
    /// As [`Members::list`]; [`Error::ValidationFailed`].
    pub async fn log(
        self,
        caller: impl Into<Caller<'_>>,
        after: Option<&str>,
        limit: u32,
    ) -> Result<AccountLogDocument, Error> {
        let account = self.access.first_holder(caller.into(), Right::Read).await?.account.id;
        let limit = within("limit", limit, MAX_ENTRIES)?;
        let after = after.map(Cursor::new);
        let page = known_cursor(self.store()?.account_log(&account, after.as_ref(), limit).await)?;
        let data = page.items.into_iter().map(Into::into).collect();
        Ok(AccountLogDocument { data, next: page.next.map(|next| next.as_str().to_owned()) })
    }

    /// Logs that a member makes a call that may change something. If this fails, the call must not be made.
    /// `None` for a role that only reads: its refused calls would push the entries of others out of the log.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn begin_action(self, member: &Member, call: &str, subject: &str) -> Result<Option<BegunAction>, Error> {
        if !member.role.may_change() {
            return Ok(None);
        }
        let action = NewAccountAction {
            at: self.access.now(),
            actor: AccountActor::Member(member.clone()),
            action: call.to_owned(),
            subject: subject.to_owned(),
            status: None,
        };
        let number = self.store()?.log_account_action(&member.account, action).await?;
        Ok(number.map(|number| BegunAction { account: member.account.clone(), number }))
    }

    /// Adds the status of the response.
    pub async fn end_action(self, begun: BegunAction, status: u16) {
        let Ok(store) = self.store() else { return };
        if let Err(error) = store.end_account_action(&begun.account, begun.number, status).await {
            // The entry is kept, without a status.
            tracing::warn!(%error, account = %begun.account, "could not add a status to an entry of an account's log");
        }
    }

    async fn apply(
        self,
        caller: Caller<'_>,
        holder: &KeyHolder,
        id: &str,
        change: MemberChange,
    ) -> Result<MemberId, Error> {
        let id = match caller.member() {
            Some(member) if id == CURRENT => member.id,
            _ => id.parse().map_err(|_| MemberError::NoSuchMember)?,
        };
        let (store, actor, now) = (self.store()?, actor(caller, holder)?, self.access.now());
        match store.change_member(&holder.account.id, id, actor, change, now).await? {
            MemberChanged::Changed => Ok(id),
            MemberChanged::NoSuchMember => Err(MemberError::NoSuchMember.into()),
            MemberChanged::LastOwner => Err(MemberError::LastOwner.into()),
        }
    }

    fn store(self) -> Result<&'s dyn MemberStore, Error> {
        Ok(&*self.setup.ok_or(MemberError::NotOffered)?.store)
    }
}

/// The member or key that makes a call.
fn actor(caller: Caller<'_>, holder: &KeyHolder) -> Result<AccountActor, Error> {
    if let Some(member) = caller.member() {
        return Ok(AccountActor::Member(member.clone()));
    }
    let key = holder.key().ok_or(Error::KeyRefused(KeyFault::NotLive))?;
    Ok(AccountActor::Key { id: key.id.clone(), name: key.terms.name.clone(), is_first: key.number.is_first() })
}
