//! Mail to members of accounts, and to those who are invited.

use super::Emails;
use crate::access::account::AccountId;
use crate::access::email::Email;
use crate::access::member::{Identity, Invitation, MemberId, SignInProof};
use crate::error::{Error, MemberError};
use crate::random::SystemRandomness;
use crate::signups::link::{LinkHash, LinkPurpose, LinkToken};
use crate::signups::mail::{Mail, MailMessage, MailRequest};
use crate::signups::signup::SignupError;
use crate::wire::{RecoverByEmailResponse, SignInLinkRequest};

impl Emails<'_> {
    /// Asks for a link that signs a browser in to the accounts of this address: the one that has verified it, and those
    /// that it is a member of. With the token of an invitation, the link joins that account. Whether there is an account
    /// shows only in the mail: this only queues the request.
    /// [`BrowserSessions::open_by_link`](crate::service::BrowserSessions::open_by_link) takes the link.
    ///
    /// # Errors
    /// As [`Emails::request_recovery`]; [`SignupError::LinkNotLive`] for an invitation that is not live.
    pub async fn request_sign_in(self, request: &SignInLinkRequest) -> Result<RecoverByEmailResponse, Error> {
        let invitation = self.invitation(request.invitation.as_ref().map(|token| token.as_str())).await?;
        self.request_link(request.email.as_deref(), LinkPurpose::SignIn, |email| match invitation {
            Some(invitation) => MailRequest::Join(email, invitation.token),
            None => MailRequest::SignIn(email),
        })
    }

    /// The invitation with this token, for the person who proves an identity. A mailed one needs no proof.
    pub(in crate::service) async fn invitation(self, token: Option<&str>) -> Result<Option<Invitation>, Error> {
        let Some(token) = token else { return Ok(None) };
        let members = self.members.ok_or(MemberError::NotOffered)?;
        let token = LinkToken::parse(token).map_err(|_| SignupError::LinkNotLive)?;
        let found = members.invitation(&token.hash()).await?;
        let now = self.access.now();
        let invitation = found.filter(|invitation| invitation.is_live(now)).ok_or(SignupError::LinkNotLive)?;
        if invitation.email.is_some() {
            return Err(Error::field("invitation", "was sent to an address: follow its link to join"));
        }
        Ok(Some(invitation))
    }

    /// The mail to a member, or to an invited person; `None` if the request is for someone else.
    pub(super) async fn member_mail(self, request: &MailRequest) -> Result<Option<Mail>, Error> {
        match request {
            MailRequest::SignIn(email) => self.member_sign_in(email).await,
            MailRequest::Join(email, invitation) => self.join(email, invitation).await,
            MailRequest::Invitation(account, id) => self.invite(account, *id).await,
            MailRequest::Verification(_) | MailRequest::Recovery(_) | MailRequest::KeyReplaced(_) => Ok(None),
        }
    }

    async fn member_sign_in(self, email: &Email) -> Result<Option<Mail>, Error> {
        let Some(members) = self.members else { return Ok(None) };
        let asked = Identity::Email(email.clone());
        let choices = members.sign_in_choices(&asked).await?;
        if choices.iter().all(|choice| choice.member.is_none()) {
            return Ok(None);
        }
        // The accounts' own spelling: two addresses that are compared as equal need not be the same mailbox.
        let exact = choices.iter().position(|choice| choice.identity.is_exactly(&asked));
        let Some(choice) = choices.into_iter().nth(exact.unwrap_or_default()) else { return Ok(None) };
        let Identity::Email(to) = choice.identity.clone() else { return Ok(None) };
        let (token, lifetime) = (LinkToken::generate(&SystemRandomness), SignInProof::LIFETIME);
        let expires_at = self.access.now().saturating_add(lifetime);
        let proof = SignInProof { token: token.hash(), identity: choice.identity, invitation: None, expires_at };
        members.open_sign_in(proof).await?;
        Ok(Some(Mail { to, agent_name: choice.name, message: MailMessage::SignIn { token, lifetime } }))
    }

    async fn join(self, email: &Email, invitation: &LinkHash) -> Result<Option<Mail>, Error> {
        let Some(members) = self.members else { return Ok(None) };
        let now = self.access.now();
        let found = members.invitation(invitation).await?;
        let Some(found) = found.filter(|found| found.is_live(now) && found.email.is_none()) else { return Ok(None) };
        let (token, lifetime) = (LinkToken::generate(&SystemRandomness), SignInProof::LIFETIME);
        let (identity, expires_at) = (Identity::Email(email.clone()), now.saturating_add(lifetime));
        let proof = SignInProof { token: token.hash(), identity, invitation: Some(*invitation), expires_at };
        members.open_sign_in(proof).await?;
        let message = MailMessage::Invitation { token, lifetime, role: found.role };
        self.of_account(&found.account, email.clone(), message).await
    }

    async fn invite(self, account: &AccountId, id: MemberId) -> Result<Option<Mail>, Error> {
        let Some(members) = self.members else { return Ok(None) };
        let token = LinkToken::generate(&SystemRandomness);
        let Some(invitation) = members.readdress_invitation(account, id, token.hash()).await? else { return Ok(None) };
        let Some(to) = invitation.email else { return Ok(None) };
        let message = MailMessage::Invitation { token, lifetime: Invitation::LIFETIME, role: invitation.role };
        self.of_account(account, to, message).await
    }

    async fn of_account(self, id: &AccountId, to: Email, message: MailMessage) -> Result<Option<Mail>, Error> {
        let account = self.access.store.account(id).await?.filter(|account| account.revoked_at.is_none());
        Ok(account.map(|account| Mail { to, agent_name: account.agent_name, message }))
    }
}
