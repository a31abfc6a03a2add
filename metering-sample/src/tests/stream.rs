//! The stream, in tokio's paused time, which the clock follows.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use metering_core::{Clock, Timestamp};
use serde_json::Value;
use tokio::time::Instant;

use super::{BLOCK_TIME, FINALIZED, NOW, request};
use crate::{SampleFeed, SampleResponse};

/// A clock on the runtime's time, which jumps ahead whenever everything sleeps.
#[derive(Debug)]
struct RuntimeClock {
    start: Instant,
}

impl Clock for RuntimeClock {
    fn now(&self) -> Timestamp {
        NOW.saturating_add(self.start.elapsed())
    }
}

fn feed(block_time: Duration) -> SampleFeed {
    SampleFeed::new(Arc::new(RuntimeClock { start: Instant::now() }), block_time)
}

fn open(feed: &SampleFeed, query: Option<&str>, last_event_id: Option<&str>) -> BoxStream<'static, Bytes> {
    match feed.respond("/mpp/stream/allTrades", query, last_event_id) {
        SampleResponse::Events(events) => events,
        SampleResponse::Json { body, .. } => panic!("{}", String::from_utf8_lossy(&body)),
    }
}

/// The block of an event; `None` for a comment.
fn block(chunk: &Bytes) -> Option<u64> {
    let text = std::str::from_utf8(chunk).unwrap();
    assert!(text.ends_with("\n\n"), "{text}");
    let id = text.strip_prefix("id: ")?.split('\n').next()?;
    Some(id.parse().unwrap())
}

/// The next chunks: the block of each, and the seconds until it arrived.
async fn follow(events: &mut BoxStream<'static, Bytes>, chunks: usize) -> Vec<(Option<u64>, u64)> {
    let start = Instant::now();
    let mut seen = Vec::new();
    for _ in 0..chunks {
        let chunk = events.next().await.unwrap();
        seen.push((block(&chunk), start.elapsed().as_secs()));
    }
    seen
}

#[tokio::test(start_paused = true)]
async fn a_stream_starts_with_the_latest_final_block_and_follows_the_chain() {
    let feed = feed(BLOCK_TIME);
    let mut events = open(&feed, None, None);
    let seen = follow(&mut events, 5).await;
    let blocks = [(FINALIZED, 0), (FINALIZED + 1, 12), (FINALIZED + 2, 24), (FINALIZED + 3, 36)];
    assert_eq!(seen[0], (None, 0));
    assert_eq!(seen[1..], blocks.map(|(block, seconds)| (Some(block), seconds)));
}

#[tokio::test(start_paused = true)]
async fn event_matches_the_response_of_its_blocks_route() {
    let feed = feed(BLOCK_TIME);
    let chunks: Vec<_> = open(&feed, None, None).take(2).collect().await;
    assert_eq!(chunks[0], ": synthetic sample data, not a real market\n\n");
    let (_, body) = request(&feed, &format!("/mpp/snapshot/allTrades/{FINALIZED}"));
    assert_eq!(chunks[1], format!("id: {FINALIZED}\nevent: block\ndata: {body}\n\n"));
}

#[tokio::test(start_paused = true)]
async fn keep_alive_is_sent_every_fifteen_seconds() {
    let feed = feed(Duration::from_secs(40));
    let mut events = open(&feed, None, None);
    let first = follow(&mut events, 2).await[1].0.unwrap();
    let (next, after) = (Some(first + 1), Some(first + 2));
    // A block is mined just when the stream opens, and every 40 seconds after that.
    let expected = [(None, 15), (None, 30), (next, 40), (None, 55), (None, 70), (after, 80), (None, 95)];
    assert_eq!(follow(&mut events, 7).await, expected);
}

