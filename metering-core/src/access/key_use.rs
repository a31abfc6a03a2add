//! Whether a key may be used for something, now and from there: the rule that charges and all other requests share.

use std::net::IpAddr;

use crate::access::key_terms::KeyTerms;
use crate::access::role::MemberRole;
use crate::access::scope::Scope;
use crate::clock::Timestamp;
use crate::wire::ErrorCode;

/// The intended use of a key.
#[derive(Debug, Clone, Copy)]
pub struct KeyUse<'u> {
    /// The required scope; `None` if every live key may do it.
    pub scope: Option<Scope>,
    /// Method and template of the route to call, for [`Scope::Call`].
    pub route: Option<(&'u str, &'u str)>,
    /// Where the request comes from, if that is known.
    pub address: Option<IpAddr>,
    /// When.
    pub at: Timestamp,
}

/// Why a key may not be used for something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyRefusal {
    /// It, or a parent key, is disabled, was revoked or was reported as leaked. Callers cannot distinguish this from a
    /// key that never existed.
    #[error("this API key is not live")]
    NotLive,
    /// It has expired.
    #[error("this API key, or a parent key, expired at {at}")]
    Expired {
        /// When.
        at: Timestamp,
    },
    /// It may not be used from this address.
    #[error("this API key, or a parent key, may not be used from {}", from(.address.as_ref()))]
    Network {
        /// Where the request came from, if that is known.
        address: Option<IpAddr>,
    },
    /// It lacks a scope.
    #[error("this API key, or a parent key, lacks the scope '{scope}'")]
    Scope {
        /// Which.
        scope: Scope,
    },
    /// It may not call this route.
    #[error("this API key, or a parent key, may not call this route")]
    Route,
    /// Only the account's first key may do this.
    #[error("only the account's first key may do this")]
    NotFirst,
    /// The member's role has no right to this.
    #[error("your role in this account, {role}, may not do this")]
    Role {
        /// Which.
        role: MemberRole,
    },
}

impl KeyRefusal {
    /// The error code that clients get.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::NotLive => ErrorCode::Unauthorized,
            Self::Expired { .. } => ErrorCode::KeyExpired,
            Self::Network { .. } => ErrorCode::KeyNetwork,
            Self::Scope { .. } | Self::Route | Self::NotFirst | Self::Role { .. } => ErrorCode::KeyScope,
        }
    }

    /// The error message: the problem, and how to fix it.
    pub(crate) fn advice(&self) -> String {
        let next = match self {
            Self::Expired { .. } => "Use a newer key.",
            Self::Network { .. } => "Call from one of its networks, or use another key.",
            Self::Role { .. } => "Ask an owner of the account for another role.",
            _ => "Use another key, or ask its owner to change this one.",
        };
        format!("{self}. {next}")
    }
}

fn from(address: Option<&IpAddr>) -> String {
    address.map_or_else(|| "an address that is not known".to_owned(), IpAddr::to_string)
}

impl KeyUse<'_> {
    /// Checks one key of a chain. Every key of the chain must allow a use.
    ///
    /// Refused, in this order: not live, expired, wrong network, no scope, wrong route.
    ///
    /// # Errors
    /// The first reason.
    pub fn check(&self, terms: &KeyTerms, is_live: bool) -> Result<(), KeyRefusal> {
        if !is_live || terms.disabled {
            return Err(KeyRefusal::NotLive);
        }
        if let Some(at) = terms.expires_at.filter(|at| *at <= self.at) {
            return Err(KeyRefusal::Expired { at });
        }
        if !terms.networks.allow(self.address) {
            return Err(KeyRefusal::Network { address: self.address });
        }
        if let Some(scope) = self.scope.filter(|scope| !terms.scopes.has(*scope)) {
            return Err(KeyRefusal::Scope { scope });
        }
        match self.route {
            Some((method, template)) if !terms.routes.allow(method, template) => Err(KeyRefusal::Route),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::scope::Scopes;

    #[test]
    fn the_first_reason_refuses() {
        let (now, address) = (Timestamp::from_unix_millis(1_000), "192.0.2.1".parse().ok());
        let terms = KeyTerms {
            scopes: Scopes::of([Scope::Read]).unwrap(),
            routes: "/a".parse().unwrap(),
            networks: "10.0.0.0/8".parse().unwrap(),
            expires_at: Some(now),
            ..KeyTerms::first()
        };
        let live = KeyTerms { expires_at: Some(Timestamp::from_unix_millis(1_001)), ..terms.clone() };
        let near = KeyTerms { networks: "192.0.2.0/24".parse().unwrap(), ..live.clone() };
        let caller = KeyTerms { scopes: Scopes::ALL, ..near.clone() };
        let wider = KeyTerms { routes: "/b".parse().unwrap(), ..caller.clone() };
        let table = [
            (&terms, false, Err(KeyRefusal::NotLive)),
            (&KeyTerms { disabled: true, ..terms.clone() }, true, Err(KeyRefusal::NotLive)),
            (&terms, true, Err(KeyRefusal::Expired { at: now })),
            (&live, true, Err(KeyRefusal::Network { address })),
            (&near, true, Err(KeyRefusal::Scope { scope: Scope::Call })),
            (&caller, true, Err(KeyRefusal::Route)),
            (&wider, true, Ok(())),
        ];
        for (terms, is_live, expected) in table {
            let call = KeyUse { scope: Some(Scope::Call), route: Some(("GET", "/b")), address, at: now };
            assert_eq!(call.check(terms, is_live), expected, "{terms:?}");
        }
    }
}
