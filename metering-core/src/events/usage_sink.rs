//! Usage for the operator's own systems: changes of daily totals, as [CloudEvents] 1.0.2.
//!
//! A daily total can change long after its day, because a refund and a settled hold are booked on the day of their
//! request. So sinks receive differences. Each is staged in the store before it is sent, so a retry has the same ids
//! and contents: a receiver that counts each id once has exact sums.
//!
//! [CloudEvents]: https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md

use std::time::Duration;

use serde::Serialize;
use sha3::{Digest, Sha3_256};

use crate::access::account::AccountId;
use crate::access::key_id::{KeyId, KeyNumber};
use crate::clock::{Day, Timestamp};
use crate::events::delivery::{AttemptOutcome, AttemptResult, DeliveryState, Progress};
use crate::money::credits::Credits;
use crate::usage::UsageLine;

/// A sink of the operator for usage, and the state of its attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageSink {
    /// Its name in the configuration.
    pub name: String,
    /// The state of its attempts. Always pending, since retries never stop.
    pub progress: Progress,
}

/// How a turn of a sink ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SinkTurn {
    /// There was nothing to send; look again after this long.
    Idle(Duration),
    /// A batch was sent.
    Sent(AttemptOutcome),
}

/// The values of one daily total that a sink received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentUsage {
    /// The sink.
    pub sink: String,
    /// The account.
    pub account: AccountId,
    /// The UTC day.
    pub day: Day,
    /// Route, method and source.
    pub line: UsageLine,
    /// The key that the requests came with.
    pub key: KeyNumber,
    /// Its id, kept here after the key is deleted.
    pub key_id: KeyId,
    /// How many of its events were delivered.
    pub sequence: u32,
    /// The sum of these events.
    pub sent: UsageTotal,
    /// The sum after the next event, if one is staged.
    pub staged: Option<StagedTotal>,
}

/// Calls and credits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsageTotal {
    /// Accepted requests, including refunded ones.
    pub calls: u64,
    /// Their charges, minus refunds.
    pub credits: Credits,
}

/// A total that is being sent to a sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StagedTotal {
    /// The total.
    pub total: UsageTotal,
    /// When it was read.
    pub at: Timestamp,
}

/// An event: a CloudEvent in the JSON format.
#[derive(Debug, Serialize)]
struct UsageEvent<'a> {
    specversion: &'static str,
    id: String,
    source: &'a str,
    r#type: &'static str,
    subject: &'a str,
    time: Timestamp,
    datacontenttype: &'static str,
    sequence: String,
    data: UsageData<'a>,
}

#[derive(Debug, Serialize)]
struct UsageData<'a> {
    org_id: &'a str,
    day: Day,
    route_template: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    http_method: &'a str,
    client_source: &'a str,
    key_id: &'a KeyId,
    calls: i64,
    credits_used: String,
    credits_used_atoms: i64,
    calls_total: u64,
    credits_used_total: String,
    credits_used_total_atoms: i64,
}

impl UsageSink {
    /// A sink that is due now.
    #[must_use]
    pub const fn new(name: String, now: Timestamp) -> Self {
        Self { name, progress: Progress::new(now) }
    }

    /// The sink claimed at `now` by a process that ends its turn within `lease`; `None` if it is not due.
    #[must_use]
    pub fn claimed(self, now: Timestamp, lease: Duration) -> Option<Self> {
        if self.progress.next_at > now {
            return None;
        }
        let since = if self.is_failing() { self.progress.since } else { now };
        Some(Self { progress: Progress { since, ..self.progress }.claimed(now, lease), ..self })
    }

    /// After turn number `attempt` ended at `now`; `None`, and nothing changes, if it is not the current one. Failures are
    /// retried with the waits of webhooks, without an end: 410 is a failure like any other.
    #[must_use]
    pub fn finished(self, attempt: u32, turn: &SinkTurn, now: Timestamp) -> Option<Self> {
        let Self { name, progress } = self;
        if progress.attempts != attempt {
            return None;
        }
        let progress = match turn {
            SinkTurn::Idle(wait) => Progress { next_at: now.saturating_add(*wait), ..progress },
            SinkTurn::Sent(AttemptOutcome::Delivered { status }) => {
                let last = AttemptResult { at: now, status: Some(*status), error: None, response: None };
                Progress { since: now, next_at: now, last: Some(last), ..progress }
            }
            SinkTurn::Sent(failed) => {
                Progress { state: DeliveryState::Pending, ..progress.finished(attempt, failed, now)? }
            }
        };
        Some(Self { name, progress })
    }

