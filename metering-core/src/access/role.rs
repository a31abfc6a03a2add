//! Roles of members and their rights: the only table of rights.

use crate::access::scope::{Scope, Scopes};
use crate::named_enum::named_enum;

named_enum! {
    /// The role of a member of an account.
    pub enum MemberRole {
        /// Everything, including members and the account's first key.
        Owner = "owner",
        /// Read, buy, and change the details on receipts.
        Billing = "billing",
        /// Read, and make and change keys and webhooks.
        Developer = "developer",
        /// Read.
        Viewer = "viewer",
    }
    parsed as MemberRoleError
}

/// The text names no role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be owner, billing, developer or viewer")]
pub struct MemberRoleError;

named_enum! {
    /// The kind of action that a member's request performs.
    pub enum Right {
        /// Reads.
        Read = "read",
        /// Makes or changes keys or webhooks.
        Develop = "develop",
        /// Buys, or changes alerts and billing details.
        Pay = "pay",
        /// Changes members, the first key or other accounts.
        Own = "own",
    }
}

impl MemberRole {
    /// Whether members with this role may do this.
    ///
    /// ```
    /// use metering_core::access::{MemberRole, Right};
    ///
    /// assert!(MemberRole::Developer.may(Right::Develop));
    /// assert!(!MemberRole::Developer.may(Right::Pay));
    /// ```
    #[must_use]
    pub const fn may(self, right: Right) -> bool {
        match right {
            Right::Read => true,
            Right::Develop => matches!(self, Self::Owner | Self::Developer),
            Right::Pay => matches!(self, Self::Owner | Self::Billing),
            Right::Own => matches!(self, Self::Owner),
        }
    }

    /// Whether members with this role may change something beyond their own sessions and membership.
    #[must_use]
    pub const fn may_change(self) -> bool {
        self.may(Right::Develop) || self.may(Right::Pay)
    }

    /// Whether members with this role may give a key these scopes, or change a key that has them.
    #[must_use]
    pub fn may_give(self, scopes: Scopes) -> bool {
        scopes.iter().all(|scope| self.may(Right::of(scope)))
    }
}

impl Right {
    /// The right that a member needs where a key needs a scope.
    #[must_use]
    pub const fn of(scope: Scope) -> Self {
        match scope {
            Scope::Read => Self::Read,
            Scope::Call | Scope::Manage => Self::Develop,
            Scope::TopUp => Self::Pay,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_has_its_rights() {
        use MemberRole::{Billing, Developer, Owner, Viewer};
        // role, reads, develops, pays, owns
        let table = [
            (Owner, [true, true, true, true]),
            (Billing, [true, false, true, false]),
            (Developer, [true, true, false, false]),
            (Viewer, [true, false, false, false]),
        ];
        for (role, expected) in table {
            assert_eq!(Right::ALL.map(|right| role.may(right)), expected);
            assert_eq!(role.as_str().parse(), Ok(role));
        }
        assert_eq!("admin".parse::<MemberRole>(), Err(MemberRoleError));
    }

    #[test]
    fn nobody_gives_a_key_more_than_his_role_has() {
        // scopes, roles that may give them
        let table = [
            ("call read", [true, false, true, false]),
            ("call read manage", [true, false, true, false]),
            ("read", [true, true, true, true]),
            ("read topup", [true, true, false, false]),
            ("call topup", [true, false, false, false]),
        ];
        for (scopes, expected) in table {
            let scopes: Scopes = scopes.parse().unwrap();
            assert_eq!(MemberRole::ALL.map(|role| role.may_give(scopes)), expected, "{scopes}");
        }
    }
}
