//! The health of one webhook's deliveries: the first thing an owner checks when events do not arrive.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::events::delivery::{AttemptResult, Delivery};

/// How the deliveries to a webhook are doing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WebhookHealth {
    /// How many deliveries are pending.
    pub waiting: u64,
    /// The first of them, which all others wait for; `None` if none is pending.
    pub first: Option<Delivery>,
    /// When the last event arrived; `None` if no stored event did.
    pub last_delivered_at: Option<Timestamp>,
}

/// How the deliveries to a webhook ended whose last attempt was in a period of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeliveryCounts {
    /// How many were delivered.
    pub delivered: u64,
    /// How many of those were delivered at the first attempt.
    pub at_first_attempt: u64,
    /// How many failed and are retried or parked.
    pub failed: u64,
}

impl DeliveryCounts {
    /// The period that is shown to people.
    pub const PERIOD: Duration = Duration::from_secs(7 * 24 * 60 * 60);
}

impl WebhookHealth {
    /// Since when the first pending delivery is retried, and how its last attempt failed; `None` unless one failed.
    ///
    /// ```
    /// use metering_core::events::WebhookHealth;
    ///
    /// assert_eq!(WebhookHealth::default().failing(), None);
    /// ```
    #[must_use]
    pub fn failing(&self) -> Option<(Timestamp, &AttemptResult)> {
        let progress = &self.first.as_ref()?.progress;
        let last = progress.last.as_ref().filter(|last| last.error.is_some())?;
        Some((progress.since, last))
    }

    /// The delivery that `other` waits for, if it is pending and another one is before it.
    #[must_use]
    pub fn before(&self, other: &Delivery) -> Option<&Delivery> {
        let first = self.first.as_ref()?;
        (other.progress.state == first.progress.state && other.id != first.id).then_some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::delivery::{AttemptOutcome, DeliveryId, Progress};
    use crate::events::event::{Event, NewEvent};
    use crate::events::event_data::EventData;
    use crate::events::webhook::WebhookId;

    const AT: Timestamp = Timestamp::from_unix_millis(1_795_262_400_000);

    fn delivery(id: i64, progress: Progress) -> Delivery {
        let event = Event::of(&NewEvent { account: None, data: EventData::TEST, created_at: AT }, id);
        Delivery { id: DeliveryId::new(id), webhook: WebhookId::OPERATOR, event, progress }
    }

    #[test]
    fn only_a_failed_attempt_is_failing() {
        let health = |progress| WebhookHealth { waiting: 1, first: Some(delivery(1, progress)), ..Default::default() };
        assert_eq!(health(Progress::new(AT)).failing(), None, "its first attempt is still to come");
        let lease = std::time::Duration::from_secs(30);
        let failed = AttemptOutcome::of_response(500, None);
        let failed = Progress::new(AT).claimed(AT, lease).finished(1, &failed, AT).unwrap();
        let health = health(failed);
        let (since, last) = health.failing().unwrap();
        assert_eq!((since, last.status), (AT, Some(500)));
    }

    #[test]
    fn pending_deliveries_wait_for_the_first() {
        let first = delivery(1, Progress::new(AT));
        let health = WebhookHealth { waiting: 2, first: Some(first.clone()), last_delivered_at: None };
        assert_eq!(health.before(&delivery(2, Progress::new(AT))), Some(&first));
        assert_eq!(health.before(&first), None);
        let lease = std::time::Duration::from_secs(30);
        let done = AttemptOutcome::Delivered { status: 204 };
        let done = Progress::new(AT).claimed(AT, lease).finished(1, &done, AT).unwrap();
        assert_eq!(health.before(&delivery(2, done)), None, "it waits for nothing");
        assert_eq!(WebhookHealth::default().before(&first), None);
    }
}
