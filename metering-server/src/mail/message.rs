//! Writes messages: plain text and HTML, without images or anything else that is loaded from elsewhere.

use std::fmt;
use std::time::Duration;

use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart};
use lettre::{Address, Message};
use metering_core::access::Email;
use metering_core::signups::{LinkToken, Mail, MailMessage, MailedAlert};
use metering_core::{Randomness, SystemRandomness};
use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value, context};
use url::Url;

use crate::config::{BrandConfig, SmtpConfig};

/// The page that a verification link opens. The token is in the fragment, which browsers never send.
pub(crate) const VERIFY_PAGE: &str = "/metering/verify-email";
/// The page with an account's balance and the plans to buy.
const ACCOUNT_PAGE: &str = "/metering/account";
/// The page that a link for recovery or for signing in opens.
pub(crate) const RECOVER_PAGE: &str = "/metering/recover";

const TEMPLATES: [(&str, &str); 14] = [
    ("layout.html", include_str!("../../assets/mail/layout.html")),
    ("verify.html", include_str!("../../assets/mail/verify.html")),
    ("verify.txt", include_str!("../../assets/mail/verify.txt")),
    ("recover.html", include_str!("../../assets/mail/recover.html")),
    ("recover.txt", include_str!("../../assets/mail/recover.txt")),
    ("sign_in.html", include_str!("../../assets/mail/sign_in.html")),
    ("sign_in.txt", include_str!("../../assets/mail/sign_in.txt")),
    ("invitation.html", include_str!("../../assets/mail/invitation.html")),
    ("invitation.txt", include_str!("../../assets/mail/invitation.txt")),
    ("replaced.html", include_str!("../../assets/mail/replaced.html")),
    ("replaced.txt", include_str!("../../assets/mail/replaced.txt")),
    ("alert.html", include_str!("../../assets/mail/alert.html")),
    ("alert.txt", include_str!("../../assets/mail/alert.txt")),
    ("sign_off.txt", include_str!("../../assets/mail/sign_off.txt")),
];

/// The parts that all messages of a service share.
#[derive(Debug)]
pub(crate) struct Letterhead {
    from: Mailbox,
    brand: String,
    accent: String,
    pages: String,
    templates: Environment<'static>,
}

