//! Deliveries: each takes one event to one webhook, until it is delivered or parked.
//!
//! The process that sends a delivery claims it for a limited time. If that process ends, the claim expires and another
//! process sends it again, so an event is delivered at least once. A webhook gets an account's next event when the
//! previous one is delivered or parked.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::events::event::Event;
use crate::events::event_data::EventKind;
use crate::events::webhook::{Webhook, WebhookId};
use crate::named_enum::named_enum;

/// The number of a delivery in its store. Never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeliveryId(i64);

impl DeliveryId {
    /// The delivery with this number.
    #[must_use]
    pub const fn new(number: i64) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }
}

named_enum! {
    /// The state of a delivery.
    pub enum DeliveryState {
        /// Waiting for its next attempt, or in progress.
        Pending = "pending",
        /// The webhook responded with a status of 200 to 299.
        Delivered = "delivered",
        /// It failed for [`Delivery::GIVE_UP_AFTER`], or the webhook is gone. It is not retried, unless it is resent.
        Parked = "parked",
    }
}

/// An event in delivery to a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Its id.
    pub id: DeliveryId,
    /// Where to.
    pub webhook: WebhookId,
    /// What.
    pub event: Event,
    /// Its progress.
    pub progress: Progress,
}

/// The state of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// The state.
    pub state: DeliveryState,
    /// How many attempts were made, the current one included.
    pub attempts: u32,
    /// When its retries began: at the time of the event, or of the last resend.
    pub since: Timestamp,
    /// When its next attempt is due, or when the claim of the current one expires. Meaningless unless pending.
    pub next_at: Timestamp,
    /// The result of the last attempt; `None` before the first one has ended.
    pub last: Option<AttemptResult>,
}

/// The result of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptResult {
    /// When it ended.
    pub at: Timestamp,
    /// The status of the response, if there was one.
    pub status: Option<u16>,
    /// Why it failed; `None` if it did not.
    pub error: Option<String>,
    /// The beginning of the response's body, if it failed and there was one.
    pub response: Option<String>,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// A 2xx status.
    Delivered {
        /// The status.
        status: u16,
    },
    /// Any other status, or no response.
    Failed {
        /// The status of the response, if there was one.
        status: Option<u16>,
        /// What happened, in a few words.
        error: String,
        /// How long the webhook requests to wait (RFC 9110, `Retry-After`).
        retry_after: Option<Duration>,
        /// The beginning of the response's body, if there was one.
        response: Option<String>,
    },
    /// The webhook refuses further events: status 410.
    Gone,
}

/// A delivery to send now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueDelivery {
    /// The delivery, claimed: its attempts include the one to make now.
    pub delivery: Delivery,
    /// Its webhook.
    pub webhook: Webhook,
}

/// Which deliveries to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeliveryFilter {
    /// Deliveries to this webhook; `None` for all webhooks.
    pub webhook: Option<WebhookId>,
    /// Deliveries in this state; `None` for all states.
    pub state: Option<DeliveryState>,
    /// Only events of this kind; `None` for all kinds.
    pub kind: Option<EventKind>,
}

/// How many deliveries wait, in the whole store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeliveryBacklog {
    /// How many are pending, those to webhooks that are switched off included.
    pub pending: u64,
    /// How many were parked.
    pub parked: u64,
    /// Since when the oldest delivery that may be sent now has been due; `None` if there is none. More than a few
    /// seconds means that no process delivers, or not fast enough: a delivery that waits for a retry is not due.
    pub oldest_due: Option<Timestamp>,
}

impl AttemptOutcome {
    /// The outcome of a response with this HTTP status. `retry_after` is the wait that it requests.
    ///
    /// ```
    /// use metering_core::events::AttemptOutcome;
    ///
    /// assert_eq!(AttemptOutcome::of_response(204, None), AttemptOutcome::Delivered { status: 204 });
    /// assert_eq!(AttemptOutcome::of_response(410, None), AttemptOutcome::Gone);
    /// assert!(matches!(AttemptOutcome::of_response(302, None), AttemptOutcome::Failed { .. }));
    /// ```
    #[must_use]
    pub fn of_response(status: u16, retry_after: Option<Duration>) -> Self {
        let error = match status {
            200..=299 => return Self::Delivered { status },
            410 => return Self::Gone,
            300..=399 => "the response is a redirect, which is not followed",
            _ => "the response status was not 2xx",
        };
        Self::Failed { status: Some(status), error: error.to_owned(), retry_after, response: None }
    }

