//! Which kinds of events a webhook receives.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use crate::events::event_data::{EventKind, EventKindError};

/// The kinds of events that a webhook receives; all kinds if it names none. A test reaches every webhook.
///
/// ```
/// use metering_core::events::{EventKind, EventKinds};
///
/// let kinds: EventKinds = "balance.low payment.credited".parse()?;
/// assert!(kinds.has(EventKind::BalanceLow) && !kinds.has(EventKind::KeyLeaked));
/// assert!(EventKinds::default().has(EventKind::KeyLeaked));
/// # Ok::<(), metering_core::events::EventKindError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct EventKinds(BTreeSet<EventKind>);

impl EventKinds {
    /// Whether it receives events of this kind.
    #[must_use]
    pub fn has(&self, kind: EventKind) -> bool {
        self.0.is_empty() || kind == EventKind::WebhookTest || self.0.contains(&kind)
    }

    /// The kinds that it names; none for all.
    pub fn iter(&self) -> impl Iterator<Item = EventKind> {
        self.0.iter().copied()
    }
}

impl FromIterator<EventKind> for EventKinds {
    fn from_iter<I: IntoIterator<Item = EventKind>>(kinds: I) -> Self {
        Self(kinds.into_iter().collect())
    }
}

impl FromStr for EventKinds {
    type Err = EventKindError;

    /// Reads names, separated by spaces; none for all.
    fn from_str(text: &str) -> Result<Self, EventKindError> {
        text.split_whitespace().map(str::parse).collect()
    }
}

impl fmt::Display for EventKinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.0.iter().map(|kind| kind.as_str()).collect();
        f.write_str(&names.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_read_and_written_in_one_order() {
        let kinds: EventKinds = " key.leaked  balance.low\tkey.leaked ".parse().unwrap();
        assert_eq!(kinds.to_string(), "balance.low key.leaked");
        assert_eq!(kinds.to_string().parse(), Ok(kinds.clone()));
        assert!(kinds.iter().eq([EventKind::BalanceLow, EventKind::KeyLeaked]));
        assert_eq!(" ".parse(), Ok(EventKinds::default()));
        assert_eq!(EventKinds::default().to_string(), "");
    }

    #[test]
    fn no_kinds_are_all_kinds_and_a_test_reaches_everybody() {
        let none = EventKinds::default();
        assert!(EventKind::ALL.into_iter().all(|kind| none.has(kind)));
        for own in EventKind::ALL {
            let kinds: EventKinds = [own].into_iter().collect();
            assert!(EventKind::ALL.into_iter().all(|kind| kinds.has(kind) == (kind == own)), "{own}");
            assert!(kinds.has(EventKind::WebhookTest), "{own}");
        }
    }

    #[test]
    fn nobody_asks_for_tests_or_for_unknown_kinds() {
        for text in ["webhook.test", "balance.high", "balance.low,key.leaked", "Balance.low"] {
            let error = text.parse::<EventKinds>().unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("{text:?} is not a kind of event; the kinds are balance.low, ")),
                "{error}"
            );
            assert!(!error.contains(", webhook.test"), "{error}");
        }
    }
}
