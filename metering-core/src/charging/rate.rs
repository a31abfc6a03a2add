//! Rate limits: accepted requests per calendar minute and per UTC day, and tokens per minute, of an account or of a key.

use crate::access::account::RateLimits;
use crate::clock::{Day, Timestamp};
use crate::named_enum::named_enum;

/// How many requests were accepted, or tokens used, in the newest window that had any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Window {
    /// Which window: minutes or days since the Unix epoch.
    pub index: i64,
    /// Requests accepted in it, or tokens used.
    pub count: u32,
}

impl Window {
    /// The window for `index`: an empty one if `index` is newer, or if the clock stepped back to it.
    ///
    /// A slightly older `index` (another node's clock lags) counts in the newest window, so small clock differences
    /// never give an account the same window twice.
    fn at(self, index: i64, stepped_back: bool) -> Self {
        let is_other = if stepped_back { index != self.index } else { index > self.index };
        if is_other { Self { index, count: 0 } } else { self }
    }

    /// Counts one more accepted request, unless `cap` is reached. A `cap` of 0 means no cap.
    pub(crate) fn admit(self, cap: u32) -> Option<Self> {
        let room = cap == 0 || self.count < cap;
        room.then(|| Self { index: self.index, count: self.count.saturating_add(1) })
    }

    /// The window of the minute of `now`, whose newest reading of the clock was in this one's.
    pub(crate) fn at_minute(self, now: Timestamp) -> Self {
        self.at(now.minute(), self.index.saturating_sub(now.minute()) > RateStatus::MINUTES_OF_LAG)
    }
}

/// The newest minute and the newest day in which requests of an account or a key were accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RateWindows {
    /// Accepted requests of the minute.
    pub minute: Window,
    /// Accepted requests of the day.
    pub day: Window,
}

named_enum! {
    /// Which of the rate limits.
    pub enum LimitWindow {
        /// The calendar minute.
        Minute = "minute",
        /// The UTC day.
        Day = "day",
        /// The tokens of the calendar minute.
        Tokens = "tokens",
    }
}

/// The use of a limit on tokens per minute. The default is for a request that no limit applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TokenStatus {
    /// The limit; 0 means no limit.
    pub limit: u32,
    /// The tokens that are held or were used in the minute.
    pub minute: Window,
    /// The tokens that the request may use.
    pub requested: u32,
}

impl TokenStatus {
    /// Tokens left in the minute; `None` without a limit.
    #[must_use]
    pub const fn remaining(&self) -> Option<u32> {
        match self.limit {
            0 => None,
            limit => Some(limit.saturating_sub(self.minute.count)),
        }
    }

    /// Whether the request would be refused in any minute: it may use more than the limit.
    #[must_use]
    pub const fn is_above_limit(&self) -> bool {
        self.requested > self.limit
    }
}

/// The use of some rate limits at one moment.
///
/// ```
/// use metering_core::charging::{LimitWindow, RateStatus, TokenStatus, Window};
/// use metering_core::{RateLimits, Timestamp};
///
/// let at = Timestamp::from_unix_millis(1_795_248_045_000); // 45 seconds into its minute
/// let limits = RateLimits::per_minute(240);
/// let (minute, day) = (Window { index: at.minute(), count: 3 }, Window { index: at.day().unix_days(), count: 9 });
/// let rate = RateStatus { limits, minute, day, at, tokens: TokenStatus::default() };
/// assert_eq!(rate.remaining(LimitWindow::Minute), Some(237));
/// assert_eq!(rate.reset_seconds(LimitWindow::Minute), 15);
/// assert_eq!(rate.remaining(LimitWindow::Day), None);
/// assert_eq!(rate.remaining(LimitWindow::Tokens), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateStatus {
    /// The limits.
    pub limits: RateLimits,
    /// Accepted requests of the minute.
    pub minute: Window,
    /// Accepted requests of the day.
    pub day: Window,
    /// The moment.
    pub at: Timestamp,
    /// The limit on tokens per minute, for a request that uses tokens.
    pub tokens: TokenStatus,
}

impl RateStatus {
    /// The use of `limits` at `now`, given the windows of the last accepted request.
    #[must_use]
    pub fn of(limits: RateLimits, minute: Window, day: Window, now: Timestamp) -> Self {
        // Both windows come from the newest accepted clock reading; its minute shows how far `now` lags behind.
        let minutes_back = minute.index.saturating_sub(now.minute());
        Self {
            limits,
            minute: minute.at(now.minute(), minutes_back > Self::MINUTES_OF_LAG),
            day: day.at(now.day().unix_days(), minutes_back > Self::MINUTES_OF_LAG_AT_MIDNIGHT),
            at: now,
            tokens: TokenStatus::default(),
        }
    }

    /// The limit that refuses one more request, if one is reached: the day's before the minute's, because waiting for
    /// the next minute would not help.
    #[must_use]
    pub(crate) fn reached(&self) -> Option<LimitWindow> {
        [LimitWindow::Day, LimitWindow::Minute].into_iter().find(|window| self.remaining(*window) == Some(0))
    }

    /// How many minutes a clock may lag behind the newest reading and still count in its minute. A larger step back
    /// means that the newest reading was wrong; it must not block the account until that minute comes.
    const MINUTES_OF_LAG: i64 = 1;
    /// The same for the day. A clock set back by minutes just after midnight does not give an account the same day
    /// twice, and a reading that was hours ahead does not block the account for a day.
    const MINUTES_OF_LAG_AT_MIDNIGHT: i64 = 60;

    /// Requests, or tokens, left in the window; `None` without a limit.
    #[must_use]
    pub fn remaining(&self, window: LimitWindow) -> Option<u32> {
        let (cap, used) = match window {
            LimitWindow::Minute => (self.limits.requests_per_minute, self.minute.count),
            LimitWindow::Day => (self.limits.requests_per_day, self.day.count),
            LimitWindow::Tokens => return self.tokens.remaining(),
        };
        (cap != 0).then(|| cap.saturating_sub(used))
    }

    /// When the window ends.
    #[must_use]
    pub fn resets_at(&self, window: LimitWindow) -> Timestamp {
        let minute = match window {
            LimitWindow::Minute => self.minute,
            LimitWindow::Tokens => self.tokens.minute,
            LimitWindow::Day => return Day::from_unix_days(self.day.index + 1).start(),
        };
        Timestamp::from_unix_millis(minute.index.saturating_add(1).saturating_mul(60_000))
    }

    /// Whole seconds until the window ends, at least one.
    #[must_use]
    pub fn reset_seconds(&self, window: LimitWindow) -> u64 {
        let left = self.resets_at(window).unix_millis().saturating_sub(self.at.unix_millis());
        u64::try_from(left).unwrap_or(0).div_ceil(1_000).max(1)
    }
}