/// A message cannot be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteError {
    #[error("the account's address cannot receive mail")]
    Address,
    #[error(transparent)]
    Url(#[from] url::ParseError),
    #[error(transparent)]
    Template(#[from] minijinja::Error),
    #[error(transparent)]
    Format(#[from] lettre::error::Error),
    #[error(transparent)]
    HeaderName(#[from] lettre::message::header::InvalidHeaderName),
}

impl Letterhead {
    /// `pages` is the URL of the pages, without a trailing slash.
    pub(crate) fn new(smtp: &SmtpConfig, brand: &BrandConfig, pages: &str) -> Result<Self, WriteError> {
        let name = brand.name.as_str();
        let from = smtp.from.as_ref().expect("the configuration was checked").named(name);
        let mut templates = Environment::new();
        templates.set_undefined_behavior(UndefinedBehavior::Strict);
        templates.set_auto_escape_callback(
            |name| {
                if name.ends_with(".html") { AutoEscape::Html } else { AutoEscape::None }
            },
        );
        for (name, source) in TEMPLATES {
            templates.add_template(name, source)?;
        }
        let pages = Url::parse(pages)?.as_str().trim_end_matches('/').to_owned();
        let accent = brand.accent.to_string();
        Ok(Self { from, brand: name.to_owned(), accent, pages, templates })
    }

    /// The message of a mail, with a new id.
    pub(super) fn message(&self, mail: &Mail) -> Result<Message, WriteError> {
        self.message_named(mail, &self.new_id())
    }

    /// The message of a mail that is about an event. It has the same id in every attempt, so that mailboxes can tell that
    /// a repeated one is the same.
    pub(super) fn message_of(&self, mail: &Mail, event: &str) -> Result<Message, WriteError> {
        self.message_named(mail, &format!("<{event}@{}>", self.from.email.domain()))
    }

    fn message_named(&self, mail: &Mail, id: &str) -> Result<Message, WriteError> {
        let to = Mailbox::new(None, address(&mail.to).ok_or(WriteError::Address)?);
        let (brand, account) = (&self.brand, mail.agent_name.as_str());
        // The URL is in its normal form, which has nothing to escape, and escaping would spell its slashes as entities.
        let link = |page: &str, token: &LinkToken| url(format!("{}{page}#{}", self.pages, token.expose()));
        let common = context! { brand, account, accent => &self.accent, pages => url(self.pages.clone()) };
        let (template, subject, context) = match &mail.message {
            MailMessage::Verify { token, lifetime, free_credits } => (
                "verify",
                format!("Verify your email address for {brand}"),
                context! {
                    link => link(VERIFY_PAGE, token),
                    lifetime => Lifetime(*lifetime).to_string(),
                    free_credits => free_credits.is_positive().then(|| free_credits.to_string()),
                    ..common
                },
            ),
            MailMessage::Recover { token, lifetime } => (
                "recover",
                format!("Replace your {brand} API key"),
                context! {
                    link => link(RECOVER_PAGE, token), lifetime => Lifetime(*lifetime).to_string(), ..common
                },
            ),
            MailMessage::SignIn { token, lifetime } => (
                "sign_in",
                format!("Sign in to {brand}"),
                context! {
                    link => url(format!("{}{RECOVER_PAGE}#sign-in={}", self.pages, token.expose())),
                    lifetime => Lifetime(*lifetime).to_string(),
                    ..common
                },
            ),
            MailMessage::Invitation { token, lifetime, role } => (
                "invitation",
                format!("Join {account} at {brand}"),
                context! {
                    link => url(format!("{}{RECOVER_PAGE}#sign-in={}", self.pages, token.expose())),
                    lifetime => Lifetime(*lifetime).to_string(),
                    role => role.as_str(),
                    ..common
                },
            ),
            MailMessage::KeyReplaced => (
                "replaced",
                format!("Your {brand} API key was replaced"),
                context! { link => url(format!("{}{RECOVER_PAGE}", self.pages)), ..common },
            ),
            MailMessage::Alert { alert, runway } => {
                let (subject, about) = alert_of(alert, brand);
                let page = |tab: &str| url(format!("{}{ACCOUNT_PAGE}#{tab}", self.pages));
                let runway = runway.map(|runway| runway.to_string());
                let context = context! {
                    about, runway, top_up => page("top-up"), keys => page("keys"), settings => page("webhooks"), ..common
                };
                ("alert", subject, context)
            }
        };
        let render = |kind: &str| self.templates.get_template(&format!("{template}.{kind}"))?.render(&context);
        let body = MultiPart::alternative_plain_html(render("txt")?, render("html")?);
        // RFC 3834: out-of-office replies and mailing lists must not respond.
        let automatic = HeaderName::new_from_ascii("Auto-Submitted".to_owned())?;
        let message = Message::builder()
            .from(self.from.clone())
            .to(to)
            .subject(subject)
            .message_id(Some(id.to_owned()))
            .date_now()
            .raw_header(HeaderValue::new(automatic, "auto-generated".to_owned()));
        Ok(message.multipart(body)?)
    }

    /// A new message id, at the sender's domain.
    fn new_id(&self) -> String {
        let mut bytes = [0; 16];
        SystemRandomness.fill(&mut bytes);
        format!("<{}@{}>", hex::encode(bytes), self.from.email.domain())
    }
}

/// The subject of a mailed alert, and what the templates say about it.
fn alert_of(alert: &MailedAlert, brand: &str) -> (String, Value) {
    match alert {
        MailedAlert::BalanceLow { balance, threshold } => (
            format!("Your {brand} balance is low"),
            context! { kind => "low", balance => balance.to_string(), threshold => threshold.to_string() },
        ),
        MailedAlert::BalanceExhausted { balance } => (
            format!("Your {brand} credits are used up"),
            context! { kind => "exhausted", balance => balance.to_string() },
        ),
        MailedAlert::BudgetLow { key_name, remaining, limit } => (
            format!("A key's budget at {brand} is low"),
            context! { kind => "budget_low", key_name, remaining => remaining.to_string(), limit => limit.to_string() },
        ),
        MailedAlert::BudgetExhausted { key_name, limit } => (
            format!("A key's budget at {brand} is used up"),
            context! { kind => "budget_exhausted", key_name, limit => limit.to_string() },
        ),
        MailedAlert::TopUpStopped { reason } => (
            format!("Automatic top-ups at {brand} have stopped"),
            context! { kind => "top_up_stopped", reason => reason.description() },
        ),
        MailedAlert::Test => (format!("Test: alerts from {brand}"), context! { kind => "test" }),
    }
}

fn url(text: String) -> Value {
    Value::from_safe_string(text)
}

/// How long a link works, in words: days, whole hours, or minutes.
struct Lifetime(Duration);

impl fmt::Display for Lifetime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let minutes = self.0.as_secs() / 60;
        if minutes > 24 * 60 && minutes.is_multiple_of(24 * 60) {
            return write!(f, "{} days", minutes / (24 * 60));
        }
        if minutes.is_multiple_of(60) { write!(f, "{} hours", minutes / 60) } else { write!(f, "{minutes} minutes") }
    }
}

/// The address in the form that mail needs; `None` when nothing can be sent there.
pub(super) fn address(email: &Email) -> Option<Address> {
    email.as_str().parse().ok()
}

#[cfg(test)]
mod tests;
