//! Links that sign in: of an account's own address, of members of accounts, and of invitations.
//!
//! A link's token contains its purpose. No link or invitation is consumed until a session is opened.

use super::{BrowserSessions, OpenedSession, opened};
use crate::access::account::AccountId;
use crate::access::browser_session::BrowserSession;
use crate::access::device::DeviceName;
use crate::access::key::KeyFault;
use crate::access::member::{Identity, Invitation, SignInChoice, SignInProof};
use crate::chains::address::Address;
use crate::chains::signature::{WalletSignature, signer};
use crate::error::{Error, MemberError};
use crate::random::SystemRandomness;
use crate::service::emails::link_token;
use crate::service::fields::Fields;
use crate::signups::link::{LinkHash, LinkToken};
use crate::signups::signup::SignupError;
use crate::store::MemberStore;
use crate::wire::{LinkAccountResponse, LinkRequest, SignInAccount, WalletSignInRequest, WalletSignInResponse};

/// The purpose of a link.
enum Link<'s> {
    /// Signs in with the first key of the account that it was sent to.
    Account(LinkHash),
    /// Signs in the person who proved an identity.
    Proof(&'s dyn MemberStore, SignInProof),
    /// Joins the account of an invitation: by the invitation that was mailed, or with an identity that was proven.
    Join(&'s dyn MemberStore, LinkHash, Invitation),
    /// Joins nothing yet: its holder must prove an identity.
    Invitation(Invitation),
}

impl<'s> BrowserSessions<'s> {
    /// Begins a sign-in with a wallet: a text to sign. With an invitation, the wallet's owner joins its account.
    ///
    /// # Errors
    /// [`Error::ValidationFailed`]; [`MemberError::UnknownWallet`]; [`SignupError::LinkNotLive`] for an invitation that is
    /// not live; or when the store fails.
    pub async fn begin_with_wallet(self, request: &WalletSignInRequest) -> Result<WalletSignInResponse, Error> {
        let members = self.members.ok_or(MemberError::NotOffered)?;
        let mut fields = Fields::default();
        let wallet: Option<Address> = fields.parsed("address", request.address.as_deref());
        let Some(wallet) = wallet else { return Err(fields.into_error()) };
        let identity = Identity::Wallet(wallet);
        let invitation = self.emails.invitation(request.invitation.as_ref().map(|token| token.as_str())).await?;
        // A sign-in of an unknown wallet costs no write.
        if invitation.is_none() && members.sign_in_choices(&identity).await?.is_empty() {
            return Err(MemberError::UnknownWallet.into());
        }
        let token = LinkToken::generate(&SystemRandomness);
        let expires_at = self.access.now().saturating_add(SignInProof::LIFETIME);
        let invitation = invitation.map(|invitation| invitation.token);
        let proof = SignInProof { token: token.hash(), identity, invitation, expires_at };
        let message = proof.message(&self.config.name());
        members.open_sign_in(proof).await?;
        let expires_in = SignInProof::LIFETIME.as_secs();
        Ok(WalletSignInResponse { token: token.expose().to_owned(), message, expires_in })
    }

    /// The accounts that a link signs in to, so a page can name them first: the link may come from someone else. The
    /// link stays unused.
    ///
    /// # Errors
    /// [`Error::ValidationFailed`]; [`SignupError::LinkNotLive`]; [`MemberError::WrongSignature`]; or when the store fails.
    pub async fn accounts_of_link(self, request: &LinkRequest) -> Result<LinkAccountResponse, Error> {
        let link = self.link(request).await?;
        let (joins, needs_identity) = (matches!(link, Link::Join(..)), matches!(link, Link::Invitation(_)));
        let accounts = match link {
            Link::Account(_) => vec![self.emails.sign_in_account(request).await?],
            Link::Proof(members, proof) => {
                let choices = choices(members, &proof).await?;
                choices.into_iter().map(sign_in_account).collect()
            }
            Link::Join(_, _, invitation) | Link::Invitation(invitation) => {
                let account = self.access.store.account(&invitation.account).await?;
                let account = account.filter(|account| account.revoked_at.is_none()).ok_or(SignupError::LinkNotLive)?;
                let role = Some(invitation.role.to_string());
                vec![SignInAccount { org_id: account.id.to_string(), agent_name: account.agent_name.to_string(), role }]
            }
        };
        let first = accounts.first().ok_or(SignupError::LinkNotLive)?;
        let (org_id, agent_name) = (first.org_id.clone(), first.agent_name.clone());
        Ok(LinkAccountResponse { org_id, agent_name, accounts, joins, needs_identity })
    }

    /// Opens a session by a link: of the first key of the account that it was sent to, or of the member who it signs in.
    /// With an invitation, they join first. Works once for each link.
    ///
    /// # Errors
    /// As [`BrowserSessions::accounts_of_link`]; [`Error::ValidationFailed`] when there are several accounts and the
    /// request names none.
    pub async fn open_by_link(self, request: &LinkRequest, device: DeviceName) -> Result<OpenedSession, Error> {
        let (token, new) = self.new_session(device);
        let session: Option<BrowserSession> = match self.link(request).await? {
            Link::Account(link) => self.store()?.sign_in_by_link(&link, new).await?,
            Link::Proof(members, proof) => {
                let account = chosen(&choices(members, &proof).await?, request.org_id.as_deref())?;
                members.sign_in(&proof.token, &account, new).await?
            }
            Link::Join(members, link, _) => members.join(&link, new).await?,
            Link::Invitation(_) => {
                let problem = "is an invitation: send it as invitation, with an email address or a wallet, to sign in";
                return Err(Error::field("token", problem));
            }
        };
        let session = session.ok_or(SignupError::LinkNotLive)?;
        let holder = self.access.store.key_holder(&session.secret).await?;
        // Only if the key was revoked at the same time.
        let holder = holder.ok_or(Error::KeyRefused(KeyFault::NotLive))?;
        let member = match session.member {
            Some(id) => self.member(&session.account, id).await?,
            None => None,
        };
        opened(token, &session, &holder, member.as_ref())
    }

    /// The purpose of a requested link. The signature of a wallet is checked here.
    async fn link(self, request: &LinkRequest) -> Result<Link<'s>, Error> {
        let token = link_token(request)?.hash();
        let Some(members) = self.members else { return Ok(Link::Account(token)) };
        let now = self.access.now();
        if let Some(proof) = members.sign_in_proof(&token).await?.filter(|proof| proof.is_live(now)) {
            if let Identity::Wallet(wallet) = &proof.identity {
                self.check_signature(&proof, *wallet, request.signature.as_deref())?;
            }
            let Some(invitation) = proof.invitation else { return Ok(Link::Proof(members, proof)) };
            let invitation = members.invitation(&invitation).await?.filter(|invitation| invitation.is_live(now));
            return Ok(Link::Join(members, token, invitation.ok_or(SignupError::LinkNotLive)?));
        }
        let invitation = members.invitation(&token).await?.filter(|invitation| invitation.is_live(now));
        Ok(match invitation {
            Some(invitation) if invitation.email.is_some() => Link::Join(members, token, invitation),
            Some(invitation) => Link::Invitation(invitation),
            None => Link::Account(token),
        })
    }

    fn check_signature(self, proof: &SignInProof, wallet: Address, signature: Option<&str>) -> Result<(), Error> {
        let signature = signature.ok_or_else(|| Error::field("signature", "is required with the token of a wallet"))?;
        let signature = WalletSignature::parse(signature).map_err(|_| MemberError::WrongSignature)?;
        let is_wallets = signer(&proof.message(&self.config.name()), &signature) == Some(wallet);
        if is_wallets { Ok(()) } else { Err(MemberError::WrongSignature.into()) }
    }
}

/// The accounts of the person who proved an identity.
async fn choices(members: &dyn MemberStore, proof: &SignInProof) -> Result<Vec<SignInChoice>, Error> {
    let mut choices = members.sign_in_choices(&proof.identity).await?;
    choices.retain(|choice| choice.identity.is_exactly(&proof.identity));
    if choices.is_empty() { Err(SignupError::LinkNotLive.into()) } else { Ok(choices) }
}

/// The account that a request names, or the only one.
fn chosen(choices: &[SignInChoice], wanted: Option<&str>) -> Result<AccountId, Error> {
    let found = match (wanted, choices) {
        (None, [only]) => Some(only),
        (None, _) => return Err(Error::field("org_id", "is required: this link signs in to several accounts")),
        (Some(wanted), choices) => choices.iter().find(|choice| choice.account.as_str() == wanted),
    };
    let found = found.ok_or_else(|| Error::field("org_id", "is not an account that this link signs in to"))?;
    Ok(found.account.clone())
}

fn sign_in_account(choice: SignInChoice) -> SignInAccount {
    let SignInChoice { account, name, member, .. } = choice;
    let role = member.map(|member| member.role.to_string());
    SignInAccount { org_id: account.to_string(), agent_name: name.to_string(), role }
}
