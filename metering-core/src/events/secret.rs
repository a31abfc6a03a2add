//! Secrets that webhooks are signed with.
//!
//! Unlike the secrets in [`crate::secret`], which are stored as a hash, these are needed in plain text for each
//! signature. So stores keep them, and a copy of a store can sign webhooks.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use crate::random::Randomness;

const PREFIX: &str = "whsec_";
/// As long as the output of SHA-256: more would not make signatures harder to forge.
const GENERATED_BYTES: usize = 32;
/// The specification's limits: 192 and 512 bits.
const MIN_BYTES: usize = 24;
const MAX_BYTES: usize = 64;
/// The most base64 digits that a secret can have, with padding.
const MAX_DIGITS: usize = MAX_BYTES.div_ceil(3) * 4;

/// The secret of a webhook, shared with its receiver: `whsec_` and the base64 (RFC 4648, section 4) of 24 to 64 bytes.
///
/// It is wiped from memory on drop and never printed; [`WebhookSecret::expose`] is the only way to read it.
///
/// ```
/// use metering_core::SystemRandomness;
/// use metering_core::events::WebhookSecret;
///
/// let secret = WebhookSecret::generate(&SystemRandomness);
/// assert_eq!(WebhookSecret::parse(&secret.expose())?.expose(), secret.expose());
/// assert_eq!(format!("{secret:?}"), "WebhookSecret(whsec_…)");
/// assert!(WebhookSecret::parse("whsec_c2hvcnQ=").is_err());
/// # Ok::<(), metering_core::events::MalformedWebhookSecret>(())
/// ```
#[derive(Clone)]
pub struct WebhookSecret(Zeroizing<Vec<u8>>);

/// Why a text is not the secret of a webhook. It never repeats the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MalformedWebhookSecret {
    /// It does not start like a secret.
    #[error("a webhook secret starts with whsec_")]
    Prefix,
    /// The rest is not base64 with padding.
    #[error("after whsec_, a webhook secret must be standard base64 with padding")]
    Base64,
    /// It has too few or too many bytes.
    #[error("a webhook secret must have {MIN_BYTES} to {MAX_BYTES} bytes before they are encoded")]
    Length,
}

impl WebhookSecret {
    /// Generates a new one, of 32 random bytes.
    #[must_use]
    pub fn generate(randomness: &dyn Randomness) -> Self {
        let mut bytes = Zeroizing::new(vec![0; GENERATED_BYTES]);
        randomness.fill(&mut bytes);
        Self(bytes)
    }

    /// Parses one.
    ///
    /// # Errors
    /// When the text is not such a secret.
    pub fn parse(text: &str) -> Result<Self, MalformedWebhookSecret> {
        let digits = text.strip_prefix(PREFIX).ok_or(MalformedWebhookSecret::Prefix)?;
        if digits.len() > MAX_DIGITS {
            return Err(MalformedWebhookSecret::Length);
        }
        // Large enough from the start: growing it would leave a copy in memory.
        let mut bytes = Zeroizing::new(vec![0; base64::decoded_len_estimate(MAX_DIGITS)]);
        let decoded = STANDARD.decode_slice(digits, &mut bytes).map_err(|_| MalformedWebhookSecret::Base64)?;
        bytes.truncate(decoded);
        if (MIN_BYTES..=MAX_BYTES).contains(&decoded) { Ok(Self(bytes)) } else { Err(MalformedWebhookSecret::Length) }
    }

    /// Its text, to store it, and to show it to its owner.
    #[must_use]
    pub fn expose(&self) -> Zeroizing<String> {
        let mut text = Zeroizing::new(String::with_capacity(PREFIX.len() + MAX_DIGITS));
        text.push_str(PREFIX);
        STANDARD.encode_string(self.0.as_slice(), &mut text);
        text
    }

    /// The key of its signatures.
    pub(crate) fn key(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WebhookSecret({PREFIX}…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SystemRandomness;
    use proptest::prelude::*;

    /// This must never change: receivers keep the secrets they were given.
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    fn text(bytes: usize) -> String {
        format!("{PREFIX}{}", STANDARD.encode(vec![7; bytes]))
    }

    #[test]
    fn the_format_of_issued_secrets_never_changes() {
        let secret = WebhookSecret::parse(SECRET).unwrap();
        assert_eq!(hex::encode(secret.key()), "31f290f6bf06298aab4f08d43c3f082cf648a362da2da4b0");
        assert_eq!(secret.expose().as_str(), SECRET);
    }

    #[test]
    fn generated_secrets_differ_parse_and_are_not_printed() {
        let (a, b) = (WebhookSecret::generate(&SystemRandomness), WebhookSecret::generate(&SystemRandomness));
        assert_eq!(a.key().len(), 32);
        assert_ne!(a.key(), b.key());
        assert_eq!(WebhookSecret::parse(&a.expose()).unwrap().key(), a.key());
        assert_eq!(format!("{a:?}"), "WebhookSecret(whsec_…)");
    }

    #[test]
    fn the_text_never_grows_in_memory() {
        for bytes in [24, 32, 64] {
            let text = WebhookSecret::parse(&text(bytes)).unwrap().expose();
            assert_eq!(text.capacity(), PREFIX.len() + MAX_DIGITS, "{bytes}");
        }
    }

    #[test]
    fn only_secrets_of_the_specification_are_read() {
        let table = [
            (text(23), Some(MalformedWebhookSecret::Length)),
            (text(24), None),
            (text(25), None),
            (text(63), None),
            (text(64), None),
            (text(65), Some(MalformedWebhookSecret::Length)),
            (text(66), Some(MalformedWebhookSecret::Length)),
            (text(67), Some(MalformedWebhookSecret::Length)),
            (text(1_000), Some(MalformedWebhookSecret::Length)),
            (SECRET[PREFIX.len()..].to_owned(), Some(MalformedWebhookSecret::Prefix)),
            (SECRET.replace("whsec_", "WHSEC_"), Some(MalformedWebhookSecret::Prefix)),
            (String::new(), Some(MalformedWebhookSecret::Prefix)),
            (PREFIX.to_owned(), Some(MalformedWebhookSecret::Length)),
            (format!("{SECRET}="), Some(MalformedWebhookSecret::Base64)),
            (format!("{SECRET} "), Some(MalformedWebhookSecret::Base64)),
            (text(25).replace('=', ""), Some(MalformedWebhookSecret::Base64)),
            (SECRET.replace('M', "_"), Some(MalformedWebhookSecret::Base64)),
            (SECRET.replace('M', "\u{e4}"), Some(MalformedWebhookSecret::Base64)),
        ];
        for (text, error) in table {
            assert_eq!(WebhookSecret::parse(&text).err(), error, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn garbage_is_refused_without_panic(text in "\\PC{0,120}") {
            prop_assert!(WebhookSecret::parse(&text).is_err());
            let _ = WebhookSecret::parse(&format!("{PREFIX}{text}"));
        }
    }
}
