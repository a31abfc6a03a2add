//! Limits on tokens per minute, of an account or of a key.
//!
//! A request's expected tokens count from its hold on. When the hold is settled, the tokens used replace them, in the
//! minute in which the hold was opened. If that minute is over, the tokens beyond the hold count in the current one:
//! otherwise the tokens of requests longer than a minute would count nowhere. Nothing here is loaded for requests that
//! use no tokens, or whose account and keys have no such limit.

use std::fmt;
use std::str::FromStr;

use crate::access::key_id::KeyNumber;
use crate::charging::rate::Window;
use crate::clock::Timestamp;

/// Who has a limit on tokens per minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TokenScope {
    /// The account.
    Account,
    /// One of its keys.
    Key(KeyNumber),
}

impl TokenScope {
    /// Its number in stores: -1 for the account, otherwise that of the key.
    #[must_use]
    pub fn number(self) -> i64 {
        match self {
            Self::Account => -1,
            Self::Key(number) => number.get().into(),
        }
    }

    /// The scope with this [number](Self::number).
    #[must_use]
    pub fn from_number(number: i64) -> Option<Self> {
        match number {
            -1 => Some(Self::Account),
            _ => u32::try_from(number).ok().map(|number| Self::Key(KeyNumber::new(number))),
        }
    }
}

/// The tokens that are counted for a hold, and where. The text form, which stores keep, is their number, the minute, and
/// the [number](TokenScope::number) of each scope, separated by spaces.
///
/// ```
/// use metering_core::charging::HeldTokens;
///
/// let tokens: HeldTokens = "1200 29920800 -1 3".parse()?;
/// assert_eq!((tokens.count, tokens.scopes.len()), (1_200, 2));
/// assert_eq!(tokens.to_string(), "1200 29920800 -1 3");
/// # Ok::<(), metering_core::charging::HeldTokensError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldTokens {
    /// How many.
    pub count: u32,
    /// The minute that they count in, since the Unix epoch. The same for all scopes.
    pub minute: i64,
    /// The account, if it had a limit, and each key that had one.
    pub scopes: Vec<TokenScope>,
}

/// The text is not of the form of [`HeldTokens`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a number of tokens, a minute, and the numbers of those who have a limit")]
pub struct HeldTokensError;

impl HeldTokens {
    /// The window after the hold was settled: the `used` tokens replace the held ones, if that is still its minute.
    /// Otherwise the tokens beyond the hold are added.
    #[must_use]
    pub(crate) fn settled_in(&self, window: Window, used: u32, now: Timestamp) -> Window {
        let current = window.at_minute(now);
        if current.index == self.minute {
            return Window { count: current.count.saturating_sub(self.count).saturating_add(used), ..current };
        }
        match used.saturating_sub(self.count) {
            0 => window,
            beyond => Window { count: current.count.saturating_add(beyond), ..current },
        }
    }
}

impl fmt::Display for HeldTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.count, self.minute)?;
        self.scopes.iter().try_for_each(|scope| write!(f, " {}", scope.number()))
    }
}

impl FromStr for HeldTokens {
    type Err = HeldTokensError;

    fn from_str(text: &str) -> Result<Self, HeldTokensError> {
        let mut parts = text.split(' ');
        let mut next = || parts.next().ok_or(HeldTokensError);
        let count = next()?.parse().map_err(|_| HeldTokensError)?;
        let minute = next()?.parse().map_err(|_| HeldTokensError)?;
        let scope = |part: &str| part.parse().ok().and_then(TokenScope::from_number).ok_or(HeldTokensError);
        let scopes = parts.map(scope).collect::<Result<_, _>>()?;
        Ok(Self { count, minute, scopes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_tokens_round_trip_as_text() {
        let key = |number| TokenScope::Key(KeyNumber::new(number));
        for scopes in [vec![], vec![TokenScope::Account], vec![TokenScope::Account, key(0), key(u32::MAX)]] {
            let tokens = HeldTokens { count: u32::MAX, minute: -3, scopes };
            assert_eq!(tokens.to_string().parse(), Ok(tokens));
        }
        for text in ["", "1", "x 1", "1 x", "1 2 -2", "1 2 4294967296", "1 2 ", "-1 2"] {
            assert_eq!(text.parse::<HeldTokens>(), Err(HeldTokensError), "{text:?}");
        }
    }

    #[test]
    fn what_was_used_replaces_what_was_held_and_counts_beyond_it_later() {
        let tokens = HeldTokens { count: 40, minute: 7, scopes: vec![TokenScope::Account] };
        let window = |index, count| Window { index, count };
        // before, the minute of the settlement, used, after
        let table = [
            (window(7, 100), 7, 0, window(7, 60)),
            (window(7, 100), 7, 15, window(7, 75)),
            (window(7, 100), 7, 90, window(7, 150)),
            (window(7, 100), 7, u32::MAX, window(7, u32::MAX)),
            // A clock that lags.
            (window(7, 100), 6, 90, window(7, 150)),
            // The minute is over, with or without other requests in the next one.
            (window(8, 100), 8, 0, window(8, 100)),
            (window(8, 100), 8, 40, window(8, 100)),
            (window(8, 100), 8, 90, window(8, 150)),
            (window(8, 100), 7, 90, window(8, 150)),
            (window(7, 100), 8, 90, window(8, 50)),
            (window(7, 100), 8, 40, window(7, 100)),
            (window(7, 100), 70, 90, window(70, 50)),
            // Its clock was far ahead when it was opened.
            (window(7, 100), 2, 0, window(7, 100)),
            (window(7, 100), 2, 90, window(2, 50)),
        ];
        for (before, minute, used, after) in table {
            let now = Timestamp::from_unix_millis(minute * 60_000 + 59_999);
            assert_eq!(tokens.settled_in(before, used, now), after, "{before:?} {minute} {used}");
        }
    }
}
