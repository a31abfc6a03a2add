//! Rate limits in the headers of Anthropic's API, which its clients read.

use http::HeaderMap;

use super::response::set_headers;
use crate::charging::rate::{LimitWindow, RateStatus};

/// Limit, rest and reset.
type Names = [&'static str; 3];

const REQUESTS: Names = [
    "anthropic-ratelimit-requests-limit",
    "anthropic-ratelimit-requests-remaining",
    "anthropic-ratelimit-requests-reset",
];

const TOKENS: Names =
    ["anthropic-ratelimit-tokens-limit", "anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"];

/// Sets the headers of each kind of limit that there is. There is one set for requests: it describes the limit per day
/// or per minute, whichever leaves fewer requests.
pub(super) fn set_anthropic_limits(headers: &mut HeaderMap, rate: &RateStatus) {
    let requests =
        [(LimitWindow::Day, rate.limits.requests_per_day), (LimitWindow::Minute, rate.limits.requests_per_minute)];
    let with_rest = |(window, limit)| Some((rate.remaining(window)?, limit, window));
    let fewest = requests.into_iter().filter_map(with_rest).min_by_key(|(left, ..)| *left);
    let tokens = with_rest((LimitWindow::Tokens, rate.tokens.limit));
    for (names, found) in [(REQUESTS, fewest), (TOKENS, tokens)] {
        let Some((left, limit, window)) = found else { continue };
        // Whole seconds, as Anthropic writes them.
        let reset = rate.resets_at(window).to_string().replace(".000Z", "Z");
        set_headers(headers, names.into_iter().zip([limit.to_string(), left.to_string(), reset]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::account::RateLimits;
    use crate::catalogue::ErrorShape;
    use crate::charging::hold::HoldId;
    use crate::charging::rate::{TokenStatus, Window};
    use crate::charging::refusal::Refusal;
    use crate::clock::Timestamp;
    use crate::error::Error;
    use crate::random::SystemRandomness;

    fn shown(rate: &RateStatus, names: Names) -> [Option<String>; 3] {
        let mut headers = HeaderMap::new();
        set_anthropic_limits(&mut headers, rate);
        names.map(|name| headers.get(name).map(|value| value.to_str().unwrap().to_owned()))
    }

    fn rate(requests_per_minute: u32, requests_per_day: u32, tokens: u32) -> RateStatus {
        let at = Timestamp::from_unix_millis(1_795_248_045_250);
        let (minute, day) = (Window { index: at.minute(), count: 3 }, Window { index: at.day().unix_days(), count: 9 });
        let used = Window { count: 1_200, ..minute };
        let limits = RateLimits { requests_per_minute, requests_per_day };
        RateStatus { limits, minute, day, at, tokens: TokenStatus { limit: tokens, minute: used, requested: 40 } }
    }

    #[test]
    fn the_limit_that_leaves_fewer_requests_is_shown() {
        let texts = |texts: [&str; 3]| texts.map(|text| Some(text.to_owned()));
        let (minute, day) = ("2026-11-21T08:01:00Z", "2026-11-22T00:00:00Z");
        assert_eq!(shown(&rate(240, 1_000, 0), REQUESTS), texts(["240", "237", minute]));
        assert_eq!(shown(&rate(240, 100, 0), REQUESTS), texts(["100", "91", day]));
        assert_eq!(shown(&rate(0, 1_000, 0), REQUESTS), texts(["1000", "991", day]));
        assert_eq!(shown(&rate(3, 9, 0), REQUESTS), texts(["9", "0", day]));
        assert_eq!(shown(&rate(0, 0, 30_000), TOKENS), texts(["30000", "28800", minute]));
        assert_eq!(shown(&rate(240, 0, 0), TOKENS), [None, None, None]);
        assert_eq!(shown(&rate(0, 0, 30_000), REQUESTS), [None, None, None]);
    }

    #[test]
    fn refusals_show_limits_by_the_names_of_their_routes_clients() {
        for (shape, is_shown) in [(ErrorShape::Anthropic, true), (ErrorShape::OpenAi, false)] {
            let refusal = Refusal::RateLimited { window: LimitWindow::Minute, rate: rate(3, 0, 0) };
            let response: http::Response<String> = Error::Refused(refusal.into()).to_response();
            let response = shape.finish(response, HoldId::generate(&SystemRandomness));
            assert_eq!(response.headers().contains_key(REQUESTS[1]), is_shown, "{shape:?}");
            assert!(response.headers().contains_key("ratelimit"), "{shape:?}");
        }
    }
}