    /// Adds the body of the response, if the attempt failed: as text, at most [`AttemptResult::MAX_RESPONSE_BYTES`] of
    /// it, and without control characters, which not every store can hold.
    ///
    /// ```
    /// use metering_core::events::AttemptOutcome;
    ///
    /// let AttemptOutcome::Failed { response, .. } = AttemptOutcome::of_response(500, None).with_body(b"out of\0disk\n")
    /// else { panic!("it failed") };
    /// assert_eq!(response.as_deref(), Some("out of\u{fffd}disk"));
    /// ```
    #[must_use]
    pub fn with_body(self, body: &[u8]) -> Self {
        let Self::Failed { status, error, retry_after, .. } = self else { return self };
        let body = body.get(..AttemptResult::MAX_RESPONSE_BYTES).unwrap_or(body);
        let is_shown = |c: char| !c.is_control() || matches!(c, '\n' | '\r' | '\t');
        let text = String::from_utf8_lossy(body);
        let text: String = text.chars().map(|c| if is_shown(c) { c } else { char::REPLACEMENT_CHARACTER }).collect();
        let text = text.trim_end();
        Self::Failed { status, error, retry_after, response: (!text.is_empty()).then(|| text.to_owned()) }
    }
}

impl AttemptResult {
    /// How many bytes of a response's body are kept.
    pub const MAX_RESPONSE_BYTES: usize = 1024;
}

impl Delivery {
    /// For how long a delivery is retried.
    pub const GIVE_UP_AFTER: Duration = Duration::from_secs(3 * 24 * 60 * 60);
}

