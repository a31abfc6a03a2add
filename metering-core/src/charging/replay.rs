//! Which retries get the response of an earlier attempt instead of being charged again.
//!
//! Stock clients give up after a timeout and send the request again, two or three times. Each attempt would be paid for
//! and thrown away. So on routes with `"replay": true` the gateway continues the first attempt, and a request that is
//! marked as a retry joins it. Nothing is stored: once the response is gone, a retry is an ordinary request.

use sha3::{Digest, Sha3_256};

use crate::access::key::KeyHash;
use crate::wire::{CHARGED_HEADER, HELD_HEADER};

/// How clients that Stainless generated, such as those of OpenAI and Anthropic, count their retries.
pub const RETRY_COUNT_HEADER: &str = "x-stainless-retry-count";

/// The header of responses that an earlier attempt paid for.
pub const REPLAYED_HEADER: &str = "x-bds-replayed";

/// Headers that can make a different response of the same request, or bind it. Retries of a client repeat them.
const DECIDING_HEADERS: [&str; 16] = [
    "accept",
    "accept-encoding",
    "accept-language",
    "anthropic-beta",
    "anthropic-version",
    "content-encoding",
    "content-type",
    "idempotency-key",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "last-event-id",
    "max-cost",
    "openai-beta",
    "range",
    "te",
];

/// Identifies the requests that may get the same response: those of one key with the same method, target, body, and
/// headers that decide about the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReplayKey([u8; 32]);

impl ReplayKey {
    /// The key of a request. `values` takes a header name in lower case and returns the values of all its lines.
    #[must_use]
    pub fn of<'h, V>(key: &KeyHash, method: &str, target: &str, body: &[u8], values: impl Fn(&'static str) -> V) -> Self
    where
        V: IntoIterator<Item = &'h [u8]>,
    {
        let mut hash = Sha3_256::new();
        let mut add = |part: &[u8]| {
            hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            hash.update(part);
        };
        for part in [key.as_bytes().as_slice(), method.as_bytes(), target.as_bytes(), body] {
            add(part);
        }
        for name in DECIDING_HEADERS {
            for value in values(name) {
                add(name.as_bytes());
                add(value);
            }
        }
        Self(hash.finalize().into())
    }
}

/// Whether a request is marked as a possible retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// It does not.
    No,
    /// Its client counts its retries, and sends this one because it did not get the response.
    Counted,
    /// It has an idempotency key: requests with the same one are the same request.
    Keyed,
}

/// The state of an earlier attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// It is being served, or its client was cut off before it had all of the response.
    Undelivered,
    /// Its client received the complete response.
    Delivered,
}

impl Retry {
    /// What a request's headers show about a retry.
    ///
    /// ```
    /// use metering_core::charging::Retry;
    ///
    /// let headers = [("x-stainless-retry-count", "1")];
    /// let values = |name| headers.iter().filter(move |(n, _)| *n == name).map(|(_, value)| value.as_bytes());
    /// assert_eq!(Retry::read(values), Retry::Counted);
    /// ```
    #[must_use]
    pub fn read<'h, V>(values: impl Fn(&'static str) -> V) -> Self
    where
        V: IntoIterator<Item = &'h [u8]>,
    {
        if values("idempotency-key").into_iter().next().is_some() {
            return Self::Keyed;
        }
        let is_count = |value: &[u8]| value.iter().all(u8::is_ascii_digit) && value.iter().any(|digit| *digit != b'0');
        if values(RETRY_COUNT_HEADER).into_iter().any(is_count) { Self::Counted } else { Self::No }
    }

    /// Whether it gets the response of an earlier attempt in this state. A client that has received a response does not
    /// retry, so a second request without an idempotency key is a new one.
    #[must_use]
    pub const fn joins(self, progress: Progress) -> bool {
        match (self, progress) {
            (Self::No, _) | (Self::Counted, Progress::Delivered) => false,
            (Self::Counted, Progress::Undelivered) | (Self::Keyed, _) => true,
        }
    }
}

