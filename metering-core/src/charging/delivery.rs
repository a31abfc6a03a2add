//! Idempotency keys of metered routes: a retry is not charged again, and a key buys one response.
//!
//! The key is stored with its charge, in the same transaction, like the request id of a deduction. Responses are not
//! stored with it, so a retry cannot get the first response, unless a gateway keeps it for a while (`replay`). Instead
//! it is forwarded again, uncharged, unless the first attempt is known to have been delivered. That covers a commit
//! with an unknown outcome, a crash, and a connection that broke before the upstream responded. Once a response has
//! been passed on, the key is used up; otherwise one charge would buy any number of responses.
//!
//! Each attempt has a lease, so a request sent twice at once with the same key, even to different nodes, is forwarded
//! once. A refund forgets the key, so a retry after it is a new charge.

use std::time::Duration;

use sha3::{Digest, Sha3_256};

use crate::charging::request_id::RequestId;
use crate::clock::Timestamp;
use crate::raw_bytes::raw_bytes;
use crate::usage::UsageLine;
use crate::wire::ErrorCode;

/// How many attempts one charge pays for, including the first. Each may cost the upstream work.
const MAX_ATTEMPTS: u32 = 3;

/// The client's id for one request to a metered route: 1 to 128 visible ASCII characters, unique within its account for
/// 24 hours.
///
/// ```
/// use metering_core::charging::IdempotencyKey;
///
/// // The string form of draft-ietf-httpapi-idempotency-key-header, and the bare form that is common in practice.
/// let quoted = IdempotencyKey::parse("\"8e03978e-40d5-43e8-bc93-6894a57f9324\"")?;
/// assert_eq!(quoted, IdempotencyKey::parse("8e03978e-40d5-43e8-bc93-6894a57f9324")?);
/// assert!(IdempotencyKey::parse("two words").is_err());
/// # Ok::<(), metering_core::charging::IdempotencyKeyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey(String);

/// The header is not an idempotency key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be one string of 1 to 128 visible ASCII characters")]
pub struct IdempotencyKeyError;

impl IdempotencyKey {
    /// Parses the value of the `Idempotency-Key` header.
    ///
    /// # Errors
    /// When the key is empty, too long, or has other characters.
    pub fn parse(value: &str) -> Result<Self, IdempotencyKeyError> {
        let value = value.trim_matches([' ', '\t']);
        let key = match value.strip_prefix('"') {
            Some(rest) => unquoted(rest.strip_suffix('"').ok_or(IdempotencyKeyError)?)?,
            None => value.to_owned(),
        };
        RequestId::parse(&key).map_err(|_| IdempotencyKeyError)?;
        Ok(Self(key))
    }

    /// The key as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The value of the header, in the draft's string form.
    ///
    /// ```
    /// use metering_core::charging::IdempotencyKey;
    ///
    /// assert_eq!(IdempotencyKey::parse("order-17")?.to_header(), r#""order-17""#);
    /// # Ok::<(), metering_core::charging::IdempotencyKeyError>(())
    /// ```
    #[must_use]
    pub fn to_header(&self) -> String {
        format!("\"{}\"", self.0.replace('\\', "\\\\").replace('"', "\\\""))
    }
}

impl RequestId {
    /// The id of an idempotency key. It contains a space, so it never equals the `request_id` of a deduction. Otherwise
    /// a client could pay for a cheap request and pass off an expensive one as its retry.
    #[must_use]
    pub fn of_idempotency_key(key: &IdempotencyKey) -> Self {
        Self::of_key(key.as_str())
    }
}

/// Unescapes the inside of a structured-field string (RFC 9651, section 4.2.5).
fn unquoted(inside: &str) -> Result<String, IdempotencyKeyError> {
    let (mut text, mut characters) = (String::with_capacity(inside.len()), inside.chars());
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped @ ('"' | '\\')) => text.push(escaped),
                _ => return Err(IdempotencyKeyError),
            },
            '"' => return Err(IdempotencyKeyError),
            other => text.push(other),
        }
    }
    Ok(text)
}

