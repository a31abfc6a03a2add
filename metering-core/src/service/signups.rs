//! Free signup, modelled on RFC 8628: initiate, approve in a browser, poll for the key.

mod setup;

use std::net::IpAddr;
use std::sync::Arc;

pub(super) use setup::SignupSetup;

use crate::access::account::{Account, AccountId, RateLimits};
use crate::access::email::{Email, EmailError};
use crate::access::key::ApiKey;
use crate::clock::Timestamp;
use crate::decision::free_credits_entry;
use crate::error::Error;
use crate::money::credits::Credits;
use crate::random::SystemRandomness;
use crate::service::fields::Fields;
use crate::service::metering::Service;
use crate::service::{Access, SignupSettings};
use crate::signups::bot::BotVerdict;
use crate::signups::signup::{SessionToken, SignupError, SignupSession, UserCode};
use crate::store::{NewAccount, SignupApproved, SignupOpened, SignupRedeemed, SignupStore};
use crate::wire::{
    ApproveRequest, ApproveResponse, EmailVerification, InitiateRequest, InitiateResponse, PendingResponse,
    StatusResponse,
};

/// How many user codes to try. There are 25 billion, so if all of these are taken, the randomness is broken.
const MAX_DRAWS: usize = 16;

/// Free signups, from [`Service::signups`].
#[derive(Debug, Clone, Copy)]
pub struct Signups<'s> {
    access: &'s Access,
    setup: &'s SignupSetup,
    bonus: Credits,
}

impl Service {
    /// Offers free signups. Without this, the service refuses them.
    ///
    /// `store` must be the service's own store: new accounts are created there.
    ///
    /// [`Signups::initiate`] has an example.
    #[must_use]
    pub fn with_signup(mut self, store: Arc<dyn SignupStore>, settings: SignupSettings) -> Self {
        self.signups = SignupSetup { store: Some(store), settings };
        self
    }

    /// Free signups.
    #[must_use]
    pub fn signups(&self) -> Signups<'_> {
        let bonus = self.payments.settings.signup_bonus;
        Signups { access: &self.access, setup: &self.signups, bonus }
    }
}