/// Whether to keep a response for retries: only if it was paid for. A retry of a request that was refused, refunded, or
/// failed without a charge is served as a new one. `header` returns a header of the response.
#[must_use]
pub fn is_kept<'h>(status: u16, header: impl Fn(&'static str) -> Option<&'h str>) -> bool {
    let is_error = status >= 400;
    match header(CHARGED_HEADER) {
        Some(charged) => !is_error || charged != "0",
        None => !is_error && header(HELD_HEADER).is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Headers<'h> = &'h [(&'static str, &'static str)];

    fn values(headers: Headers<'_>) -> impl Fn(&'static str) -> Vec<&'static [u8]> {
        move |wanted| headers.iter().filter(|(name, _)| *name == wanted).map(|(_, value)| value.as_bytes()).collect()
    }

    #[test]
    fn retries_say_that_they_are() {
        let table: [(Headers<'_>, Retry); 7] = [
            (&[], Retry::No),
            (&[(RETRY_COUNT_HEADER, "0")], Retry::No),
            (&[(RETRY_COUNT_HEADER, "00")], Retry::No),
            (&[(RETRY_COUNT_HEADER, "2")], Retry::Counted),
            (&[(RETRY_COUNT_HEADER, "-1")], Retry::No),
            (&[("idempotency-key", "a")], Retry::Keyed),
            (&[("idempotency-key", "a"), (RETRY_COUNT_HEADER, "1")], Retry::Keyed),
        ];
        for (headers, expected) in table {
            assert_eq!(Retry::read(values(headers)), expected, "{headers:?}");
        }
    }

    #[test]
    fn what_was_delivered_is_for_idempotency_keys_only() {
        let table = [
            (Retry::No, Progress::Undelivered, false),
            (Retry::No, Progress::Delivered, false),
            (Retry::Counted, Progress::Undelivered, true),
            (Retry::Counted, Progress::Delivered, false),
            (Retry::Keyed, Progress::Undelivered, true),
            (Retry::Keyed, Progress::Delivered, true),
        ];
        for (retry, progress, joins) in table {
            assert_eq!(retry.joins(progress), joins, "{retry:?} {progress:?}");
        }
    }

    #[test]
    fn only_the_same_request_of_the_same_key_shares_a_response() {
        let (mine, yours) = (KeyHash::from_bytes([1; 32]), KeyHash::from_bytes([2; 32]));
        let of = |key, method, target, body: &str, headers| {
            ReplayKey::of(key, method, target, body.as_bytes(), values(headers))
        };
        let first = of(&mine, "POST", "/chat", "{}", &[("accept", "*/*"), ("user-agent", "a")]);
        assert_eq!(first, of(&mine, "POST", "/chat", "{}", &[("accept", "*/*"), (RETRY_COUNT_HEADER, "1")]));
        let others = [
            of(&yours, "POST", "/chat", "{}", &[("accept", "*/*")]),
            of(&mine, "PUT", "/chat", "{}", &[("accept", "*/*")]),
            of(&mine, "POST", "/chat?a", "{}", &[("accept", "*/*")]),
            of(&mine, "POST", "/chat", "{ }", &[("accept", "*/*")]),
            of(&mine, "POST/", "chat", "{}", &[("accept", "*/*")]),
            of(&mine, "POST", "/chat", "{}", &[("accept", "text/event-stream")]),
            of(&mine, "POST", "/chat", "{}", &[("accept", "*/*"), ("idempotency-key", "a")]),
        ];
        assert!(others.iter().all(|other| *other != first));
    }

    #[test]
    fn what_nobody_paid_for_is_not_kept() {
        // status, charged, held, kept
        let table = [
            (200, Some("0.1"), None, true),
            (200, Some("0"), None, true),
            (200, None, Some("0.5"), true),
            (404, Some("0.1"), None, true),
            (429, Some("0"), None, false),
            (500, None, Some("0.5"), false),
            (402, None, None, false),
            (503, Some("0"), None, false),
            (200, None, None, false),
        ];
        for (status, charged, held, kept) in table {
            let header = |name| if name == CHARGED_HEADER { charged } else { held };
            assert_eq!(is_kept(status, header), kept, "{status} {charged:?} {held:?}");
        }
    }
}
