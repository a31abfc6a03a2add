//! Free signup: sessions that a person approves in a browser, the bot challenge before it, and the links that are sent
//! by email.
//!
//! A session returns its account's key once, to the client that opened it.

pub(crate) mod alert_mail;
pub(crate) mod bot;
pub(crate) mod link;
pub(crate) mod mail;
pub(crate) mod signup;

pub use alert_mail::MailedAlert;
pub use bot::{BotCheck, BotCheckError, BotVerdict, SolutionId};
pub use link::{EmailLink, LinkHash, LinkPurpose, LinkToken, LinkTokenKind, MalformedLink, MalformedPurpose};
pub use mail::{Mail, MailMessage, MailRequest, Mailer};
pub use signup::{
    MalformedCode, MalformedToken, SessionHash, SessionToken, SessionTokenKind, SignupError, SignupSession, UserCode,
};
