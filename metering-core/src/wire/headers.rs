//! The headers of metered responses, as names and values for any HTTP library.

use std::fmt::{self, Display};

use crate::charging::hold::HoldUpdated;
use crate::charging::rate::{LimitWindow, RateStatus};
use crate::money::credits::Credits;

/// The kind of client, for usage records.
pub const SOURCE_HEADER: &str = "x-bds-client-source";
/// The idempotency key of a request, which keeps its retry from being charged again.
pub const IDEMPOTENCY_HEADER: &str = "idempotency-key";
/// The most that a request may cost, in credits; above that, it is refused without a charge.
pub const MAX_COST_HEADER: &str = "max-cost";
/// The secret of the calls below `/internal/`, which services of the operator make.
pub const BILLING_SECRET_HEADER: &str = "x-bds-internal-billing-secret";
/// The balance after the charge, in credits.
pub const BALANCE_HEADER: &str = "x-bds-credit-balance";
/// The amount charged, in credits.
pub const CHARGED_HEADER: &str = "x-bds-credit-charged";

/// The amount held for a request whose cost is not known yet, in credits.
pub const HELD_HEADER: &str = "x-bds-credit-held";
/// The number of the price version that the charge is from.
pub const PRICE_VERSION_HEADER: &str = "x-bds-price-version";
/// The id of a request whose credits are or were held, for `GET /requests/{id}`.
pub const REQUEST_ID_HEADER: &str = "x-bds-request-id";
/// The signed receipt of a request ([`receipts`](crate::receipts)). A client that wants one sends the same name as a
/// [preference](PREFER_HEADER).
pub const RECEIPT_HEADER: &str = "metering-receipt";
/// A client's preferences (RFC 7240).
pub const PREFER_HEADER: &str = "prefer";
/// Which preferences a response follows (RFC 7240).
pub const PREFERENCE_APPLIED_HEADER: &str = "preference-applied";

/// The trailers of a response whose cost was known only at its end.
#[must_use]
pub fn settled_trailers(settled: &HoldUpdated) -> [(&'static str, String); 2] {
    [(BALANCE_HEADER, settled.balance.to_string()), (CHARGED_HEADER, captured(settled).to_string())]
}

/// The amount captured from a settled hold.
pub(super) fn captured(settled: &HoldUpdated) -> Credits {
    settled.hold.settled.map_or(Credits::ZERO, |settled| settled.captured)
}

/// `RateLimit-Policy` and `RateLimit` as in the IETF draft (draft-ietf-httpapi-ratelimit-headers, structured fields):
/// one item per window that has a limit. Without any limit, neither header is sent. For a request that uses tokens, the
/// limit on tokens per minute is in `x-ratelimit-*-tokens`, as OpenAI names and writes them.
#[must_use]
pub fn rate_headers(rate: &RateStatus) -> Vec<(&'static str, String)> {
    let mut headers = Vec::new();
    each_rate_header(rate, |name, value| headers.push((name, value.to_string())));
    headers
}

/// Calls `set` with the name and value of each of [`rate_headers`].
pub(super) fn each_rate_header(rate: &RateStatus, mut set: impl FnMut(&'static str, &dyn Display)) {
    if limited(rate).next().is_some() {
        set("ratelimit-policy", &Policy(rate));
        set("ratelimit", &Left(rate));
    }
    if let Some(left) = rate.remaining(LimitWindow::Tokens) {
        set("x-ratelimit-limit-tokens", &rate.tokens.limit);
        set("x-ratelimit-remaining-tokens", &left);
        set("x-ratelimit-reset-tokens", &Span(rate.reset_seconds(LimitWindow::Tokens)));
    }
}

/// Displays seconds as OpenAI does: `59s`, `1m0s`.
struct Span(u64);

impl Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (minutes, seconds) = (self.0 / 60, self.0 % 60);
        if minutes > 0 { write!(f, "{minutes}m{seconds}s") } else { write!(f, "{seconds}s") }
    }
}

/// The windows that have a limit: their limits, and how many seconds each takes.
fn limited(rate: &RateStatus) -> impl Iterator<Item = (LimitWindow, u32, u32)> + use<> {
    let windows = [
        (LimitWindow::Minute, rate.limits.requests_per_minute, 60),
        (LimitWindow::Day, rate.limits.requests_per_day, 86_400),
    ];
    windows.into_iter().filter(|(_, limit, _)| *limit != 0)
}

/// Displays the limit of each window.
struct Policy<'r>(&'r RateStatus);

/// Displays how many requests are left in each window that has a limit.
struct Left<'r>(&'r RateStatus);

impl Display for Policy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (window, limit, seconds) in limited(self.0) {
            write!(f, "{separator}\"{}\";q={limit};w={seconds}", window.as_str())?;
            separator = ", ";
        }
        Ok(())
    }
}

impl Display for Left<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (window, _, _) in limited(self.0) {
            let (left, reset) = (self.0.remaining(window).unwrap_or(0), self.0.reset_seconds(window));
            write!(f, "{separator}\"{}\";r={left};t={reset}", window.as_str())?;
            separator = ", ";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::account::RateLimits;
    use crate::charging::rate::{TokenStatus, Window};
    use crate::clock::Timestamp;

    fn status(requests_per_minute: u32, requests_per_day: u32) -> RateStatus {
        RateStatus {
            limits: RateLimits::per_minute(requests_per_minute).and_per_day(requests_per_day),
            minute: Window { index: 1, count: 3 },
            day: Window { index: 0, count: 9 },
            at: Timestamp::from_unix_millis(90_000),
            tokens: TokenStatus::default(),
        }
    }

    #[test]
    fn a_limit_on_tokens_has_the_headers_of_openai() {
        let minute = Window { index: 1, count: 1_200 };
        let tokens = TokenStatus { limit: 30_000, minute, requested: 40 };
        let headers = rate_headers(&RateStatus { tokens, ..status(0, 0) });
        let expected = [
            ("x-ratelimit-limit-tokens", "30000".to_owned()),
            ("x-ratelimit-remaining-tokens", "28800".to_owned()),
            ("x-ratelimit-reset-tokens", "30s".to_owned()),
        ];
        assert_eq!(headers, expected);
        assert_eq!([1, 59, 60, 61].map(|seconds| Span(seconds).to_string()), ["1s", "59s", "1m0s", "1m1s"]);
    }

    #[test]
    fn rate_headers_have_one_item_per_cap() {
        let headers = rate_headers(&status(240, 1_500_000));
        assert_eq!(headers[0], ("ratelimit-policy", "\"minute\";q=240;w=60, \"day\";q=1500000;w=86400".to_owned()));
        assert_eq!(headers[1], ("ratelimit", "\"minute\";r=237;t=30, \"day\";r=1499991;t=86310".to_owned()));
        assert_eq!(rate_headers(&status(0, 10))[0].1, "\"day\";q=10;w=86400");
        assert_eq!(rate_headers(&status(0, 0)), []);
    }
}
