//! Mail to the owners and members of accounts: links that verify an address, replace a lost key, sign a browser in or
//! invite, and alerts.

mod members;

use std::time::Duration;

use crate::access::account::{Account, AccountId};
use crate::access::credentials::Caller;
use crate::access::email::Email;
use crate::access::email_status::EmailStatus;
use crate::access::key::ApiKey;
use crate::access::role::Right;
use crate::access::scope::Scope;
use crate::charging::delivery::IdempotencyKey;
use crate::error::Error;
use crate::money::credits::Credits;
use crate::money::runway::Runway;
use crate::random::SystemRandomness;
use crate::service::Access;
use crate::service::fields::Fields;
use crate::service::keys::recovered;
use crate::service::metering::Service;
use crate::service::signups::SignupSetup;
use crate::service::webhooks::WebhookSetup;
use crate::signups::alert_mail::MailedAlert;
use crate::signups::link::{EmailLink, LinkPurpose, LinkToken};
use crate::signups::mail::{Mail, MailMessage, MailRequest, Mailer};
use crate::signups::signup::SignupError;
use crate::store::{EmailVerified, MemberStore};
use crate::usage::DayRange;
use crate::wire::{
    LinkRequest, RecoverByEmailRequest, RecoverByEmailResponse, SendLinkResponse, SignInAccount, VerifiedResponse,
    VerifyResponse,
};

/// The days whose usage predicts how long a balance lasts.
const PACE_DAYS: u32 = 30;

/// Links by email, from [`Service::emails`].
#[derive(Debug, Clone, Copy)]
pub struct Emails<'s> {
    access: &'s Access,
    setup: &'s SignupSetup,
    webhooks: &'s WebhookSetup,
    members: Option<&'s dyn MemberStore>,
}

impl Service {
    /// Links by email.
    #[must_use]
    pub fn emails(&self) -> Emails<'_> {
        let members = self.members.as_ref().map(|setup| &*setup.store);
        Emails { access: &self.access, setup: &self.signups, webhooks: &self.webhooks, members }
    }
}