impl Signups<'_> {
    /// Begins a signup. Each has its own session: a second one for the same email address does not affect the first.
    ///
    /// A whole signup:
    ///
    /// ```
    /// use metering_core::service::SignupSettings;
    /// use metering_core::wire::{ApproveRequest, InitiateRequest, StatusResponse};
    /// use metering_core::Service;
    /// use metering_sqlite::SqliteStore;
    /// # use std::sync::Arc;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let store = Arc::new(SqliteStore::in_memory()?);
    /// let service = Service::with_defaults(store.clone()).with_signup(store, SignupSettings::default());
    ///
    /// // The client begins, and shows its user the code.
    /// let (email, agent_name) = (Some("jo@example.com".to_owned()), Some("my-agent".to_owned()));
    /// let begun = service.signups().initiate(&InitiateRequest { email, agent_name }).await?;
    ///
    /// // The user opens the page, sees who signs up, and approves.
    /// assert_eq!(service.signups().pending(&begun.user_code).await?.email, "jo@example.com");
    /// let approval = ApproveRequest { user_code: Some(begun.user_code), tos_accepted: true, captcha_token: None };
    /// service.signups().approve(&approval, None).await?;
    ///
    /// // The client, which polls, gets the key.
    /// let status = service.signups().status(&begun.session_token).await?;
    /// assert!(matches!(status, StatusResponse::Approved { credit_balance, .. } if credit_balance.is_positive()));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::ValidationFailed`], [`SignupError::EmailTaken`], or when the store fails.
    pub async fn initiate(self, request: &InitiateRequest) -> Result<InitiateResponse, Error> {
        let mut fields = Fields::default();
        let email = fields.parsed("email", request.email.as_deref());
        let email = email.filter(|email| self.can_verify(email, &mut fields));
        let agent_name = fields.parsed("agent_name", request.agent_name.as_deref());
        let (Some(email), Some(agent_name)) = (email, agent_name) else { return Err(fields.into_error()) };
        let token = SessionToken::generate(&SystemRandomness);
        let created_at = self.access.now();
        let mut session = SignupSession {
            token: token.hash(),
            user_code: UserCode::generate(&SystemRandomness),
            email,
            agent_name,
            created_at,
            expires_at: created_at.saturating_add(self.setup.settings.session_lifetime),
            approved_at: None,
        };
        for _ in 0..MAX_DRAWS {
            match self.setup.store()?.open_signup(session.clone()).await? {
                SignupOpened::Opened => return Ok(self.initiate_response(&session, &token)),
                SignupOpened::EmailTaken => return Err(SignupError::EmailTaken.into()),
                SignupOpened::CodeTaken => session.user_code = UserCode::generate(&SystemRandomness),
            }
        }
        tracing::error!("found no free user code; the randomness must be broken");
        Err(Error::Internal)
    }

    /// The pending signup that a user code approves.
    ///
    /// [`Signups::initiate`] has an example.
    ///
    /// # Errors
    /// [`SignupError::InvalidCode`] when there is none, or when the store fails.
    pub async fn pending(self, code: &str) -> Result<PendingResponse, Error> {
        let code: UserCode = code.parse().map_err(|_| SignupError::InvalidCode)?;
        let now = self.access.now();
        let found = self.setup.store()?.signup_of_code(&code).await?.filter(|session| session.is_pending(now));
        let session = found.ok_or(SignupError::InvalidCode)?;
        Ok(PendingResponse {
            user_code: session.user_code.to_string(),
            agent_name: session.agent_name.to_string(),
            email: session.email.to_string(),
            expires_in: seconds_until(session.expires_at, now),
        })
    }

    /// Approves a signup if the person accepts the terms and passes the bot challenge. On an error the session stays
    /// unchanged.
    ///
    /// [`Signups::initiate`] has an example.
    ///
    /// # Errors
    /// [`Error::ValidationFailed`], [`Error::Signup`], or when the store fails.
    pub async fn approve(self, request: &ApproveRequest, client: Option<IpAddr>) -> Result<ApproveResponse, Error> {
        let mut fields = Fields::default();
        let code = fields.required("user_code", request.user_code.as_deref());
        let Some(code) = code else { return Err(fields.into_error()) };
        if !request.tos_accepted {
            return Err(SignupError::TermsNotAccepted.into());
        }
        // Before the code is checked, so each guess of a code costs work.
        self.pass_bot_check(request.captcha_token.as_deref(), client).await?;
        let code: UserCode = code.parse().map_err(|_| SignupError::InvalidCode)?;
        match self.setup.store()?.approve_signup(&code, self.access.now()).await? {
            SignupApproved::Approved => Ok(ApproveResponse { status: "approved" }),
            SignupApproved::NotPending => Err(SignupError::InvalidCode.into()),
            SignupApproved::EmailTaken => Err(SignupError::EmailTaken.into()),
        }
    }

    /// The status of a signup. The first call after its approval creates the account and returns the key, once.
    ///
    /// [`Signups::initiate`] has an example.
    ///
    /// # Errors
    /// [`SignupError::UnknownSession`], [`SignupError::EmailTaken`] when another account took the address meanwhile, or
    /// when the store fails.
    pub async fn status(self, token: &str) -> Result<StatusResponse, Error> {
        let token = SessionToken::parse(token).map_err(|_| SignupError::UnknownSession)?.hash();
        let session = self.setup.store()?.signup(&token).await?.ok_or(SignupError::UnknownSession)?;
        let now = self.access.now();
        if session.is_pending(now) {
            return Ok(StatusResponse::Pending { expires_in: seconds_until(session.expires_at, now) });
        }
        if !session.is_redeemable(now) {
            return Ok(StatusResponse::Expired);
        }
        let key = ApiKey::generate(&SystemRandomness);
        let account = self.new_account_of(session, &key, now);
        match self.setup.store()?.redeem_signup(&token, account, now).await? {
            SignupRedeemed::Account(account) => Ok(self.issued(account, key)),
            SignupRedeemed::NotApproved => Err(SignupError::UnknownSession.into()),
            SignupRedeemed::EmailTaken => Err(SignupError::EmailTaken.into()),
            SignupRedeemed::OutOfRange => Err(Error::Internal),
        }
    }

    /// The response with the key of a new account, whose first mail is queued.
    fn issued(self, account: Account, key: ApiKey) -> StatusResponse {
        self.setup.welcome(&account);
        StatusResponse::Approved {
            api_key: key.into(),
            org_id: account.id.to_string(),
            credit_balance: account.totals.balance,
            rate_limits: account.limits,
            email_verification: EmailVerification::of(&account).filter(|_| account.held_email().is_none()),
        }
    }

    /// Whether a link can be sent to an address, if that must be verified.
    fn can_verify(self, email: &Email, fields: &mut Fields) -> bool {
        let mailer = self.setup.settings.mailer.as_ref().filter(|_| self.setup.settings.verify_email);
        let possible = mailer.is_none_or(|mailer| mailer.can_address(email));
        if !possible {
            fields.wrong("email", EmailError);
        }
        possible
    }

    async fn pass_bot_check(self, token: Option<&str>, client: Option<IpAddr>) -> Result<(), Error> {
        let Some(check) = &self.setup.settings.bot_check else { return Ok(()) };
        let token = token.filter(|token| !token.is_empty()).ok_or(SignupError::ChallengeFailed)?;
        let verdict = check.judge(token, client, self.access.now()).await.map_err(SignupError::ChallengeUnavailable)?;
        let fresh = match verdict {
            BotVerdict::Passed { once: Some((solution, expires_at)) } => {
                self.setup.store()?.use_solution(solution, expires_at).await?
            }
            BotVerdict::Passed { once: None } => true,
            BotVerdict::Failed => false,
        };
        if fresh { Ok(()) } else { Err(SignupError::ChallengeFailed.into()) }
    }

    fn initiate_response(self, session: &SignupSession, token: &SessionToken) -> InitiateResponse {
        let verification_url = self.setup.settings.verification_url.clone();
        InitiateResponse {
            session_token: token.expose().to_owned(),
            verification_url_complete: format!("{verification_url}?code={}", session.user_code),
            verification_url,
            user_code: session.user_code.to_string(),
            expires_in: self.setup.settings.session_lifetime.as_secs(),
            interval: self.setup.settings.poll_interval.as_secs().max(1),
        }
    }

    fn new_account_of(self, session: SignupSession, key: &ApiKey, now: Timestamp) -> NewAccount {
        let (email_status, free) = self.setup.first_email(Some(&session.email), self.bonus);
        NewAccount {
            id: AccountId::generate(&SystemRandomness),
            agent_name: session.agent_name,
            email: Some(session.email),
            email_status,
            payer: None,
            limits: RateLimits::default(),
            key: key.hash(),
            entries: if free.is_positive() { vec![free_credits_entry(free)] } else { Vec::new() },
            created_at: now,
        }
    }
}

fn seconds_until(expires_at: Timestamp, now: Timestamp) -> u64 {
    let millis = expires_at.unix_millis().saturating_sub(now.unix_millis());
    u64::try_from(millis / 1_000).unwrap_or(0)
}
