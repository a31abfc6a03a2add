//! The headers of metered responses, as names and values for any HTTP library.

use std::fmt::Write;

use crate::charging::charge::Receipt;
use crate::charging::hold::HoldUpdated;
use crate::charging::rate::{LimitWindow, RateStatus};
use crate::money::credits::Credits;

/// The kind of client, for usage records.
pub const SOURCE_HEADER: &str = "x-bds-client-source";
/// The idempotency key of a request, which keeps its retry from being charged again.
pub const IDEMPOTENCY_HEADER: &str = "idempotency-key";
/// The most that a request may cost, in credits; above that, it is refused for free.
pub const MAX_COST_HEADER: &str = "max-cost";
/// The balance after the charge, in credits.
pub const BALANCE_HEADER: &str = "x-bds-credit-balance";
/// What was charged, in credits.
pub const CHARGED_HEADER: &str = "x-bds-credit-charged";

/// What is held for a request whose cost is not known yet, in credits.
pub const HELD_HEADER: &str = "x-bds-credit-held";
/// The number of the price version that the charge is from.
pub const PRICE_VERSION_HEADER: &str = "x-bds-price-version";
/// The id of a request whose credits are or were held, for `GET /requests/{id}`.
pub const REQUEST_ID_HEADER: &str = "x-bds-request-id";

/// How many headers a metered response gets, at most.
const HEADERS: usize = 6;

/// The headers of the response to an accepted request: what was charged, or what is held.
///
/// ```
/// use metering_core::wire::metered_headers;
/// use metering_core::{Charge, MemoryStore, Service};
/// # use std::sync::Arc;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let service = Service::with_defaults(Arc::new(MemoryStore::new()));
/// # let (_, key) = service.open_account("my-agent", "2".parse()?).await?;
/// let receipt = service.charge(Charge::new(&key, "0.25".parse()?, "GET", "/price")).await?;
/// let mut response = http::Response::new("served");
/// for (name, value) in metered_headers(&receipt) {
///     response.headers_mut().insert(name, value.parse()?);
/// }
/// assert_eq!(response.headers()["x-bds-credit-balance"], "1.75");
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn metered_headers(receipt: &Receipt) -> Vec<(&'static str, String)> {
    let mut headers = match receipt.hold {
        None => money_headers(&receipt.rate, receipt.balance, receipt.charged),
        Some(held) => {
            let mut headers = rate_headers(&receipt.rate);
            headers.push((BALANCE_HEADER, receipt.balance.to_string()));
            headers.push((HELD_HEADER, held.amount.to_string()));
            headers.push((REQUEST_ID_HEADER, held.id.to_string()));
            headers
        }
    };
    headers.extend(receipt.price_version.map(|number| (PRICE_VERSION_HEADER, number.to_string())));
    headers
}

/// The headers of the response to a request whose hold was settled before its response was sent.
#[must_use]
pub fn settled_headers(rate: &RateStatus, settled: &HoldUpdated) -> Vec<(&'static str, String)> {
    let mut headers = rate_headers(rate);
    headers.extend(settled_trailers(settled));
    headers.push((REQUEST_ID_HEADER, settled.hold.id.to_string()));
    headers
}

/// The trailers of a response whose cost was known only at its end.
#[must_use]
pub fn settled_trailers(settled: &HoldUpdated) -> [(&'static str, String); 2] {
    let charged = settled.hold.settled.map_or(Credits::ZERO, |settled| settled.captured);
    [(BALANCE_HEADER, settled.balance.to_string()), (CHARGED_HEADER, charged.to_string())]
}

/// The headers of the response to a refunded request: a charge of zero, and the balance after the refund. The request
/// still counts towards the rate limits.
#[must_use]
pub fn refunded_headers(rate: &RateStatus, balance: Credits) -> Vec<(&'static str, String)> {
    money_headers(rate, balance, Credits::ZERO)
}

fn money_headers(rate: &RateStatus, balance: Credits, charged: Credits) -> Vec<(&'static str, String)> {
    let mut headers = rate_headers(rate);
    headers.push((BALANCE_HEADER, balance.to_string()));
    headers.push((CHARGED_HEADER, charged.to_string()));
    headers
}

/// `RateLimit-Policy` and `RateLimit` as in the IETF draft (draft-ietf-httpapi-ratelimit-headers, structured fields):
/// one item per window that has a limit. Without any limit, neither header is sent.
#[must_use]
pub fn rate_headers(rate: &RateStatus) -> Vec<(&'static str, String)> {
    let windows = [
        (LimitWindow::Minute, rate.limits.requests_per_minute, 60),
        (LimitWindow::Day, rate.limits.requests_per_day, 86_400),
    ];
    let (mut policy, mut state) = (String::new(), String::new());
    for (window, cap, seconds) in windows {
        let Some(remaining) = rate.remaining(window) else { continue };
        let (name, reset) = (window.as_str(), rate.reset_seconds(window));
        let separator = if policy.is_empty() { "" } else { ", " };
        // Writing to a `String` cannot fail.
        let _ = write!(policy, "{separator}\"{name}\";q={cap};w={seconds}");
        let _ = write!(state, "{separator}\"{name}\";r={remaining};t={reset}");
    }
    let mut headers = Vec::with_capacity(HEADERS);
    if !policy.is_empty() {
        headers.extend([("ratelimit-policy", policy), ("ratelimit", state)]);
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::account::RateLimits;
    use crate::charging::rate::Window;
    use crate::clock::Timestamp;

    fn status(requests_per_minute: u32, requests_per_day: u32) -> RateStatus {
        RateStatus {
            limits: RateLimits { requests_per_minute, requests_per_day },
            minute: Window { index: 1, count: 3 },
            day: Window { index: 0, count: 9 },
            at: Timestamp::from_unix_millis(90_000),
        }
    }

    #[test]
    fn a_refund_shows_nothing_charged() {
        let headers = refunded_headers(&status(0, 0), Credits::from_whole(2).unwrap());
        assert_eq!(headers, [(BALANCE_HEADER, "2".to_owned()), (CHARGED_HEADER, "0".to_owned())]);
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