#[tokio::test(start_paused = true)]
async fn a_replay_gives_every_block_at_once_and_then_follows_the_chain() {
    let feed = feed(BLOCK_TIME);
    let query = format!("from_epoch={}", FINALIZED - 300);
    let mut events = open(&feed, Some(&query), None);
    let seen = follow(&mut events, 303).await;
    assert_eq!(seen[0], (None, 0));
    for (seen, expected) in seen[1..302].iter().zip(FINALIZED - 300..=FINALIZED) {
        assert_eq!(*seen, (Some(expected), 0));
    }
    assert_eq!(seen[302], (Some(FINALIZED + 1), 12));
}

#[tokio::test(start_paused = true)]
async fn slow_client_misses_no_event() {
    let feed = feed(BLOCK_TIME);
    let mut events = open(&feed, None, None);
    follow(&mut events, 2).await;
    tokio::time::sleep(BLOCK_TIME * 5).await;
    let blocks: Vec<_> = follow(&mut events, 6).await.into_iter().map(|(block, _)| block.unwrap()).collect();
    assert_eq!(blocks, (FINALIZED + 1..=FINALIZED + 6).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn streams_start_at_the_requested_block() {
    let epoch = |number: u64| Some(format!("from_epoch={number}"));
    let seen = |number: u64| Some(number.to_string());
    // query, last event, first block
    let table = [
        (None, None, FINALIZED),
        (None, Some(String::new()), FINALIZED),
        (epoch(FINALIZED), None, FINALIZED),
        (epoch(FINALIZED + 1), None, FINALIZED + 1),
        (epoch(FINALIZED - 100_000), None, FINALIZED - 100_000),
        (None, seen(FINALIZED), FINALIZED + 1),
        (None, seen(FINALIZED - 5), FINALIZED - 4),
        (epoch(FINALIZED - 50), seen(FINALIZED - 5), FINALIZED - 4),
        // After a day, the originally requested block is too far back, but the resumed one is not.
        (epoch(FINALIZED - 200_000), seen(FINALIZED - 5), FINALIZED - 4),
    ];
    for (query, last_event_id, first) in table {
        // A new feed for each row, because waiting moves the clock.
        let mut events = open(&feed(BLOCK_TIME), query.as_deref(), last_event_id.as_deref());
        assert_eq!(follow(&mut events, 2).await[1].0, Some(first), "{query:?} {last_event_id:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn streams_with_an_invalid_start_are_rejected() {
    let feed = feed(BLOCK_TIME);
    // query, last event, parameter
    let table = [
        (Some(format!("from_epoch={}", FINALIZED + 2)), None, "from_epoch"),
        (Some(format!("from_epoch={}", FINALIZED - 100_001)), None, "from_epoch"),
        (Some("from_epoch=-1".to_owned()), None, "from_epoch"),
        (Some("from_epoch=x".to_owned()), None, "from_epoch"),
        (None, Some((FINALIZED + 1).to_string()), "Last-Event-ID"),
        (None, Some("1".to_owned()), "Last-Event-ID"),
        (None, Some("x".to_owned()), "Last-Event-ID"),
        (None, Some(i64::MAX.to_string()), "Last-Event-ID"),
    ];
    for (query, last_event_id, parameter) in table {
        let response = feed.respond("/mpp/stream/allTrades", query.as_deref(), last_event_id.as_deref());
        let SampleResponse::Json { status, body } = response else { panic!("{query:?} {last_event_id:?} is served") };
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((status, &body["error"]), (400, &Value::from("invalid_parameter")));
        assert!(body["fields"][parameter].is_string(), "{body}");
    }
}

#[tokio::test]
async fn a_long_replay_lets_others_run() {
    let feed = feed(BLOCK_TIME);
    let query = format!("from_epoch={}", FINALIZED - 5_000);
    let events = open(&feed, Some(&query), None);
    let others_ran = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&others_ran);
    let replay = tokio::spawn(async move {
        let blocks = events.take(5_000).count().await;
        (blocks, seen.load(Ordering::Relaxed))
    });
    let other = tokio::spawn(async move { others_ran.store(true, Ordering::Relaxed) });
    assert_eq!(replay.await.unwrap(), (5_000, true));
    other.await.unwrap();
}
