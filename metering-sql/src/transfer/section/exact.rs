//! Compares records exactly, including the case of email addresses.

use metering_core::access::{Email, Identity};

use super::Record;

impl Record {
    /// Whether both records are identical, including the case of email addresses. `==` ignores that case, but a move
    /// must preserve it.
    #[must_use]
    pub fn is_exactly(&self, other: &Self) -> bool {
        self == other && self.email() == other.email()
    }

    fn email(&self) -> Option<&str> {
        let email = match self {
            Self::Account(record) => record.account.email.as_ref(),
            Self::Quote(quote) => quote.email.as_ref(),
            Self::Signup(session) => Some(&session.email),
            Self::Member(member) => address(&member.identity),
            Self::Invitation(invitation) => invitation.email.as_ref(),
            Self::SignIn(proof) => address(&proof.identity),
            _ => None,
        };
        email.map(Email::as_str)
    }
}

fn address(identity: &Identity) -> Option<&Email> {
    match identity {
        Identity::Email(email) => Some(email),
        Identity::Wallet(_) => None,
    }
}
