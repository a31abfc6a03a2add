//! Mail to the owners and members of accounts: its contents, and the mailer.
//!
//! A request only queues mail. The mailer's own task then calls [`Emails::prepare`](crate::service::Emails::prepare)
//! for the text, which creates the link. So a request takes the same time whether or not an account has the address,
//! and links exist only in that task.

use std::fmt;
use std::time::Duration;

use crate::access::account::{AccountId, AgentName};
use crate::access::email::Email;
use crate::access::member::MemberId;
use crate::access::role::MemberRole;
use crate::money::credits::Credits;
use crate::money::runway::Runway;
use crate::signups::alert_mail::MailedAlert;
use crate::signups::link::{LinkHash, LinkToken};

/// Sends mail in the background.
pub trait Mailer: Send + Sync + fmt::Debug {
    /// Whether mail can be addressed to `email` at all.
    fn can_address(&self, email: &Email) -> bool;

    /// Queues mail and returns at once; `false` if the queue is full.
    fn queue(&self, request: MailRequest) -> bool;
}

/// Requested mail.
#[derive(Clone, PartialEq, Eq)]
pub enum MailRequest {
    /// A link that verifies the address of this account.
    Verification(AccountId),
    /// A link that replaces the key of the account with this verified address, if there is one.
    Recovery(Email),
    /// A link that signs in to the accounts of this address, if there are any.
    SignIn(Email),
    /// A link with which this address accepts the invitation with this token.
    Join(Email, LinkHash),
    /// The link of an invitation that an account made.
    Invitation(AccountId, MemberId),
    /// The notice that the key of this account was replaced.
    KeyReplaced(AccountId),
}

impl MailRequest {
    /// Its kind, for logs and metrics.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Verification(_) => "verification",
            Self::Recovery(_) => "recovery",
            Self::SignIn(_) => "sign_in",
            Self::Join(..) => "join",
            Self::Invitation(..) => "invitation",
            Self::KeyReplaced(_) => "key_replaced",
        }
    }
}

impl fmt::Debug for MailRequest {
    /// Leaves out addresses: requests of strangers are logged too.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Verification(account) | Self::KeyReplaced(account) | Self::Invitation(account, _) => {
                write!(f, "{} of {account}", self.kind())
            }
            Self::Recovery(_) | Self::SignIn(_) | Self::Join(..) => write!(f, "{} of …", self.kind()),
        }
    }
}

/// Mail to send.
#[derive(Debug, Clone)]
pub struct Mail {
    /// The address, as its account has it.
    pub to: Email,
    /// The name of the account.
    pub agent_name: AgentName,
    /// The message.
    pub message: MailMessage,
}

/// The message of a [`Mail`].
#[derive(Debug, Clone)]
pub enum MailMessage {
    /// Follow this link to verify the address.
    Verify {
        /// The link's token.
        token: LinkToken,
        /// How long it works.
        lifetime: Duration,
        /// The free credits that come with the verification; may be zero.
        free_credits: Credits,
    },
    /// Follow this link to replace the key.
    Recover {
        /// The link's token.
        token: LinkToken,
        /// How long it works.
        lifetime: Duration,
    },
    /// Follow this link to sign in.
    SignIn {
        /// The link's token.
        token: LinkToken,
        /// How long it works.
        lifetime: Duration,
    },
    /// Follow this link to become a member of the account.
    Invitation {
        /// The link's token.
        token: LinkToken,
        /// How long it works.
        lifetime: Duration,
        /// The role that the member will have.
        role: MemberRole,
    },
    /// The key was replaced.
    KeyReplaced,
    /// Credits run out.
    Alert {
        /// What happened.
        alert: MailedAlert,
        /// How long the balance lasts, if the alert is about the balance.
        runway: Option<Runway>,
    },
}
