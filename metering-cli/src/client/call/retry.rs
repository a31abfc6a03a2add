//! The retry policy of `metering call`: which failures to retry, and how long to wait first.

use std::time::Duration;

use metering_client::{ClientError, Refusal};

use crate::client::pauses::{Pauses, SHORTEST};

/// Whether the request has an idempotency key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    None,
    /// One that was generated here.
    MadeUp,
    /// The user's own: by giving one, the user says that the service supports such keys.
    Given,
}

/// The time left to wait.
#[derive(Debug)]
pub(super) struct Patience {
    left: Duration,
    name: Name,
    pauses: Pauses,
}

impl Patience {
    /// Waits at most `limit` in total.
    pub(super) const fn new(limit: Duration, name: Name) -> Self {
        Self { left: limit, name, pauses: Pauses::new() }
    }

    /// How long to wait before sending the request again; `None` if a retry would not help, or would
    /// exceed the limit.
    ///
    /// Without an idempotency key, only requests that were rejected without a charge are retried: 429, and 503 except
    /// for an unknown outcome. With a key, an unknown outcome and a request in progress are retried too. A request
    /// whose response was lost is retried only with the user's own key: only the user knows whether the service
    /// supports keys.
    pub(super) fn pause_after(&mut self, error: &ClientError) -> Option<Duration> {
        let named = match error {
            ClientError::Refused(refusal) if self.is_worth_another(refusal) => refusal.retry_after,
            ClientError::Unreachable(_) if self.name == Name::Given => None,
            _ => return None,
        };
        let pause = match named {
            Some(named) => named.max(SHORTEST),
            None => self.pauses.next(),
        };
        self.left = self.left.checked_sub(pause)?;
        Some(pause)
    }

    fn is_worth_another(&self, refusal: &Refusal) -> bool {
        match refusal.code.as_str() {
            "outcome_unknown" | "request_in_progress" => self.name != Name::None,
            _ => matches!(refusal.status.as_u16(), 429 | 503),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metering_client::Unreachable;

    fn refused(status: u16, retry_after: Option<u64>) -> ClientError {
        let mut headers = http::HeaderMap::new();
        if let Some(seconds) = retry_after {
            headers.insert("retry-after", seconds.into());
        }
        Refusal::read(http::StatusCode::from_u16(status).unwrap(), &headers, Vec::new().into()).into()
    }

    #[test]
    fn only_what_was_not_charged_is_asked_again() {
        for status in [400, 401, 402, 404, 500, 502, 504] {
            let mut patience = Patience::new(Duration::from_secs(60), Name::None);
            assert_eq!(patience.pause_after(&refused(status, Some(1))), None, "{status}");
        }
        let cut_off = ClientError::from(Unreachable("cut off".to_owned()));
        assert_eq!(Patience::new(Duration::from_secs(60), Name::None).pause_after(&cut_off), None);
    }

    #[test]
    fn pauses_are_those_of_the_service_or_double_until_patience_ends() {
        let seconds = |pause: Option<Duration>| pause.map(|pause| pause.as_secs());
        let mut patience = Patience::new(Duration::from_secs(10), Name::None);
        let table = [(Some(5), Some(5)), (Some(0), Some(1)), (None, Some(1)), (None, Some(2)), (None, None)];
        for (named, expected) in table {
            assert_eq!(seconds(patience.pause_after(&refused(429, named))), expected, "{named:?}");
        }
        assert_eq!(Patience::new(Duration::ZERO, Name::None).pause_after(&refused(503, Some(1))), None);
    }

    #[test]
    fn a_key_makes_more_worth_another_try() {
        let coded = |status: u16, code: &str| -> ClientError {
            let body = format!(r#"{{"error":"{code}","message":"m"}}"#);
            let status = http::StatusCode::from_u16(status).unwrap();
            Refusal::read(status, &http::HeaderMap::new(), body.into()).into()
        };
        let lost = ClientError::from(Unreachable("cut off".to_owned()));
        // error, without a key, with a generated one, with the user's own
        let table = [
            (coded(503, "outcome_unknown"), [false, true, true]),
            (coded(409, "request_in_progress"), [false, true, true]),
            (coded(409, "idempotency_key_used"), [false, false, false]),
            (coded(503, "overloaded"), [true, true, true]),
            (lost, [false, false, true]),
        ];
        for (error, expected) in table {
            let again = [Name::None, Name::MadeUp, Name::Given]
                .map(|name| Patience::new(Duration::from_secs(60), name).pause_after(&error).is_some());
            assert_eq!(again, expected, "{error}");
        }
    }
}