impl Emails<'_> {
    /// Sends a new link to the address of a key's account, in place of an older one.
    ///
    /// # Errors
    /// [`Error::Unauthorized`] without a live key; [`Error::Signup`] when the account has no address, another account
    /// holds it, or the mail cannot be queued; or when the store fails.
    pub async fn send_verification(self, caller: impl Into<Caller<'_>>) -> Result<SendLinkResponse, Error> {
        let holder = self.access.holder_as(caller.into(), Some(Scope::Manage), Right::Own).await?;
        let account = holder.account;
        let mailer = self.setup.mailer()?;
        let email = account.email.as_ref().ok_or(SignupError::NoEmail)?;
        let response = |status| SendLinkResponse {
            status,
            email: email.to_string(),
            expires_in: LinkPurpose::VerifyAddress.lifetime().as_secs(),
        };
        if account.email_status.is_verified() {
            return Ok(response("verified"));
        }
        let holder = self.setup.store()?.account_by_email(email).await?;
        if holder.is_some_and(|holder| holder.id != account.id) {
            return Err(SignupError::EmailVerifiedElsewhere.into());
        }
        queue(mailer, MailRequest::Verification(account.id.clone()))?;
        Ok(response("sent"))
    }

    /// Verifies the address that a link was sent to, and grants the free credits that its account waits for. Works once
    /// for each link.
    ///
    /// # Errors
    /// [`Error::ValidationFailed`]; [`SignupError::LinkNotLive`]; [`SignupError::EmailVerifiedElsewhere`]; or when the
    /// store fails.
    pub async fn verify(self, request: &LinkRequest) -> Result<VerifiedResponse, Error> {
        let token = link_token(request)?;
        match self.setup.store()?.verify_email(&token.hash(), self.access.now()).await? {
            EmailVerified::Account { account, granted } => {
                self.mail_alerts_to(&account).await;
                Ok(VerifiedResponse {
                    status: "verified",
                    email: account.email.as_ref().map(ToString::to_string).unwrap_or_default(),
                    org_id: account.id.to_string(),
                    agent_name: account.agent_name.to_string(),
                    credits_granted: granted,
                })
            }
            EmailVerified::NotLive => Err(SignupError::LinkNotLive.into()),
            EmailVerified::EmailTaken => Err(SignupError::EmailVerifiedElsewhere.into()),
            EmailVerified::OutOfRange => Err(Error::Internal),
        }
    }

    /// Has the alert of an account, if it has one, mailed to the address that was just verified.
    async fn mail_alerts_to(self, account: &Account) {
        if account.alert.threshold.is_none() {
            return;
        }
        // The address is verified all the same, and the owner can switch mail on.
        if let Err(error) = self.webhooks.set_mail_alerts(account, None, self.access.now()).await {
            tracing::warn!(%error, account = %account.id, "could not turn on mail about a low balance");
        }
    }

    /// Asks for a link that replaces the key of the account with this verified address. Whether there is one shows only
    /// in the mail: this only queues the request.
    ///
    /// # Errors
    /// [`Error::ValidationFailed`]; [`Error::Signup`] when the request cannot be queued, for any address.
    pub fn request_recovery(self, request: &RecoverByEmailRequest) -> Result<RecoverByEmailResponse, Error> {
        self.request_link(request.email.as_deref(), LinkPurpose::RecoverKey, MailRequest::Recovery)
    }

    /// The account that a link for signing in was sent to, so a page can name it first: the link may come from someone
    /// else. The link stays unused.
    ///
    /// # Errors
    /// [`Error::ValidationFailed`]; [`SignupError::LinkNotLive`]; or when the store fails.
    pub(super) async fn sign_in_account(self, request: &LinkRequest) -> Result<SignInAccount, Error> {
        let link = self.setup.store()?.email_link(&link_token(request)?.hash()).await?;
        let link = link.filter(|link| link.is_live(LinkPurpose::SignIn, self.access.now()));
        let id = link.ok_or(SignupError::LinkNotLive)?.account;
        let account = self.access.store.account(&id).await?.filter(|account| account.revoked_at.is_none());
        let account = account.ok_or(SignupError::LinkNotLive)?;
        let (org_id, agent_name) = (account.id.to_string(), account.agent_name.to_string());
        Ok(SignInAccount { org_id, agent_name, role: None })
    }

    fn request_link(
        self,
        email: Option<&str>,
        purpose: LinkPurpose,
        mail: impl FnOnce(Email) -> MailRequest,
    ) -> Result<RecoverByEmailResponse, Error> {
        let mailer = self.setup.mailer()?;
        let mut fields = Fields::default();
        let email: Option<Email> = fields.parsed("email", email);
        let email = email.ok_or_else(|| fields.into_error())?;
        queue(mailer, mail(email))?;
        Ok(link_accepted(purpose))
    }

    /// Replaces the key of the account that a link was sent to. Works once for each link.
    ///
    /// With an idempotency key of at least 32 characters, the same request gets the same new key again, for as long as
    /// that key is live. Without one, a lost response means a lost key, and the client must request another link.
    ///
    /// # Errors
    /// [`Error::ValidationFailed`]; [`SignupError::LinkNotLive`]; or when the store fails. After
    /// [`Error::OutcomeUnknown`], retry with the same idempotency key.
    pub async fn recover(
        self,
        request: &LinkRequest,
        recovery: Option<&IdempotencyKey>,
    ) -> Result<VerifyResponse, Error> {
        let token = link_token(request)?;
        let key = match recovery.map(|recovery| token.recovered_key(recovery)) {
            Some(Ok(key)) => key,
            Some(Err(problem)) => return Err(Error::field("Idempotency-Key", problem)),
            None => ApiKey::generate(&SystemRandomness),
        };
        let account = match self.setup.store()?.recover_key(&token.hash(), key.hash(), self.access.now()).await? {
            Some(account) => {
                if let Ok(mailer) = self.setup.mailer() {
                    // The notice is optional.
                    let _ = mailer.queue(MailRequest::KeyReplaced(account.id.clone()));
                }
                account
            }
            // Perhaps an earlier attempt replaced it. Only the holder of both inputs can derive this key.
            None => self.access.store.account_by_key(&key.hash()).await?.ok_or(SignupError::LinkNotLive)?,
        };
        Ok(recovered(self.access, &account, key).await)
    }

    /// The mail for a request, with a new link; `None` when there is nothing to send, such as for an address that no
    /// account has verified. Only a [`Mailer`] calls this.
    ///
    /// # Errors
    /// When the store fails; the request can be tried again.
    pub async fn prepare(self, request: &MailRequest) -> Result<Option<Mail>, Error> {
        if let Some(mail) = self.member_mail(request).await? {
            return Ok(Some(mail));
        }
        let account = match request {
            MailRequest::Invitation(..) | MailRequest::Join(..) => None,
            MailRequest::Verification(id) | MailRequest::KeyReplaced(id) => self.access.store.account(id).await?,
            MailRequest::Recovery(email) | MailRequest::SignIn(email) => {
                self.setup.store()?.account_by_email(email).await?
            }
        };
        let Some(account) = account.filter(|account| account.revoked_at.is_none()) else { return Ok(None) };
        // The account's own spelling: two addresses that are compared as equal need not be the same mailbox.
        let Some(to) = account.email.clone() else { return Ok(None) };
        let message = match request {
            MailRequest::Verification(_) => self.verification_of(&account).await?,
            MailRequest::Recovery(_) => {
                self.link_to(&account, LinkPurpose::RecoverKey, |token, lifetime| MailMessage::Recover {
                    token,
                    lifetime,
                })
                .await?
            }
            MailRequest::SignIn(_) => {
                self.link_to(&account, LinkPurpose::SignIn, |token, lifetime| MailMessage::SignIn { token, lifetime })
                    .await?
            }
            MailRequest::KeyReplaced(_) => account.email_status.is_verified().then_some(MailMessage::KeyReplaced),
            MailRequest::Invitation(..) | MailRequest::Join(..) => None,
        };
        Ok(message.map(|message| Mail { to, agent_name: account.agent_name, message }))
    }

    /// The mail for an event of an account, whose `body` webhooks get; `None` when there is nothing to send: the
    /// address is no longer the account's verified one, or the event is not about credits that run out.
    ///
    /// # Errors
    /// When the store fails; the request can be tried again.
    pub async fn prepare_alert(self, account: &AccountId, to: &Email, body: &str) -> Result<Option<Mail>, Error> {
        let store = &*self.access.store;
        let account = store.account(account).await?.filter(|account| account.revoked_at.is_none());
        let Some(account) = account.filter(|account| account.email_status.is_verified()) else { return Ok(None) };
        let Some(to) = account.email.clone().filter(|own| own == to) else { return Ok(None) };
        let Some(alert) = MailedAlert::read(body) else { return Ok(None) };
        let runway = match alert.balance() {
            Some(balance) => {
                let now = self.access.now();
                let report = store.usage_report(&account.id, DayRange::last_days(now, PACE_DAYS)).await?;
                let used = report.into_iter().flat_map(|report| report.by_day);
                Some(Runway::of(balance, used.map(|day| (day.day, day.credits_used)), now.day()))
            }
            None => None,
        };
        Ok(Some(Mail { to, agent_name: account.agent_name, message: MailMessage::Alert { alert, runway } }))
    }

    async fn verification_of(self, account: &Account) -> Result<Option<MailMessage>, Error> {
        let free_credits = match account.email_status {
            EmailStatus::Pending { free_credits } => free_credits,
            EmailStatus::Unchecked | EmailStatus::Verified { .. } => Credits::ZERO,
        };
        let lifetime = LinkPurpose::VerifyAddress.lifetime();
        let token = self.open_link(&account.id, LinkPurpose::VerifyAddress).await?;
        Ok(token.map(|token| MailMessage::Verify { token, lifetime, free_credits }))
    }

    async fn link_to(
        self,
        account: &Account,
        purpose: LinkPurpose,
        message: fn(LinkToken, Duration) -> MailMessage,
    ) -> Result<Option<MailMessage>, Error> {
        let token = self.open_link(&account.id, purpose).await?;
        Ok(token.map(|token| message(token, purpose.lifetime())))
    }

    /// A new link; `None` when the account cannot have one, such as when its address is not verified.
    async fn open_link(self, account: &AccountId, purpose: LinkPurpose) -> Result<Option<LinkToken>, Error> {
        let token = LinkToken::generate(&SystemRandomness);
        let expires_at = self.access.now().saturating_add(purpose.lifetime());
        let link = EmailLink { token: token.hash(), purpose, account: account.clone(), expires_at };
        Ok(self.setup.store()?.open_email_link(link).await?.then_some(token))
    }
}

/// The response to every request for such a link to an address, whether or not mail is sent.
#[must_use]
pub fn link_accepted(purpose: LinkPurpose) -> RecoverByEmailResponse {
    RecoverByEmailResponse { status: "accepted", expires_in: purpose.lifetime().as_secs() }
}

fn queue(mailer: &dyn Mailer, request: MailRequest) -> Result<(), SignupError> {
    if mailer.queue(request) { Ok(()) } else { Err(SignupError::MailBusy) }
}

/// The token of a link.
///
/// # Errors
/// [`Error::ValidationFailed`] without one; [`SignupError::LinkNotLive`] for another text.
pub(super) fn link_token(request: &LinkRequest) -> Result<LinkToken, Error> {
    let text = request.token.as_deref().ok_or_else(|| Error::field("token", "is required"))?;
    LinkToken::parse(text).map_err(|_| SignupError::LinkNotLive.into())
}