    /// Whether its last batch failed.
    #[must_use]
    pub fn is_failing(&self) -> bool {
        self.progress.last.as_ref().is_some_and(|last| last.error.is_some())
    }
}

impl UsageSink {
    /// Since when it fails; `None` if it does not, or if no process has tried for a day, as when it was removed from the
    /// configuration.
    #[must_use]
    pub fn failing_since(&self, now: Timestamp) -> Option<Timestamp> {
        let is_tried = self.progress.next_at.saturating_add(Duration::from_secs(86_400)) > now;
        (self.is_failing() && is_tried).then_some(self.progress.since)
    }
}

impl UsageTotal {
    /// Nothing.
    pub const ZERO: Self = Self { calls: 0, credits: Credits::ZERO };
}

impl SentUsage {
    /// How many days back changes are looked for, today included.
    pub const DAYS: u32 = 35;
    /// How long it is kept, from the start of its day: longer than changes are looked for.
    const RETENTION: Duration = Duration::from_secs(37 * 24 * 60 * 60);
    /// The type of the events.
    pub const EVENT_TYPE: &str = "metering.usage.v1";

    /// When it is deleted.
    #[must_use]
    pub fn expires_at(&self) -> Timestamp {
        self.day.start().saturating_add(Self::RETENTION)
    }

    /// The staged event, as JSON; `None` if none is staged. `source` is the service, for the receiver.
    #[must_use]
    pub fn event(&self, source: &str) -> Option<serde_json::Value> {
        let StagedTotal { total, at } = self.staged?;
        let calls = i128::from(total.calls) - i128::from(self.sent.calls);
        let credits = Credits::from_atoms(total.credits.atoms().saturating_sub(self.sent.credits.atoms()));
        let sequence = self.sequence.saturating_add(1);
        let event = UsageEvent {
            specversion: "1.0",
            id: format!("{}-{sequence}", self.digest()),
            source,
            r#type: Self::EVENT_TYPE,
            subject: self.account.as_str(),
            time: self.time(at),
            datacontenttype: "application/json",
            // Padded, because the extension requires sorted texts.
            sequence: format!("{sequence:010}"),
            data: UsageData {
                org_id: self.account.as_str(),
                day: self.day,
                route_template: self.line.template(),
                model: self.line.model(),
                http_method: &self.line.http_method,
                client_source: self.line.source.as_str(),
                key_id: &self.key_id,
                calls: i64::try_from(calls).unwrap_or(i64::MAX),
                credits_used: credits.to_string(),
                credits_used_atoms: credits.atoms(),
                calls_total: total.calls,
                credits_used_total: total.credits.to_string(),
                credits_used_total_atoms: total.credits.atoms(),
            },
        };
        serde_json::to_value(event).ok()
    }

    /// Names the daily total and the sink.
    fn digest(&self) -> String {
        let UsageLine { route_template, http_method, source } = &self.line;
        let (source, key) = (source.as_str(), self.key.get());
        let parts =
            format!("{}\n{}\n{}\n{key}\n{source}\n{http_method}\n{route_template}", self.sink, self.account, self.day);
        let digest = Sha3_256::digest(parts.as_bytes());
        hex::encode(&digest[..16])
    }