/// Identifies the request that a key is for: its method, its target, and its usage line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint([u8; 16]);

raw_bytes!(Fingerprint, 16);

impl Fingerprint {
    /// The fingerprint of a request. `target` must be in normal form.
    #[must_use]
    pub fn of(method: &str, target: &str, line: &UsageLine) -> Self {
        let mut hash = Sha3_256::new();
        for part in [method, target, line.template(), &line.http_method, line.source.as_str()] {
            hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            hash.update(part);
        }
        let hash: [u8; 32] = hash.finalize().into();
        let (start, _) = hash.split_first_chunk().expect("the hash has 32 bytes");
        Self(*start)
    }

    /// The fingerprint of the request with this body, for a request whose price depends on it.
    #[must_use]
    pub fn with_body(self, body: &[u8]) -> Self {
        let hash: [u8; 32] = Sha3_256::new().chain_update(self.0).chain_update(body).finalize().into();
        let (start, _) = hash.split_first_chunk().expect("the hash has 32 bytes");
        Self(*start)
    }
}

/// The data that is stored with a charge that has an idempotency key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryTerms {
    /// Which request the key is for.
    pub fingerprint: Fingerprint,
    /// How long an attempt may take before a retry may be forwarded instead.
    pub lease: Duration,
}

/// The state of a request with an idempotency key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivery {
    /// Which request the key is for.
    pub fingerprint: Fingerprint,
    /// How many attempts were made, including the first.
    pub tries: u32,
    /// When the lease of the last attempt ends; `None` once a response has been passed on.
    pub open_until: Option<Timestamp>,
}

/// One attempt at a request with an idempotency key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempt {
    /// The key.
    pub request: RequestId,
    /// Its number, from 1.
    pub number: u32,
    /// When the result of the charge that pays for it expires. Distinguishes that charge from others with the same key.
    pub expires_at: Timestamp,
}

/// Why a request with a known idempotency key is neither forwarded nor charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repetition {
    /// The key was used for another request.
    OtherRequest,
    /// An earlier attempt may still be in progress.
    InProgress {
        /// Seconds until its lease ends, rounded up.
        retry_after_seconds: u64,
    },
    /// The key's response was delivered, or its attempts are used up.
    UsedUp,
}

impl Repetition {
    /// The error code that clients get.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::OtherRequest => ErrorCode::IdempotencyKeyReused,
            Self::InProgress { .. } => ErrorCode::RequestInProgress,
            Self::UsedUp => ErrorCode::IdempotencyKeyUsed,
        }
    }

    /// The error message: what happened, and what to do.
    pub(crate) const fn advice(&self) -> &'static str {
        match self {
            Self::OtherRequest => {
                "This Idempotency-Key was used for another request; nothing was charged now. Use a new key for each request."
            }
            Self::InProgress { .. } => {
                "The request with this Idempotency-Key may still be in progress; nothing was charged now. Retry after the \
                 time given."
            }
            Self::UsedUp => {
                "The request with this Idempotency-Key was already charged, and was served or has no retries left; nothing \
                 was charged now. Responses are not stored, so use a new key to buy another."
            }
        }
    }
}

impl Delivery {
    /// The first attempt.
    pub(crate) fn first(terms: DeliveryTerms, now: Timestamp) -> Self {
        let open_until = Some(now.saturating_add(terms.lease));
        Self { fingerprint: terms.fingerprint, tries: 1, open_until }
    }

    /// The next attempt.
    ///
    /// # Errors
    /// Why there is no next attempt.
    pub(crate) fn again(self, terms: DeliveryTerms, now: Timestamp) -> Result<Self, Repetition> {
        if self.fingerprint != terms.fingerprint {
            return Err(Repetition::OtherRequest);
        }
        match self.open_until {
            None => Err(Repetition::UsedUp),
            Some(until) if now < until => {
                let left = until.unix_millis().saturating_sub(now.unix_millis());
                Err(Repetition::InProgress { retry_after_seconds: left.unsigned_abs().div_ceil(1_000).max(1) })
            }
            Some(_) if self.tries >= MAX_ATTEMPTS => Err(Repetition::UsedUp),
            Some(_) => Ok(Self { tries: self.tries + 1, ..Self::first(terms, now) }),
        }
    }

