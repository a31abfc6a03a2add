//! Alerts: one event when a balance or a budget runs low, and one when it is exhausted.
//!
//! A raised level stays raised until credits are added, or until the budget's next period. Refunds do not lower it, so
//! a balance that moves around the threshold does not raise an alert with every request.

use crate::money::credits::Credits;

/// Which alerts of a balance or a budget were raised: low, short, or both. Exhausted is both and more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum AlertLevel {
    /// Enough.
    #[default]
    None,
    /// Less than the threshold.
    Low,
    /// Not enough for a request that was refused. Cheaper ones are still accepted.
    Short,
    /// Less than the threshold, and not enough for a request that was refused.
    LowAndShort,
    /// Nothing.
    Exhausted,
}

impl AlertLevel {
    /// Every level.
    pub const ALL: [Self; 5] = [Self::None, Self::Low, Self::Short, Self::LowAndShort, Self::Exhausted];

    /// The level's number in stores.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Low => 1,
            Self::Short => 2,
            Self::LowAndShort => 3,
            Self::Exhausted => 4,
        }
    }

    /// The level with this number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.number() == number)
    }

    /// The level of the remaining credits. Without a threshold, it is never [`Low`](Self::Low).
    #[must_use]
    pub fn of(remaining: Credits, threshold: Option<Credits>) -> Self {
        if !remaining.is_positive() {
            Self::Exhausted
        } else if threshold.is_some_and(|threshold| remaining < threshold) {
            Self::Low
        } else {
            Self::None
        }
    }

    /// The level at which all alerts of both are raised.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        match (self, other) {
            (Self::Exhausted, _) | (_, Self::Exhausted) => Self::Exhausted,
            (Self::None, level) | (level, Self::None) => level,
            (Self::Low, Self::Low) => Self::Low,
            (Self::Short, Self::Short) => Self::Short,
            _ => Self::LowAndShort,
        }
    }

    /// Whether all alerts of `other` are raised at this level too.
    #[must_use]
    pub fn includes(self, other: Self) -> bool {
        self.union(other) == self
    }

    /// Raises the level to include `to`, and returns the alerts to send events for, which were not raised before:
    /// [`Low`](Self::Low) only with a threshold, and [`Short`](Self::Short) only if nothing worse is raised.
    #[must_use]
    pub(crate) fn raise(&mut self, to: Self, threshold: Option<Credits>) -> Vec<Self> {
        let before = *self;
        *self = before.union(to);
        let is_new = |alert: &Self| to.includes(*alert) && !before.includes(*alert);
        let is_sent = |alert: &Self| match alert {
            Self::Low => threshold.is_some(),
            Self::Short => to != Self::Exhausted,
            _ => true,
        };
        [Self::Low, Self::Short, Self::Exhausted].into_iter().filter(|alert| is_new(alert) && is_sent(alert)).collect()
    }

    /// Lowers the level to that of the remaining credits.
    pub(crate) fn lower(&mut self, remaining: Credits, threshold: Option<Credits>) {
        *self = match Self::of(remaining, threshold) {
            Self::Exhausted => *self,
            now if self.includes(now) => now,
            _ => Self::None,
        };
    }
}

/// When the events `balance.low` and `balance.exhausted` of an account are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BalanceAlert {
    /// The balance below which it is low; `None` for never.
    pub threshold: Option<Credits>,
    /// The level raised since credits were last added.
    pub raised: AlertLevel,
}

impl BalanceAlert {
    /// The level of a balance with this many unspent credits, after a request for `required` was refused, if one was.
    pub(crate) fn level(&self, unspent: Credits, required: Option<Credits>) -> AlertLevel {
        let level = AlertLevel::of(unspent, self.threshold);
        match required {
            Some(required) if unspent < required => level.union(AlertLevel::Short),
            // The credits held for other requests would cover it.
            _ => level,
        }
    }

