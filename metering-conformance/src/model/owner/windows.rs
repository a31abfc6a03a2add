use metering_core::access::RateLimits;
use metering_core::charging::{RateStatus, TokenStatus, Window};
use metering_core::clock::Timestamp;

/// The windows that a request at `now` counts in. A clock that lags by up to a minute, or an hour at midnight, counts in
/// the newest window; one that stepped back further starts a new window.
pub(super) fn window_counts(limits: RateLimits, minute: Window, day: Window, now: Timestamp) -> RateStatus {
    let back = minute.index - now.minute();
    let window = |newest: Window, index: i64, lag: i64| {
        let stays = index == newest.index || (index < newest.index && back <= lag);
        if stays { newest } else { Window { index, count: 0 } }
    };
    let (minute, day) = (window(minute, now.minute(), 1), window(day, now.day().unix_days(), 60));
    RateStatus { limits, minute, day, at: now, tokens: TokenStatus::default() }
}
