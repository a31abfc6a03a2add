//! Signatures of webhooks: HMAC-SHA256, version `v1` of the specification.
//!
//! The crate `standardwebhooks` could do this too: 150 lines, from the authors of the specification. But it brings
//! another base64, another HMAC and the `time` crate, refuses bodies that are not UTF-8, does not wipe its key from
//! memory, accepts secrets of any length, and signs with one secret only. `hmac` and `sha2` are dependencies already
//! (through k256), so signing takes a few lines here. Tests have the vectors of its authors.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::clock::Timestamp;
use crate::events::secret::WebhookSecret;

/// The value of the header `webhook-signature`: a signature with each secret, separated by spaces. After a rotation
/// there are two for a while, and the receiver accepts either.
///
/// `timestamp` is the time of the attempt, not of the event; its whole seconds are signed, as `webhook-timestamp` has
/// them. `id` is the value of `webhook-id`. Ids must not have a full stop, since full stops separate the signed parts;
/// senders make the ids, so they are not checked here. `body` is the request body as sent, byte for byte.
///
/// ```
/// use metering_core::Timestamp;
/// use metering_core::events::{WebhookSecret, signature};
///
/// let secret = WebhookSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")?;
/// let at = Timestamp::from_unix_millis(1_614_265_330_000);
/// assert_eq!(
///     signature(&[&secret], "msg_p5jXN8AQM9LWM0D4loKWxJek", at, br#"{"test": 2432232314}"#),
///     "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
/// );
/// # Ok::<(), metering_core::events::MalformedWebhookSecret>(())
/// ```
#[must_use]
pub fn signature(secrets: &[&WebhookSecret], id: &str, timestamp: Timestamp, body: &[u8]) -> String {
    let signatures: Vec<_> = secrets.iter().map(|secret| sign(secret, id, timestamp, body)).collect();
    signatures.join(" ")
}

fn sign(secret: &WebhookSecret, id: &str, timestamp: Timestamp, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.key()).expect("HMAC takes keys of any length");
    mac.update(format!("{id}.{}.", timestamp.unix_seconds()).as_bytes());
    mac.update(body);
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(text: &str) -> WebhookSecret {
        WebhookSecret::parse(text).unwrap()
    }

    fn at(unix_seconds: i64) -> Timestamp {
        Timestamp::from_unix_millis(unix_seconds * 1_000)
    }

    /// The vectors in the tests of the specification's libraries for JavaScript and Rust.
    #[test]
    fn signatures_are_those_of_the_specifications_libraries() {
        // secret, id, timestamp, body, signature
        let table = [
            (
                "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
                "msg_p5jXN8AQM9LWM0D4loKWxJek",
                1_614_265_330,
                r#"{"test": 2432232314}"#,
                "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
            ),
            (
                "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD",
                "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk",
                1_649_367_553,
                r#"{"email":"test@example.com","username":"test_user"}"#,
                "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=",
            ),
        ];
        for (secret_text, id, seconds, body, expected) in table {
            assert_eq!(signature(&[&secret(secret_text)], id, at(seconds), body.as_bytes()), expected, "{id}");
        }
    }

    #[test]
    fn each_secret_signs_in_the_order_given() {
        let new = secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let old = secret("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD");
        let with = |secrets: &[&WebhookSecret]| signature(secrets, "msg_1", at(1), b"{}");
        assert_eq!(with(&[&new, &old]), format!("{} {}", with(&[&new]), with(&[&old])));
        assert_ne!(with(&[&new]), with(&[&old]));
    }

    #[test]
    fn everything_that_is_sent_is_signed() {
        let secret = secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let signed = |id, millis, body| signature(&[&secret], id, Timestamp::from_unix_millis(millis), body);
        let original = signed("msg_1", 1_000, b"{}");
        assert_eq!(signed("msg_1", 1_999, b"{}"), original, "the header has whole seconds");
        assert_ne!(signed("msg_2", 1_000, b"{}"), original);
        assert_ne!(signed("msg_1", 2_000, b"{}"), original);
        assert_ne!(signed("msg_1", 1_000, b"{ }"), original);
        assert!(signed("msg_1", 1_000, &[0xFF, 0x00]).starts_with("v1,"), "bodies need not be text");
    }
}