    /// Whether refusing a request for `required` sends an event.
    pub(crate) fn is_raised_by(&self, unspent: Credits, required: Credits) -> bool {
        let mut raised = self.raised;
        !raised.raise(self.level(unspent, Some(required)), self.threshold).is_empty()
    }

    /// This alert with another threshold. A level that no longer applies to the account's unspent credits
    /// ([`Totals::unspent`](crate::access::Totals::unspent)) is lowered.
    #[must_use]
    pub fn with_threshold(self, threshold: Option<Credits>, unspent: Credits) -> Self {
        let mut raised = self.raised;
        raised.lower(unspent, threshold);
        Self { threshold, raised }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn atoms(atoms: i64) -> Credits {
        Credits::from_atoms(atoms)
    }

    #[test]
    fn the_level_follows_from_what_remains() {
        use AlertLevel::{Exhausted, Low, None as Enough};
        let table = [
            (10, Some(10), Enough),
            (9, Some(10), Low),
            (1, Some(10), Low),
            (0, Some(10), Exhausted),
            (-1, None, Exhausted),
            (1, None, Enough),
            (i64::MAX, Some(i64::MAX), Enough),
        ];
        for (remaining, threshold, level) in table {
            assert_eq!(AlertLevel::of(atoms(remaining), threshold.map(atoms)), level, "{remaining} {threshold:?}");
            assert_eq!(AlertLevel::from_number(level.number()), Some(level));
        }
        assert_eq!(AlertLevel::from_number(5), None);
    }

    #[test]
    fn each_level_is_raised_once() {
        use AlertLevel::{Exhausted, Low, LowAndShort, None as Enough, Short};
        let ten = Some(atoms(10));
        // before, to, threshold, events, after
        let table = [
            (Enough, Low, ten, vec![Low], Low),
            (Enough, Exhausted, ten, vec![Low, Exhausted], Exhausted),
            (Enough, Exhausted, None, vec![Exhausted], Exhausted),
            (Enough, Short, None, vec![Short], Short),
            (Enough, Short, ten, vec![Short], Short),
            (Enough, LowAndShort, ten, vec![Low, Short], LowAndShort),
            (Low, Short, ten, vec![Short], LowAndShort),
            (Short, Low, ten, vec![Low], LowAndShort),
            (Short, Short, ten, vec![], Short),
            (Short, Exhausted, ten, vec![Low, Exhausted], Exhausted),
            (LowAndShort, Low, ten, vec![], LowAndShort),
            (LowAndShort, Exhausted, ten, vec![Exhausted], Exhausted),
            (Low, Exhausted, ten, vec![Exhausted], Exhausted),
            (Low, Low, ten, vec![], Low),
            (Exhausted, LowAndShort, ten, vec![], Exhausted),
            (Exhausted, Exhausted, ten, vec![], Exhausted),
            (Enough, Enough, ten, vec![], Enough),
        ];
        for (before, to, threshold, events, after) in table {
            let mut level = before;
            assert_eq!(level.raise(to, threshold), events, "{before:?} {to:?}");
            assert_eq!(level, after, "{before:?} {to:?}");
        }
    }

    #[test]
    fn only_more_credits_or_a_lower_threshold_lower_a_level() {
        let raised = BalanceAlert { threshold: Some(atoms(10)), raised: AlertLevel::Exhausted };
        let level =
            |threshold: Option<i64>, balance| raised.with_threshold(threshold.map(atoms), atoms(balance)).raised;
        assert_eq!(level(Some(10), 0), AlertLevel::Exhausted);
        assert_eq!(level(Some(10), 9), AlertLevel::Low);
        assert_eq!(level(Some(9), 9), AlertLevel::None);
        assert_eq!(level(None, 9), AlertLevel::None);
        let quiet = BalanceAlert::default().with_threshold(Some(atoms(10)), atoms(5));
        assert_eq!(quiet.raised, AlertLevel::None, "the next charge raises it");
    }
}