    /// Records that a response was passed on.
    pub(crate) fn delivered(self) -> Self {
        Self { open_until: None, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usage::ClientSource;

    fn line(template: &str, source: ClientSource) -> UsageLine {
        UsageLine { route_template: template.into(), http_method: "GET".into(), source }
    }

    #[test]
    fn keys_are_read_quoted_and_bare() {
        let longest = "x".repeat(128);
        let table = [
            ("abc", Some("abc")),
            ("\"abc\"", Some("abc")),
            (" \"a\\\"b\\\\c\" ", Some("a\"b\\c")),
            ("a\"b", Some("a\"b")),
            (&*longest, Some(&*longest)),
            ("", None),
            ("\"\"", None),
            ("\"", None),
            ("\"abc", None),
            ("\"a\"b\"", None),
            ("\"a\\b\"", None),
            ("a b", None),
            ("\"a b\"", None),
            ("\u{e4}", None),
            (&*"x".repeat(129), None),
        ];
        for (value, expected) in table {
            let key = IdempotencyKey::parse(value).ok();
            assert_eq!(key.as_ref().map(IdempotencyKey::as_str), expected, "{value:?}");
            assert_eq!(key.as_ref().and_then(|key| IdempotencyKey::parse(&key.to_header()).ok()), key, "{value:?}");
        }
    }

    #[test]
    fn fingerprint_depends_on_every_part_and_its_length() {
        let of = |method, target, template, source| Fingerprint::of(method, target, &line(template, source));
        let first = of("GET", "/a", "/a", ClientSource::Direct);
        assert_eq!(first, of("GET", "/a", "/a", ClientSource::Direct));
        let others = [
            of("PUT", "/a", "/a", ClientSource::Direct),
            of("GET", "/b", "/a", ClientSource::Direct),
            of("GET", "/a?x=1", "/a", ClientSource::Direct),
            of("GET", "/a", "/{b}", ClientSource::Direct),
            of("GET", "/a", "/a", ClientSource::Cli),
            of("GET/", "a", "/a", ClientSource::Direct),
        ];
        assert!(others.iter().all(|other| *other != first));
    }

    #[test]
    fn a_key_buys_one_response_and_a_bounded_number_of_tries() {
        let at = |seconds: i64| Timestamp::from_unix_millis(seconds * 1_000);
        let fingerprint = Fingerprint::from_bytes([1; 16]);
        let terms = DeliveryTerms { fingerprint, lease: Duration::from_secs(40) };
        let other = DeliveryTerms { fingerprint: Fingerprint::from_bytes([2; 16]), ..terms };
        let first = Delivery::first(terms, at(0));
        assert_eq!(first.again(terms, at(1)), Err(Repetition::InProgress { retry_after_seconds: 39 }));
        assert_eq!(first.again(other, at(1)), Err(Repetition::OtherRequest));
        // A lagging clock does not end a lease early.
        assert_eq!(first.again(terms, at(-9)), Err(Repetition::InProgress { retry_after_seconds: 49 }));
        let last_moment = Timestamp::from_unix_millis(39_999);
        assert_eq!(first.again(terms, last_moment), Err(Repetition::InProgress { retry_after_seconds: 1 }));
        let second = first.again(terms, at(40)).unwrap();
        assert_eq!((second.tries, second.open_until), (2, Some(at(80))));
        let third = second.again(terms, at(80)).unwrap();
        assert_eq!(third.again(terms, at(10_000)), Err(Repetition::UsedUp));
        for delivery in [first, second, third] {
            assert_eq!(delivery.delivered().again(terms, at(10_000)), Err(Repetition::UsedUp));
            assert_eq!(delivery.delivered().again(other, at(10_000)), Err(Repetition::OtherRequest));
        }
    }
}
