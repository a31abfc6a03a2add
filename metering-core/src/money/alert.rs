//! Alerts: one event when a balance or a budget runs low, and one when it is exhausted.
//!
//! A level that was raised stays raised until credits are added, or until the budget's next period. Refunds do not lower
//! it, so that a balance that moves around the threshold does not raise an alert with every request.

use crate::money::credits::Credits;

/// How little remains of a balance or a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum AlertLevel {
    /// Enough.
    #[default]
    None,
    /// Less than the threshold.
    Low,
    /// Not enough for a request that was refused. Cheaper ones are still accepted.
    Short,
    /// Nothing.
    Exhausted,
}

impl AlertLevel {
    /// Every level, from the lowest to the highest.
    pub const ALL: [Self; 4] = [Self::None, Self::Low, Self::Short, Self::Exhausted];

    /// The level's number in stores.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Low => 1,
            Self::Short => 2,
            Self::Exhausted => 3,
        }
    }

    /// The level with this number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.number() == number)
    }

    /// The level of what remains. Without a threshold, it is never [`Low`](Self::Low).
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

    /// Raises the level to `to`, and returns the levels to send events for, which were not raised before:
    /// [`Low`](Self::Low) only with a threshold, and [`Short`](Self::Short) only if there is nothing worse.
    #[must_use]
    pub(crate) fn raise(&mut self, to: Self, threshold: Option<Credits>) -> Vec<Self> {
        let before = *self;
        if to <= before {
            return Vec::new();
        }
        *self = before.max(to);
        let is_new = |level: &Self| before < *level && *level <= to;
        let is_told = |level: &Self| match level {
            Self::Low => threshold.is_some(),
            Self::Short => to == Self::Short,
            Self::None | Self::Exhausted => true,
        };
        Self::ALL.into_iter().filter(|level| is_new(level) && is_told(level)).collect()
    }

    /// Lowers the level to that of what remains now.
    pub(crate) fn lower(&mut self, remaining: Credits, threshold: Option<Credits>) {
        *self = (*self).min(Self::of(remaining, threshold));
    }
}

/// When the events `balance.low` and `balance.exhausted` of an account are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BalanceAlert {
    /// The balance below which it is low; `None` for never.
    pub threshold: Option<Credits>,
    /// The highest level raised since credits were last added.
    pub raised: AlertLevel,
}

impl BalanceAlert {
    /// This alert with another threshold. A level that no longer applies to what the account has
    /// not spent ([`Totals::unspent`](crate::access::Totals::unspent)) is lowered.
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
        assert_eq!(AlertLevel::from_number(4), None);
    }

    #[test]
    fn each_level_is_raised_once() {
        use AlertLevel::{Exhausted, Low, None as Enough, Short};
        let ten = Some(atoms(10));
        // before, to, threshold, told
        let table = [
            (Enough, Low, ten, vec![Low]),
            (Enough, Exhausted, ten, vec![Low, Exhausted]),
            (Enough, Exhausted, None, vec![Exhausted]),
            (Enough, Short, None, vec![Short]),
            (Enough, Short, ten, vec![Low, Short]),
            (Short, Low, ten, vec![]),
            (Short, Short, ten, vec![]),
            (Short, Exhausted, ten, vec![Exhausted]),
            (Low, Exhausted, ten, vec![Exhausted]),
            (Low, Low, ten, vec![]),
            (Exhausted, Low, ten, vec![]),
            (Exhausted, Exhausted, ten, vec![]),
            (Enough, Enough, ten, vec![]),
        ];
        for (before, to, threshold, told) in table {
            let mut level = before;
            assert_eq!(level.raise(to, threshold), told, "{before:?} {to:?}");
            assert_eq!(level, before.max(to));
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
        assert_eq!(quiet.raised, AlertLevel::None, "the next charge tells");
    }
}
