//! A person who signed in, as the provider's ID token describes them.

use std::fmt;

use metering_admin::wire::OperatorDocument;
use metering_core::Timestamp;
use metering_core::operators::Role;

/// A person. `sub` and `iss` together identify a person permanently; an email address may later belong to another
/// person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Person {
    issuer: String,
    subject: String,
    /// Only if the provider has verified it.
    email: Option<String>,
    groups: Vec<String>,
}

impl Person {
    /// `None` for a subject that the standard does not allow, or that would be ambiguous in the audit log.
    pub(super) fn new(issuer: &str, subject: &str, email: Option<&str>, groups: Vec<String>) -> Option<Self> {
        let is_plain = |text: &str| (1..=255).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        // An address that is not plain belongs to no entry of the configuration, and is left out.
        let email = email.filter(|email| is_plain(email)).map(str::to_owned);
        is_plain(subject).then(|| Self { issuer: issuer.to_owned(), subject: subject.to_owned(), email, groups })
    }

    pub(super) fn email(&self) -> Option<&str> {
        self.email.as_deref()
    }

    pub(super) fn groups(&self) -> &[String] {
        &self.groups
    }

    /// As an operator.
    pub(super) fn document(&self, role: Role, signed_in_at: Timestamp) -> OperatorDocument {
        OperatorDocument {
            name: self.email.as_ref().unwrap_or(&self.subject).clone(),
            role: role.as_str().to_owned(),
            status: "active".to_owned(),
            created_at: signed_in_at.to_string(),
            revoked_at: None,
        }
    }
}

impl fmt::Display for Person {
    /// For the audit log: `jo@example.com (2489 at https://id.example.com)`, or without the address `2489 at ...`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { issuer, subject, email, .. } = self;
        match email {
            Some(email) => write!(f, "{email} ({subject} at {issuer})"),
            None => write!(f, "{subject} at {issuer}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_named_by_address_subject_and_issuer() {
        let person = |subject, email| Person::new("https://id.example.com", subject, email, Vec::new());
        let shown = |subject, email| person(subject, email).map(|person| person.to_string());
        let table = [
            ("2489", Some("jo@example.com"), Some("jo@example.com (2489 at https://id.example.com)")),
            ("2489", None, Some("2489 at https://id.example.com")),
            ("2489", Some("jo@example.com\n"), Some("2489 at https://id.example.com")),
            ("", None, None),
            ("a b", None, None),
        ];
        for (subject, email, expected) in table {
            assert_eq!(shown(subject, email).as_deref(), expected, "{subject:?} {email:?}");
        }
    }
}
