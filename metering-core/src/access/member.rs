//! Members of an account: people who sign in to it as themselves, each with a role.
//!
//! The holder of the account's first key owns it, whatever its members. A member has no key: a link by email or a
//! signature of a wallet signs a browser in, and the session has the rights of the role, looked up with each request.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::access::account::{AccountId, AgentName};
use crate::access::email::Email;
use crate::access::key_id::KeyId;
use crate::access::key_terms::KeyName;
use crate::access::role::MemberRole;
use crate::chains::address::Address;
use crate::clock::Timestamp;
use crate::random_id::random_id;
use crate::signups::link::LinkHash;
use crate::text_traits::text_traits;

/// The public id of a member, which an invitation has too: `mem_` and 32 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId([u8; 16]);

/// The text is not the id of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the id of a member is mem_ followed by 32 lower-case hex digits")]
pub struct MemberIdError;

random_id!(MemberId, MemberIdError, "mem_");

/// How a person proves who they are.
///
/// ```
/// use metering_core::access::Identity;
///
/// let jo: Identity = "Jo@Example.com".parse()?;
/// assert_eq!((jo.to_string().as_str(), jo.key().as_str()), ("Jo@Example.com", "jo@example.com"));
/// assert!("jo".parse::<Identity>().is_err());
/// # Ok::<(), metering_core::access::IdentityError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identity {
    /// They read mail to this address.
    Email(Email),
    /// They sign with the private key of this wallet. A contract cannot: on another chain, its address may be another's.
    Wallet(Address),
}

/// The text is not an identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be an email address, or a wallet's address: 0x followed by 40 hexadecimal digits")]
pub struct IdentityError;

impl Identity {
    /// The text by which identities are compared.
    #[must_use]
    pub fn key(&self) -> String {
        match self {
            Self::Email(email) => email.folded(),
            Self::Wallet(wallet) => wallet.to_string(),
        }
    }

    /// Whether both have the same spelling: two addresses that compare as equal need not be the same mailbox.
    #[must_use]
    pub fn is_exactly(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl FromStr for Identity {
    type Err = IdentityError;

    fn from_str(text: &str) -> Result<Self, IdentityError> {
        if text.contains('@') {
            return text.parse().map(Self::Email).map_err(|_| IdentityError);
        }
        text.parse().map(Self::Wallet).map_err(|_| IdentityError)
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Email(email) => email.fmt(f),
            Self::Wallet(wallet) => wallet.fmt(f),
        }
    }
}

text_traits!(Identity: Serialize);

/// A member of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its public id.
    pub id: MemberId,
    /// The account.
    pub account: AccountId,
    /// Its rights.
    pub role: MemberRole,
    /// Who it is. An account has each identity at most once.
    pub identity: Identity,
    /// When it joined.
    pub joined_at: Timestamp,
}

impl Member {
    /// How many members and open invitations an account may have.
    pub const MAX_PER_ACCOUNT: usize = 100;
}

/// An invitation to become a member. Works once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invitation {
    /// The id that the member will have.
    pub id: MemberId,
    /// The hash of its link's token.
    pub token: LinkHash,
    /// The account.
    pub account: AccountId,
    /// The role that the member will have.
    pub role: MemberRole,
    /// Who is invited, if it is sent by mail: following its link proves the address. `None` for a link to pass on, whose
    /// holder must prove an identity.
    pub email: Option<Email>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it stops working.
    pub expires_at: Timestamp,
}

impl Invitation {
    /// How long it works.
    pub const LIFETIME: Duration = Duration::from_secs(7 * 24 * 60 * 60);

    /// Whether it works.
    #[must_use]
    pub fn is_live(&self, now: Timestamp) -> bool {
        now < self.expires_at
    }
}

/// A sign-in that was begun by email or with a wallet. A wallet must also sign a text that names the token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignInProof {
    /// The hash of the link's token.
    pub token: LinkHash,
    /// Who signs in.
    pub identity: Identity,
    /// The token of the invitation that it accepts, if any.
    pub invitation: Option<LinkHash>,
    /// When it stops working.
    pub expires_at: Timestamp,
}

