//! Rate limit settings: requests per period, written as `30/1m`, or `off`.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::Duration;

use crate::server::Span;
use crate::server::text::as_text;

/// A number of requests per period: that many at once, then refilled one by one, evenly over the period. Or no limit.
///
/// From 1 to 1,000,000 requests in one second to one day. The bounds keep the interval between two requests above zero,
/// and limit how long a client must be remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota(Option<(NonZeroU32, Span)>);

/// The text is not a quota.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a quota such as 30/1m (1 to 1000000 requests in 1s to 1d) or off")]
pub struct QuotaError(String);

const MAX_REQUESTS: u32 = 1_000_000;
const MIN_PERIOD: Duration = Duration::from_secs(1);
const MAX_PERIOD: Duration = Duration::from_secs(24 * 60 * 60);

impl Quota {
    /// No limit.
    pub const OFF: Self = Self(None);

    /// `requests` per `per`, or `None` when either is out of bounds.
    #[must_use]
    pub fn new(requests: u32, per: Span) -> Option<Self> {
        let within = requests <= MAX_REQUESTS && (MIN_PERIOD..=MAX_PERIOD).contains(&per.duration());
        let requests = NonZeroU32::new(requests).filter(|_| within)?;
        Some(Self(Some((requests, per))))
    }

    /// The burst size, and the interval after which one more request is allowed; `None` without a limit.
    #[must_use]
    pub fn burst_and_interval(self) -> Option<(NonZeroU32, Duration)> {
        self.0.map(|(requests, per)| (requests, per.duration() / requests.get()))
    }
}

impl FromStr for Quota {
    type Err = QuotaError;

    fn from_str(text: &str) -> Result<Self, QuotaError> {
        if text == "off" {
            return Ok(Self::OFF);
        }
        let read = || {
            let (requests, per) = text.split_once('/')?;
            Self::new(requests.parse().ok()?, per.parse().ok()?)
        };
        read().ok_or_else(|| QuotaError(text.to_owned()))
    }
}

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some((requests, per)) => write!(f, "{requests}/{per}"),
            None => f.write_str("off"),
        }
    }
}

as_text!(Quota);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_are_read_and_printed() {
        // text, printed, burst, interval in milliseconds
        let table = [
            ("30/1m", "30/1m", 30, 2_000),
            ("30/60s", "30/1m", 30, 2_000),
            ("30/10m", "30/10m", 30, 20_000),
            ("1/1d", "1/1day", 1, 86_400_000),
            ("1000/1s", "1000/1s", 1000, 1),
            ("3/1m 30s", "3/1m 30s", 3, 30_000),
        ];
        for (text, printed, burst, interval) in table {
            let quota: Quota = text.parse().unwrap();
            assert_eq!(quota.to_string(), printed);
            assert_eq!(printed.parse(), Ok(quota));
            let expected = (NonZeroU32::new(burst).unwrap(), Duration::from_millis(interval));
            assert_eq!(quota.burst_and_interval(), Some(expected), "{text}");
        }
        assert_eq!("off".parse(), Ok(Quota::OFF));
        assert_eq!((Quota::OFF.to_string().as_str(), Quota::OFF.burst_and_interval()), ("off", None));
    }

    #[test]
    fn invalid_quotas_are_rejected() {
        for text in [
            "",
            "30",
            "30/",
            "/1m",
            "0/1m",
            "-1/1m",
            "1.5/1m",
            "30/1",
            "30/0s",
            "30/999ms",
            "30/25h",
            "1000001/1d",
            "99999999999/1d",
            "30/1m/1m",
            "30 / 1m",
            "OFF",
            "none",
        ] {
            assert_eq!(text.parse::<Quota>(), Err(QuotaError(text.to_owned())), "{text}");
        }
    }

    #[test]
    fn the_highest_rate_has_an_interval() {
        let quota = Quota::new(MAX_REQUESTS, Span::seconds(1)).unwrap();
        assert_eq!(quota.burst_and_interval().map(|(_, interval)| interval), Some(Duration::from_micros(1)));
    }
}