impl Progress {
    /// The shortest and the longest wait after a failed attempt.
    const WAITS: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(8 * 60 * 60)];
    /// The longest wait that a webhook may request.
    const MAX_RETRY_AFTER: Duration = Duration::from_secs(8 * 60 * 60);

    /// A delivery that waits for its first attempt.
    #[must_use]
    pub const fn new(now: Timestamp) -> Self {
        Self { state: DeliveryState::Pending, attempts: 0, since: now, next_at: now, last: None }
    }

    /// Claimed at `now` by a process that sends it within `lease`.
    #[must_use]
    pub fn claimed(self, now: Timestamp, lease: Duration) -> Self {
        Self { attempts: self.attempts.saturating_add(1), next_at: now.saturating_add(lease), ..self }
    }

    /// After attempt number `attempt` ended at `now`; `None`, and nothing changes, if it is not the current one: the
    /// claim ran out, and another process made the next attempt.
    #[must_use]
    pub fn finished(self, attempt: u32, outcome: &AttemptOutcome, now: Timestamp) -> Option<Self> {
        if self.state != DeliveryState::Pending || self.attempts != attempt {
            return None;
        }
        let (state, status, error, response, retry_after) = match outcome {
            AttemptOutcome::Delivered { status } => (DeliveryState::Delivered, Some(*status), None, None, None),
            AttemptOutcome::Gone => (DeliveryState::Parked, Some(410), Some("410 Gone".to_owned()), None, None),
            AttemptOutcome::Failed { status, error, retry_after, response } => {
                let gives_up = now >= self.since.saturating_add(Delivery::GIVE_UP_AFTER);
                let state = if gives_up { DeliveryState::Parked } else { DeliveryState::Pending };
                (state, *status, Some(error.clone()), response.clone(), *retry_after)
            }
        };
        let last = Some(AttemptResult { at: now, status, error, response });
        let wait = self.backoff(now).max(retry_after.unwrap_or_default().min(Self::MAX_RETRY_AFTER));
        Some(Self { state, next_at: now.saturating_add(wait), last, ..self })
    }

    /// Queued again, regardless of its state. Retries start over. An attempt in progress is not waited for, and its
    /// outcome no longer counts once the next one is claimed: a receiver may get both at the same time.
    #[must_use]
    pub fn resent(self, now: Timestamp) -> Self {
        Self { state: DeliveryState::Pending, since: now, next_at: now, ..self }
    }

    /// Due now, if it waits for a later time, because its webhook was changed. Retries start over. An attempt in
    /// progress is not waited for.
    #[must_use]
    pub fn hastened(self, now: Timestamp) -> Self {
        if self.state == DeliveryState::Pending && self.next_at > now { self.resent(now) } else { self }
    }

    /// How long to wait after a failed attempt: as long as the delivery has been waiting already. Each wait is twice
    /// the one before.
    fn backoff(&self, now: Timestamp) -> Duration {
        let [shortest, longest] = Self::WAITS;
        let millis = now.unix_millis().saturating_sub(self.since.unix_millis());
        Duration::from_millis(u64::try_from(millis).unwrap_or(0)).clamp(shortest, longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::from_unix_millis(1_795_262_400_000);

    fn failed(status: Option<u16>, retry_after: Option<u64>) -> AttemptOutcome {
        let retry_after = retry_after.map(Duration::from_secs);
        AttemptOutcome::Failed { status, error: "it failed".to_owned(), retry_after, response: None }
    }

    #[test]
    fn it_is_retried_for_three_days_and_then_parked() {
        let (mut progress, mut now, mut waits) = (Progress::new(START), START, Vec::new());
        while progress.state == DeliveryState::Pending {
            progress = progress.claimed(now, Duration::from_secs(60));
            let attempt = progress.attempts;
            progress = progress.finished(attempt, &failed(Some(500), None), now).unwrap();
            waits.push((progress.next_at.unix_millis() - now.unix_millis()) / 1000);
            now = progress.next_at;
        }
        assert_eq!(waits[..5], [5, 5, 10, 20, 40]);
        assert!(waits.iter().skip(1).is_sorted() && waits.last() == Some(&28_800), "{waits:?}");
        assert!((20..30).contains(&waits.len()), "{waits:?}");
        let ended = progress.last.as_ref().unwrap().at;
        assert!(ended >= START.saturating_add(Delivery::GIVE_UP_AFTER));
        assert!(ended < START.saturating_add(Delivery::GIVE_UP_AFTER + Duration::from_secs(28_800)));
        assert_eq!(progress.state, DeliveryState::Parked);
        let again = progress.resent(now);
        assert_eq!((again.state, again.next_at, again.since), (DeliveryState::Pending, now, now));
        let again = again.claimed(now, Duration::from_secs(60));
        let attempt = again.attempts;
        let again = again.finished(attempt, &failed(None, None), now).unwrap();
        assert_eq!(again.next_at, now.saturating_add(Duration::from_secs(5)), "it begins anew");
    }

    #[test]
    fn the_beginning_of_a_failed_response_is_kept() {
        let claimed = Progress::new(START).claimed(START, Duration::from_secs(60));
        let kept = |status: u16, body: &[u8]| {
            let outcome = AttemptOutcome::of_response(status, None).with_body(body);
            claimed.clone().finished(1, &outcome, START).unwrap().last.unwrap().response
        };
        assert_eq!(kept(500, b"{\"error\":\t\"no disk\"}\r\n").as_deref(), Some("{\"error\":\t\"no disk\"}"));
        assert_eq!(kept(302, b"\x1b[31m\xff").as_deref(), Some("\u{fffd}[31m\u{fffd}"));
        assert_eq!(kept(500, &[b'x'; 5_000]).map(|text| text.len()), Some(AttemptResult::MAX_RESPONSE_BYTES));
        assert_eq!(kept(503, b" \n"), None);
        assert_eq!(kept(200, b"thanks"), None, "it was delivered");
        assert_eq!(kept(410, b"gone"), None);
    }

    #[test]
    fn only_the_current_attempt_ends_it() {
        let first = Progress::new(START).claimed(START, Duration::from_secs(60));
        let second = first.clone().claimed(first.next_at, Duration::from_secs(60));
        let delivered = AttemptOutcome::Delivered { status: 204 };
        assert_eq!(second.clone().finished(1, &delivered, START), None, "its claim ran out");
        let done = second.finished(2, &delivered, START).unwrap();
        assert_eq!((done.state, done.last.clone().unwrap().status), (DeliveryState::Delivered, Some(204)));
        assert_eq!(done.finished(2, &delivered, START), None, "it has ended");
    }

    #[test]
    fn an_attempt_that_was_in_progress_at_a_resend_does_not_count_after_the_next_claim() {
        let first = Progress::new(START).claimed(START, Duration::from_secs(60));
        let again = first.resent(START).claimed(START, Duration::from_secs(60));
        assert_eq!(again.attempts, 2);
        assert_eq!(again.clone().finished(1, &failed(Some(500), None), START), None);
        let delivered = AttemptOutcome::Delivered { status: 204 };
        let done = again.finished(2, &delivered, START).unwrap();
        assert_eq!(done.clone().finished(1, &failed(Some(500), None), START), None);
        assert_eq!(done.state, DeliveryState::Delivered);
    }

    #[test]
    fn a_webhook_may_ask_for_a_longer_wait_within_bounds() {
        let claimed = Progress::new(START).claimed(START, Duration::from_secs(60));
        // Retry-After, seconds until the next attempt
        for (asked, waits) in [(None, 5), (Some(1), 5), (Some(90), 90), (Some(u64::MAX), 8 * 60 * 60)] {
            let after = claimed.clone().finished(1, &failed(Some(429), asked), START).unwrap();
            assert_eq!(after.next_at, START.saturating_add(Duration::from_secs(waits)), "{asked:?}");
        }
    }

    #[test]
    fn a_webhook_that_is_gone_gets_nothing_again() {
        let claimed = Progress::new(START).claimed(START, Duration::from_secs(60));
        let gone = claimed.finished(1, &AttemptOutcome::Gone, START).unwrap();
        assert_eq!((gone.state, gone.last.unwrap().status), (DeliveryState::Parked, Some(410)));
    }
}
