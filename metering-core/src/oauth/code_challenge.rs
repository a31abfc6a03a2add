//! PKCE (RFC 7636), with S256 only: the client that redeems a code must have begun the authorization.

use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use crate::text_traits::text_traits;

/// The SHA-256 of a code verifier, as 43 digits of base64url.
///
/// ```
/// use metering_core::oauth::CodeChallenge;
///
/// // The example of RFC 7636, appendix B.
/// let challenge: CodeChallenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM".parse()?;
/// assert!(challenge.is_met_by("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"));
/// # Ok::<(), metering_core::oauth::CodeChallengeError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeChallenge(String);

/// The text is not a challenge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be the base64url of a SHA-256: 43 characters of A-Z a-z 0-9 - _")]
pub struct CodeChallengeError;

impl CodeChallenge {
    const DIGITS: usize = 43;

    /// Whether it is the challenge of this verifier (43 to 128 unreserved characters).
    #[must_use]
    pub fn is_met_by(&self, verifier: &str) -> bool {
        let is_unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        let is_verifier = (43..=128).contains(&verifier.len()) && verifier.bytes().all(is_unreserved);
        is_verifier && URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes())) == self.0
    }
}

impl FromStr for CodeChallenge {
    type Err = CodeChallengeError;

    fn from_str(text: &str) -> Result<Self, CodeChallengeError> {
        let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        let is_challenge = text.len() == Self::DIGITS && text.bytes().all(is_digit);
        if is_challenge { Ok(Self(text.to_owned())) } else { Err(CodeChallengeError) }
    }
}

text_traits!(CodeChallenge: Display);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_is_met_by_its_verifier_alone() {
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        let challenge: CodeChallenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM".parse().unwrap();
        assert!(challenge.is_met_by(verifier));
        let plain: CodeChallenge = verifier.parse().unwrap();
        assert!(!plain.is_met_by(verifier), "the method plain is not supported");
        for wrong in ["", &verifier[1..], &verifier.to_lowercase(), &format!("{verifier}="), &"a".repeat(129)] {
            assert!(!challenge.is_met_by(wrong), "{wrong}");
        }
    }

    #[test]
    fn a_challenge_has_43_digits() {
        for text in ["", "x", &"x".repeat(42), &"x".repeat(44), &"=".repeat(43), &"ß".repeat(43)] {
            assert!(text.parse::<CodeChallenge>().is_err(), "{text}");
        }
    }
}
