//! Whether a sign-in is for this service, and now.

use std::time::Duration;

use metering_core::clock::Timestamp;

use crate::wire::x402::sign_in::message::SignIn;
use crate::wire::x402::sign_in::site::Site;

/// How old a message may be.
const MAX_AGE: Duration = Duration::from_secs(5 * 60);

/// Why a sign-in is refused. The reference treats such a request as unpaid: it gets a 402.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignInFault {
    /// It is for another service.
    #[error("the wallet signed in to another service; sign for the domain {expected} and a URI of it")]
    Site {
        /// This service.
        expected: String,
    },
    /// Wallets of its chain cannot sign in.
    #[error("wallets on eip155:{chain_id} cannot sign in; use one of supportedChains")]
    Chain {
        /// The chain.
        chain_id: u64,
    },
    /// A time cannot be read.
    #[error("{field} must be a time such as 2026-11-21T12:00:00Z")]
    Time {
        /// Which one.
        field: &'static str,
    },
    /// It is too old, has expired, or is not valid yet.
    #[error("the sign-in is not valid at this time; sign the message of a new 402 within 5 minutes")]
    NotNow,
}

impl SignIn {
    /// Checks that the message is for this service, a chain whose wallets may sign in, and this time. The caller checks
    /// its signature and its nonce.
    ///
    /// # Errors
    /// The first check that fails.
    pub fn check(&self, site: &Site, chain_ids: &[u64], now: Timestamp) -> Result<(), SignInFault> {
        if self.domain != site.domain() || !site.has(&self.uri) {
            return Err(SignInFault::Site { expected: site.domain().to_owned() });
        }
        let chain_id = self.chain_id();
        if !chain_ids.contains(&chain_id) {
            return Err(SignInFault::Chain { chain_id });
        }
        let time = |field, text: &str| text.parse::<Timestamp>().map_err(|_| SignInFault::Time { field });
        let optional = |field, text: &Option<String>| text.as_deref().map(|text| time(field, text)).transpose();
        let issued_at = time("issuedAt", &self.issued_at)?;
        let expires = optional("expirationTime", &self.expiration_time)?;
        let not_before = optional("notBefore", &self.not_before)?;
        // Whatever the clocks of nodes are: the specification refuses messages of the future.
        let fits = issued_at <= now
            && now <= issued_at.saturating_add(MAX_AGE)
            && expires.is_none_or(|expires| now < expires)
            && not_before.is_none_or(|not_before| not_before <= now);
        if fits { Ok(()) } else { Err(SignInFault::NotNow) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::wire::vectors::{NOW, header_of, mutated, vector};

    fn check_at(payload: &Value, site: &str, chain_ids: &[u64], seconds: i64) -> Result<(), SignInFault> {
        let now = Timestamp::from_unix_millis((NOW + seconds) * 1_000);
        SignIn::parse(&header_of(payload)).unwrap().check(&site.parse().unwrap(), chain_ids, now)
    }

    fn check(field: &str, value: Value, seconds: i64) -> Result<(), SignInFault> {
        let payload = mutated(&vector("siwx")["payload"], &format!("/{field}"), value);
        check_at(&payload, "https://api.example.com", &[8_453, 84_532], seconds)
    }

    #[test]
    fn a_sign_in_is_for_one_service_and_its_chains() {
        let payload = vector("siwx")["payload"].clone();
        let site = "https://api.example.com";
        assert_eq!(check_at(&payload, site, &[84_532], 0), Ok(()));
        assert_eq!(check_at(&payload, site, &[1], 0), Err(SignInFault::Chain { chain_id: 84_532 }));
        for other in ["https://api.example.org", "http://api.example.com", "https://api.example.com:8443"] {
            assert!(matches!(check_at(&payload, other, &[84_532], 0), Err(SignInFault::Site { .. })), "{other}");
        }
        for (field, value) in [("domain", "evil.example"), ("uri", "https://evil.example/"), ("uri", "/v1")] {
            assert!(matches!(check(field, json!(value), 0), Err(SignInFault::Site { .. })), "{field}");
        }
    }

    #[test]
    fn a_sign_in_is_valid_for_five_minutes_at_most() {
        let none = || json!(null);
        let table = [
            (-1, Err(SignInFault::NotNow)),
            (0, Ok(())),
            (299, Ok(())),
            (300, Ok(())),
            (301, Err(SignInFault::NotNow)),
        ];
        for (seconds, result) in table {
            assert_eq!(check("expirationTime", none(), seconds), result, "{seconds}");
        }
        assert_eq!(check("expirationTime", json!("2025-06-15T15:06:50Z"), 9), Ok(()));
        assert_eq!(check("expirationTime", json!("2025-06-15T15:06:50Z"), 10), Err(SignInFault::NotNow));
        assert_eq!(check("notBefore", json!("2025-06-15T15:06:50Z"), 9), Err(SignInFault::NotNow));
        assert_eq!(check("notBefore", json!("2025-06-15T15:06:50Z"), 10), Ok(()));
        for field in ["issuedAt", "expirationTime", "notBefore"] {
            assert_eq!(check(field, json!("soon"), 0), Err(SignInFault::Time { field }));
        }
    }
}
