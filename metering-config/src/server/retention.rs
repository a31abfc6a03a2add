//! How long to keep records of activity.

use std::time::Duration;

use metering_core::operators::Retention;
use serde::{Deserialize, Serialize};

use crate::ConfigError;

/// How many days to keep records of activity. Without a number, the default applies.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetentionConfig {
    /// The paths of requests in recent activity; by default kept with an account's newest 1,000 entries. The entries
    /// stay, with the templates of their routes.
    pub activity_days: Option<u32>,
    /// Events with their deliveries, at most 30, which is the default.
    pub events_days: Option<u32>,
    /// Finished deliveries (delivered or parked); by default as long as their events.
    pub deliveries_days: Option<u32>,
    /// Entries of the audit log; by default for ever.
    pub audit_days: Option<u32>,
}

impl RetentionConfig {
    /// Stores delete events after this many days.
    const MOST_EVENTS_DAYS: u32 = 30;
    /// Keeps sums of days in range.
    const MOST_DAYS: u32 = 36_500;

    /// How long to keep records.
    pub fn kept(&self) -> Retention {
        let kept = |days: Option<u32>| days.map(|days| Duration::from_secs(u64::from(days) * 24 * 60 * 60));
        let Self { activity_days, events_days, deliveries_days, audit_days } = *self;
        Retention {
            activity: kept(activity_days),
            events: kept(events_days),
            deliveries: kept(deliveries_days),
            audit: kept(audit_days),
        }
    }

    /// # Errors
    /// The first key that is out of range.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let table = [
            ("activity_days", self.activity_days, Self::MOST_DAYS),
            ("events_days", self.events_days, Self::MOST_EVENTS_DAYS),
            ("deliveries_days", self.deliveries_days, Self::MOST_EVENTS_DAYS),
            ("audit_days", self.audit_days, Self::MOST_DAYS),
        ];
        for (key, days, most) in table {
            if days.is_some_and(|days| !(1..=most).contains(&days)) {
                return Err(ConfigError::key(format!("retention.{key}"), format_args!("must be 1 to {most}")));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_in_range() {
        // the section, and the key that is refused
        let table = [
            ("", None),
            ("activity_days = 1\nevents_days = 30\ndeliveries_days = 7\naudit_days = 3650", None),
            ("events_days = 31", Some("retention.events_days")),
            ("deliveries_days = 31", Some("retention.deliveries_days")),
            ("audit_days = 0", Some("retention.audit_days")),
            ("activity_days = 36501", Some("retention.activity_days")),
        ];
        for (text, refused) in table {
            let checked = toml::from_str::<RetentionConfig>(text).unwrap().check();
            let problem = checked.err().map(|error| error.to_string());
            assert_eq!(problem.is_some(), refused.is_some(), "{text}: {problem:?}");
            assert!(problem.unwrap_or_default().contains(refused.unwrap_or_default()), "{text}");
        }
        assert!(RetentionConfig::default().kept().is_unlimited());
    }
}