    /// Within the day, so receivers who add up by day count it there.
    fn time(&self, staged_at: Timestamp) -> Timestamp {
        let (first, next) = (self.day.start(), Day::from_unix_days(self.day.unix_days().saturating_add(1)).start());
        staged_at.clamp(first, next.saturating_sub(Duration::from_millis(1)).max(first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usage::ClientSource;

    const NOON: Timestamp = Timestamp::from_unix_millis(1_795_262_400_000);
    const LEASE: Duration = Duration::from_secs(60);

    fn row() -> SentUsage {
        SentUsage {
            sink: "warehouse".to_owned(),
            account: "org_0123456789abcdefghij".parse().unwrap(),
            day: NOON.day(),
            line: UsageLine { route_template: "/a/{b}".into(), http_method: "GET".into(), source: ClientSource::Cli },
            key: KeyNumber::FIRST,
            key_id: "key_00112233445566778899".parse().unwrap(),
            sequence: 2,
            sent: UsageTotal { calls: 5, credits: Credits::from_atoms(7) },
            staged: Some(StagedTotal { total: UsageTotal { calls: 6, credits: Credits::from_atoms(3) }, at: NOON }),
        }
    }

    #[test]
    fn an_event_has_the_difference_and_the_total() {
        let event = row().event("https://api.example.com/usage/warehouse").unwrap();
        for (name, value) in [
            ("specversion", "1.0"),
            ("source", "https://api.example.com/usage/warehouse"),
            ("type", "metering.usage.v1"),
            ("subject", "org_0123456789abcdefghij"),
            ("time", "2026-11-21T12:00:00.000Z"),
            ("datacontenttype", "application/json"),
            ("sequence", "0000000003"),
        ] {
            assert_eq!(event[name], value, "{name}");
        }
        let data = &event["data"];
        assert_eq!((&data["calls"], &data["credits_used_atoms"]), (&1.into(), &(-4).into()));
        assert_eq!((&data["calls_total"], &data["credits_used_total_atoms"]), (&6.into(), &3.into()));
        assert_eq!(data["credits_used"], "-0.0000000006");
        assert_eq!(SentUsage { staged: None, ..row() }.event("x"), None);
    }

    #[test]
    fn an_event_names_route_and_model_apart() {
        let parts = |line: UsageLine| {
            let event = SentUsage { line, ..row() }.event("x").unwrap();
            (event["data"]["route_template"].clone(), event["data"].get("model").cloned())
        };
        assert_eq!(parts(row().line), ("/a/{b}".into(), None));
        assert_eq!(parts(row().line.of_model("m-*")), ("/a/{b}".into(), Some("m-*".into())));
    }

    #[test]
    fn an_id_names_one_event_of_one_total() {
        let row = row();
        let id = |row: &SentUsage| row.event("x").unwrap()["id"].as_str().unwrap().to_owned();
        assert_eq!(id(&row), id(&row.clone()));
        let line = |route: &str, method: &str| UsageLine {
            route_template: route.into(),
            http_method: method.into(),
            ..row.line.clone()
        };
        let others = [
            SentUsage { sequence: 3, ..row.clone() },
            SentUsage { sink: "other".to_owned(), ..row.clone() },
            SentUsage { day: row.day.minus_days(1), ..row.clone() },
            SentUsage { key: KeyNumber::new(1), ..row.clone() },
            SentUsage { line: line("/a", "GET"), ..row.clone() },
            SentUsage { line: line("/a/{b}", "POST"), ..row.clone() },
            SentUsage { line: row.line.clone().of_model("m"), ..row.clone() },
        ];
        for other in &others {
            assert_ne!(id(other), id(&row), "{other:?}");
        }
    }

    #[test]
    fn an_event_is_of_its_day_however_late_it_is() {
        let time = |at: Timestamp| {
            let staged = row().staged.map(|staged| StagedTotal { at, ..staged });
            SentUsage { staged, ..row() }.event("x").unwrap()["time"].as_str().unwrap().to_owned()
        };
        assert_eq!(time(NOON.saturating_add(Duration::from_secs(2 * 86_400))), "2026-11-21T23:59:59.999Z");
        assert_eq!(time(NOON.saturating_sub(Duration::from_secs(86_400))), "2026-11-21T00:00:00.000Z");
    }

    #[test]
    fn a_sink_waits_longer_after_each_failure_and_is_never_given_up() {
        let failed = SinkTurn::Sent(AttemptOutcome::of_response(500, None));
        let (mut sink, mut now, mut waits) = (UsageSink::new("a".to_owned(), NOON), NOON, Vec::new());
        for _ in 0..20 {
            sink = sink.claimed(now, LEASE).unwrap();
            assert_eq!(sink.clone().claimed(now, LEASE), None, "it is claimed");
            let attempt = sink.progress.attempts;
            assert_eq!(sink.clone().finished(attempt + 1, &failed, now), None);
            sink = sink.finished(attempt, &failed, now).unwrap();
            assert!(sink.is_failing());
            waits.push((sink.progress.next_at.unix_millis() - now.unix_millis()) / 1_000);
            now = sink.progress.next_at;
        }
        assert_eq!((waits[0], waits[1], waits[19]), (5, 5, 8 * 3_600));
        assert_eq!(sink.failing_since(now), Some(NOON));
        assert_eq!(sink.failing_since(now.saturating_add(Duration::from_secs(86_400))), None, "nobody tries");
        assert!(waits.is_sorted(), "{waits:?}");
        let sink = sink.claimed(now, LEASE).unwrap();
        let attempt = sink.progress.attempts;
        let sink = sink.finished(attempt, &SinkTurn::Sent(AttemptOutcome::of_response(202, None)), now).unwrap();
        assert!(!sink.is_failing());
        assert_eq!(sink.progress.next_at, now, "there may be more");
    }
}