impl SignInProof {
    /// How long it works.
    pub const LIFETIME: Duration = Duration::from_secs(15 * 60);

    /// Whether it works.
    #[must_use]
    pub fn is_live(&self, now: Timestamp) -> bool {
        now < self.expires_at
    }

    /// The text that a wallet signs. It names the service, the effect of signing, and the hash of the token: a
    /// signature is useless without the token, and for any other sign-in.
    #[must_use]
    pub fn message(&self, service: &str) -> String {
        format!(
            "{service} asks you to sign in with your wallet.\n\
             \n\
             Signing this signs a browser in to an account that the wallet belongs to. It moves no money.\n\
             \n\
             Address: {}\n\
             Nonce: {}\n\
             Expires: {}",
            self.identity,
            hex::encode(self.token.as_bytes()),
            self.expires_at
        )
    }
}

/// An account that an identity can sign in to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignInChoice {
    /// The account.
    pub account: AccountId,
    /// Its name.
    pub name: AgentName,
    /// The identity, in the account's spelling.
    pub identity: Identity,
    /// The member that it signs in as; `None` for the owner of the address or wallet of the account itself.
    pub member: Option<Member>,
}

/// Who did something to an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccountActor {
    /// The holder of a key.
    Key {
        /// The key.
        id: KeyId,
        /// Its name.
        name: KeyName,
        /// Whether it is the account's first one.
        is_first: bool,
    },
    /// A member.
    Member(Member),
}

impl AccountActor {
    /// The id of the key or member.
    #[must_use]
    pub fn id(&self) -> String {
        match self {
            Self::Key { id, .. } => id.to_string(),
            Self::Member(member) => member.id.to_string(),
        }
    }

    /// The name of the key, or the identity of the member.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Key { name, .. } => name.to_string(),
            Self::Member(member) => member.identity.to_string(),
        }
    }
}

/// An entry of an account's own log: its members' actions, and changes of its members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountAction {
    /// The account.
    pub account: AccountId,
    /// The entry's number, counted up within the account from 1.
    pub number: i64,
    /// When.
    pub at: Timestamp,
    /// The id of the member or key.
    pub actor: String,
    /// Its identity or name at that time.
    pub actor_name: String,
    /// The name of the call.
    pub action: String,
    /// The subject: the values in its path, or a member.
    pub subject: String,
    /// The HTTP status of the response; `None` while it is not known, or if the server stopped before it was.
    pub status: Option<u16>,
}

impl AccountAction {
    /// How many of the newest entries of an account are kept.
    pub const MAX_PER_ACCOUNT: i64 = 1_000;
}

/// An entry to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAccountAction {
    /// When.
    pub at: Timestamp,
    /// Who.
    pub actor: AccountActor,
    /// The name of the call.
    pub action: String,
    /// The subject.
    pub subject: String,
    /// The status, if it is known.
    pub status: Option<u16>,
}

impl NewAccountAction {
    /// The entry with its number.
    #[must_use]
    pub fn numbered(self, account: AccountId, number: i64) -> AccountAction {
        let Self { at, actor, action, subject, status } = self;
        AccountAction { account, number, at, actor: actor.id(), actor_name: actor.name(), action, subject, status }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_are_addresses_of_mailboxes_or_wallets() {
        // text, key
        let table = [
            ("Jo@Example.com", Some("jo@example.com")),
            ("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", Some("0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed")),
            ("0x5AAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", None),
            ("jo@", None),
            ("", None),
        ];
        for (text, key) in table {
            assert_eq!(text.parse::<Identity>().ok().map(|identity| identity.key()).as_deref(), key, "{text}");
        }
    }

    #[test]
    fn a_text_to_sign_is_of_one_sign_in() {
        let proof = |token: u8| SignInProof {
            token: LinkHash::from_bytes([token; 32]),
            identity: Identity::Wallet(Address::from_bytes([1; 20])),
            invitation: None,
            expires_at: Timestamp::from_unix_millis(0),
        };
        let text = proof(7).message("Acme");
        assert!(text.starts_with("Acme asks you to sign in") && text.contains(&"07".repeat(32)), "{text}");
        assert_ne!(text, proof(8).message("Acme"));
    }
}
