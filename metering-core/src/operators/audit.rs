//! The audit log: who did what, when and why, and the subject before and afterwards.
//!
//! Append-only. An entry is written with its outcome in the action's own transaction, so each is there if and only if the
//! other is. Earlier versions wrote the entry before the action and the outcome after it, so their entries may lack an
//! outcome.

use std::fmt;
use std::str::FromStr;

use crate::clock::Timestamp;
use crate::named_enum::named_enum;
use crate::operators::lists::Period;
use crate::operators::operator::OperatorName;

/// Who takes an action.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Actor {
    /// An operator, over HTTP.
    Operator(OperatorName),
    /// A person who signed in to the console through an OpenID Connect provider: the verified mail address, if there is
    /// one, and the provider's `sub` and `iss`.
    Oidc(String),
    /// A user of the command line with access to the store: the operating system's user name, if known.
    CommandLine(String),
    /// A payment processor, whose payments a checkout reports.
    Processor(String),
}

impl Actor {
    const OPERATOR: &str = "operator:";
    const OIDC: &str = "oidc:";
    const COMMAND_LINE: &str = "command_line:";
    const PROCESSOR: &str = "processor:";
}

impl fmt::Display for Actor {
    /// The actor's name on the wire and in stores: `operator:jo`, `oidc:jo@example.com (2489 at https://id.example.com)`,
    /// `command_line:jo` or `processor:stripe`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operator(name) => write!(f, "{}{name}", Self::OPERATOR),
            Self::Oidc(person) => write!(f, "{}{person}", Self::OIDC),
            Self::CommandLine(user) => write!(f, "{}{user}", Self::COMMAND_LINE),
            Self::Processor(name) => write!(f, "{}{name}", Self::PROCESSOR),
        }
    }
}

impl FromStr for Actor {
    type Err = MalformedActor;

    fn from_str(text: &str) -> Result<Self, MalformedActor> {
        if let Some(name) = text.strip_prefix(Self::OPERATOR) {
            return name.parse().map(Self::Operator).map_err(|_| MalformedActor);
        }
        if let Some(person) = text.strip_prefix(Self::OIDC) {
            return Ok(Self::Oidc(person.to_owned()));
        }
        if let Some(name) = text.strip_prefix(Self::PROCESSOR) {
            return Ok(Self::Processor(name.to_owned()));
        }
        let user = text.strip_prefix(Self::COMMAND_LINE).ok_or(MalformedActor)?;
        Ok(Self::CommandLine(user.to_owned()))
    }
}

/// The text is not an actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not the actor of an audit entry")]
pub struct MalformedActor;

/// The number of an audit entry, increasing with time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AuditId(pub i64);

/// An action, without its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAuditEntry {
    /// When.
    pub at: Timestamp,
    /// Who.
    pub actor: Actor,
    /// The kind of action, such as `account.grant`.
    pub action: String,
    /// The target: an account's id, `plan:ID@CHAIN_ID`, `payment:CHAIN_ID:HASH` or `operator:NAME`.
    pub subject: String,
    /// The reason; empty if the command line gave none.
    pub reason: String,
    /// The parameters of the action, as a JSON object: amounts, notes, limits. Never contains a secret.
    pub request: String,
    /// The subject before, as JSON, if it existed. Never contains a secret.
    pub before: Option<String>,
}

named_enum! {
    /// How an action ended.
    pub enum AuditResult {
        /// It was taken.
        Done = "done",
        /// It was refused; nothing changed.
        Refused = "refused",
        /// The store failed in a way that leaves open whether it was taken. Only in entries of earlier versions.
        Unknown = "unknown",
    }
}

/// The outcome of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditOutcome {
    /// When.
    pub at: Timestamp,
    /// How it ended.
    pub result: AuditResult,
    /// Why it was refused; empty if it was taken.
    pub detail: String,
    /// The subject afterwards, as JSON, if the action was taken. Never contains a secret.
    pub after: Option<String>,
}

/// An entry of the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// Its number.
    pub id: AuditId,
    /// The action.
    pub entry: NewAuditEntry,
    /// Its outcome; `None` if an earlier version wrote the entry and stopped before it wrote one.
    pub outcome: Option<AuditOutcome>,
}

/// Which entries to read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditQuery {
    /// Only entries about this subject.
    pub subject: Option<String>,
    /// Only entries before this one.
    pub before: Option<AuditId>,
    /// Only entries about this kind of action, such as `account.grant`.
    pub action: Option<String>,
    /// Only entries written in this period.
    pub at: Period,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actors_are_read_as_they_are_written() {
        let jo: OperatorName = "jo".parse().unwrap();
        let [root, nobody] = ["root", ""].map(|user| Actor::CommandLine(user.to_owned()));
        let person = Actor::Oidc("jo@example.com (2489 at https://id.example.com)".to_owned());
        for actor in [Actor::Operator(jo), person, root, nobody, Actor::Processor("stripe".to_owned())] {
            assert_eq!(actor.to_string().parse(), Ok(actor));
        }
        for text in ["", "jo", "operator:", "operator:a b"] {
            assert_eq!(text.parse::<Actor>(), Err(MalformedActor), "{text:?}");
        }
    }
}
