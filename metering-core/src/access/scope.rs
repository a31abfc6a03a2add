//! Scopes: the permissions of a key.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::named_enum::named_enum;

named_enum! {
    /// One permission of a key.
    #[non_exhaustive]
    pub enum Scope {
        /// Call metered routes.
        Call = "call",
        /// Read balance, usage, ledger and receipts.
        Read = "read",
        /// Create, change, rotate and delete keys.
        Manage = "manage",
        /// Buy credits for the account, and link wallets to it.
        TopUp = "topup",
    }
}

/// The text names no scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be one or more of call, read, manage and topup")]
pub struct ScopesError;

impl Scope {
    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// The permissions of a key: at least one [`Scope`].
///
/// ```
/// use metering_core::access::{Scope, Scopes};
///
/// let scopes: Scopes = "call read".parse()?;
/// assert_eq!(scopes, Scopes::default());
/// assert!(scopes.has(Scope::Read) && !scopes.has(Scope::Manage));
/// assert!(scopes.is_within(Scopes::ALL));
/// # Ok::<(), metering_core::access::ScopesError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Scopes(u8);

impl Scopes {
    /// All scopes, as the first key of an account has.
    pub const ALL: Self = Self(0b1111);

    /// These scopes.
    ///
    /// # Errors
    /// When there is none.
    pub fn of(scopes: impl IntoIterator<Item = Scope>) -> Result<Self, ScopesError> {
        let bits = scopes.into_iter().fold(0, |bits, scope| bits | scope.bit());
        if bits == 0 { Err(ScopesError) } else { Ok(Self(bits)) }
    }

    /// Whether the scope is among them.
    #[must_use]
    pub const fn has(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// Whether `other` has all of them.
    #[must_use]
    pub const fn is_within(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    /// The scopes, in the order of [`Scope::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |scope| self.has(*scope))
    }
}

impl Default for Scopes {
    /// Call and read.
    fn default() -> Self {
        Self(Scope::Call.bit() | Scope::Read.bit())
    }
}

impl fmt::Display for Scopes {
    /// Their names, separated by spaces, as stores keep them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.iter().map(Scope::as_str).collect();
        f.write_str(&names.join(" "))
    }
}

impl fmt::Debug for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl FromStr for Scopes {
    type Err = ScopesError;

    /// Names separated by spaces or commas.
    fn from_str(text: &str) -> Result<Self, ScopesError> {
        let names = text.split([' ', ',']).filter(|name| !name.is_empty());
        let scope = |name: &str| Scope::ALL.into_iter().find(|scope| scope.as_str() == name).ok_or(ScopesError);
        Self::of(names.map(scope).collect::<Result<Vec<_>, _>>()?)
    }
}

impl Serialize for Scopes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().map(Scope::as_str))
    }
}

impl<'de> Deserialize<'de> for Scopes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let names = Vec::<String>::deserialize(deserializer)?;
        names.join(" ").parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_in_any_order_and_printed_in_one() {
        let table = [
            ("call", Ok("call")),
            ("read call", Ok("call read")),
            ("topup,manage,read,call", Ok("call read manage topup")),
            ("call call", Ok("call")),
            ("", Err(ScopesError)),
            ("admin", Err(ScopesError)),
            ("call, CALL", Err(ScopesError)),
        ];
        for (text, expected) in table {
            let parsed = text.parse::<Scopes>().map(|scopes| scopes.to_string());
            assert_eq!(parsed, expected.map(str::to_owned), "{text}");
        }
        assert_eq!(Scopes::of(Scope::ALL), Ok(Scopes::ALL));
    }
}
