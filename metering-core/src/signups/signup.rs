//! Free signup: a session that a person approves in a browser, modelled on RFC 8628.
//!
//! The client that begins a session holds its token, a secret. The person who approves it types its user code, or
//! follows a link with it. The code is short, but not a secret: after the approval, the key goes to the holder of the
//! token.

mod error;
mod token;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

pub use error::SignupError;
pub use token::{MalformedToken, SessionHash, SessionToken, SessionTokenKind};

use crate::access::account::AgentName;
use crate::access::email::Email;
use crate::clock::Timestamp;
use crate::random::Randomness;

/// A signup session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignupSession {
    /// The hash of the token that redeems it.
    pub token: SessionHash,
    /// The code that a person types to approve it.
    pub user_code: UserCode,
    /// The owner's email address.
    pub email: Email,
    /// The account's future name.
    pub agent_name: AgentName,
    /// When it began.
    pub created_at: Timestamp,
    /// When it expires. Until then it can be approved.
    pub expires_at: Timestamp,
    /// When it was approved, if it was.
    pub approved_at: Option<Timestamp>,
}

impl SignupSession {
    /// How long after its expiry a session is kept. Until then an approved one can be redeemed, and the status of any
    /// other is "expired".
    pub const RETENTION: Duration = Duration::from_secs(24 * 60 * 60);

    /// Whether it can be approved.
    #[must_use]
    pub fn is_pending(&self, now: Timestamp) -> bool {
        self.approved_at.is_none() && now < self.expires_at
    }

    /// Whether it can be redeemed.
    #[must_use]
    pub fn is_redeemable(&self, now: Timestamp) -> bool {
        self.approved_at.is_some() && now < self.expires_at.saturating_add(Self::RETENTION)
    }
}

/// The letters of user codes: no vowels, so codes spell no words, and no letters that are easily confused (RFC 8628,
/// section 6.1).
const CODE_LETTERS: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";
const CODE_LENGTH: usize = 8;

/// The code that a person types: `BCDF-GHJK`, 34 bits. Read in any case, with or without the hyphen.
///
/// ```
/// use metering_core::SystemRandomness;
/// use metering_core::signups::UserCode;
///
/// let code = UserCode::generate(&SystemRandomness);
/// let typed = code.to_string().to_lowercase().replace('-', " ");
/// assert_eq!(typed.parse(), Ok(code));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserCode([u8; CODE_LENGTH]);

/// The text is not a user code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a code such as BCDF-GHJK")]
pub struct MalformedCode;

impl UserCode {
    /// A new code; all codes are equally likely.
    #[must_use]
    pub fn generate(randomness: &dyn Randomness) -> Self {
        // The largest multiple of 20 in a byte. Bytes from there on would make the first letters more likely.
        const FAIR_BELOW: u8 = 240;
        let mut letters = [0; CODE_LENGTH];
        let mut filled = 0;
        while filled < CODE_LENGTH {
            let mut pool = [0_u8; 16];
            randomness.fill(&mut pool);
            for byte in pool.into_iter().filter(|byte| *byte < FAIR_BELOW).take(CODE_LENGTH - filled) {
                letters[filled] = CODE_LETTERS[usize::from(byte % 20)];
                filled += 1;
            }
        }
        Self(letters)
    }
}

impl FromStr for UserCode {
    type Err = MalformedCode;

    fn from_str(text: &str) -> Result<Self, MalformedCode> {
        let mut letters =
            text.bytes().filter(|byte| !matches!(byte, b'-' | b' ')).map(|byte| byte.to_ascii_uppercase());
        let mut code = [0; CODE_LENGTH];
        for slot in &mut code {
            *slot = letters.next().filter(|letter| CODE_LETTERS.contains(letter)).ok_or(MalformedCode)?;
        }
        if letters.next().is_some() { Err(MalformedCode) } else { Ok(Self(code)) }
    }
}

impl fmt::Display for UserCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (slot, letter) in self.0.iter().enumerate() {
            if slot == CODE_LENGTH / 2 {
                f.write_str("-")?;
            }
            write!(f, "{}", char::from(*letter))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::random::SystemRandomness;

    #[test]
    fn codes_are_read_as_people_type_them() {
        let code: UserCode = "BCDF-GHJK".parse().unwrap();
        for text in ["bcdf-ghjk", "BCDFGHJK", " bcdf ghjk ", "b-c-d-f-g-h-j-k"] {
            assert_eq!(text.parse(), Ok(code), "{text:?}");
        }
        assert_eq!(code.to_string(), "BCDF-GHJK");
        for text in ["", "BCDF", "BCDF-GHJ", "BCDF-GHJKL", "ABCD-EFGH", "BCDF-GHJ1", "BCDF_GHJK", "ßCDF-GHJK"] {
            assert_eq!(text.parse::<UserCode>(), Err(MalformedCode), "{text:?}");
        }
    }

    #[test]
    fn generated_codes_parse_and_use_every_letter() {
        let mut letters = HashSet::new();
        for _ in 0..500 {
            let code = UserCode::generate(&SystemRandomness);
            assert_eq!(code.to_string().parse(), Ok(code));
            letters.extend(code.0);
        }
        assert_eq!(letters.len(), CODE_LETTERS.len());
    }

    #[test]
    fn tokens_parse_differ_and_are_not_printed() {
        let (a, b) = (SessionToken::generate(&SystemRandomness), SessionToken::generate(&SystemRandomness));
        assert_ne!(a.hash(), b.hash());
        assert_eq!(SessionToken::parse(a.expose()).unwrap().hash(), a.hash());
        assert!(!format!("{a:?} {:?}", a.hash()).contains(&a.expose()[4..12]));
        for text in ["", "sst_", "sqn_0123456789012345678901234567890123456789012", &format!("{}!", a.expose())] {
            assert!(SessionToken::parse(text).is_err(), "{text}");
        }
    }
}
