//! The store and settings for signups, and the start of every new account: free credits, and a link to verify its email
//! address.

use std::sync::Arc;

use crate::access::account::Account;
use crate::access::email::Email;
use crate::access::email_status::EmailStatus;
use crate::money::credits::Credits;
use crate::service::SignupSettings;
use crate::signups::mail::{MailRequest, Mailer};
use crate::signups::signup::SignupError;
use crate::store::SignupStore;
use crate::wire::EmailVerification;

/// The settings of [`Service::with_signup`](crate::Service::with_signup).
#[derive(Debug, Clone, Default)]
pub(in crate::service) struct SignupSetup {
    /// `None` when the service offers no signups.
    pub(in crate::service) store: Option<Arc<dyn SignupStore>>,
    pub(in crate::service) settings: SignupSettings,
}

impl SignupSetup {
    pub(in crate::service) fn store(&self) -> Result<&dyn SignupStore, SignupError> {
        self.store.as_deref().ok_or(SignupError::NotOffered)
    }

    pub(in crate::service) fn mailer(&self) -> Result<&dyn Mailer, SignupError> {
        self.settings.mailer.as_deref().ok_or(SignupError::NoMail)
    }

    /// Whether an account's address is verified, where that matters: a service without mail verifies none.
    pub(in crate::service) fn email_verification(&self, account: &Account) -> Option<EmailVerification> {
        let known = EmailVerification::of(account)?;
        (self.settings.mailer.is_some() || known != EmailVerification::UNCHECKED).then_some(known)
    }

    /// The initial status of a new account's email address, and the free credits that it gets immediately. With
    /// verification, it gets them when it is verified.
    pub(in crate::service) fn first_email(&self, email: Option<&Email>, free: Credits) -> (EmailStatus, Credits) {
        match email {
            Some(_) if self.settings.verify_email => (EmailStatus::Pending { free_credits: free }, Credits::ZERO),
            _ => (EmailStatus::Unchecked, free),
        }
    }

    /// Sends the first link to a new account. If the mail cannot be queued, its owner can ask for another.
    pub(in crate::service) fn welcome(&self, account: &Account) {
        let Ok(mailer) = self.mailer() else { return };
        let is_pending = matches!(account.email_status, EmailStatus::Pending { .. });
        if is_pending && !mailer.queue(MailRequest::Verification(account.id.clone())) {
            tracing::warn!(account = %account.id, "too much mail is waiting; a new account got no verification link");
        }
    }
}
