//! The whole feed, called the way the gateway calls it.

mod garbage;
mod routes;
mod stream;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use metering_core::{Clock, Timestamp};
use serde_json::Value;

use super::{SampleFeed, SampleResponse};

const BLOCK_TIME: Duration = Duration::from_secs(12);

/// 2026-11-21T08:00:00Z.
const NOW: Timestamp = Timestamp::from_unix_millis(1_795_248_000_000);

/// The latest final block at that time: 64 before the 24,036,000th since genesis.
const FINALIZED: u64 = 24_035_936;

/// A clock that is set by hand.
#[derive(Debug)]
pub(crate) struct ManualClock(AtomicI64);

impl ManualClock {
    pub(crate) fn at(now: Timestamp) -> Self {
        Self(AtomicI64::new(now.unix_millis()))
    }

    fn advance(&self, time: Duration) {
        self.0.fetch_add(i64::try_from(time.as_millis()).unwrap(), Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_millis(self.0.load(Ordering::Relaxed))
    }
}

fn feed_at(now: Timestamp) -> (SampleFeed, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at(now));
    (SampleFeed::new(Arc::clone(&clock) as Arc<dyn Clock>, BLOCK_TIME), clock)
}

/// Status and body of the response to a target.
fn request(feed: &SampleFeed, target: &str) -> (u16, String) {
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    match feed.respond(path, query, None) {
        SampleResponse::Json { status, body } => (status, String::from_utf8(body.to_vec()).unwrap()),
        SampleResponse::Events(_) => panic!("{target} responds with events"),
    }
}

fn request_json(feed: &SampleFeed, target: &str) -> (u16, Value) {
    let (status, body) = request(feed, target);
    (status, serde_json::from_str(&body).unwrap())
}
