//! Any request at any time gets a response, and its JSON says that it is sample data.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{FutureExt, StreamExt};
use metering_core::Timestamp;
use proptest::prelude::*;
use serde_json::Value;

use super::{ManualClock, NOW};
use crate::{SampleFeed, SampleResponse};

/// Path segments: words of the routes, addresses, numbers of every size, and noise.
fn segment() -> impl Strategy<Value = String> {
    const WORDS: [&str; 14] = [
        "mpp",
        "pool",
        "token",
        "pools",
        "price",
        "metadata",
        "ethPrice",
        "snapshot",
        "base",
        "trades",
        "allTrades",
        "timeSeries",
        "poolTrades",
        "tradeVolume",
    ];
    const ADDRESSES: [&str; 3] = [
        "0x88e6a0c2ddd26feeb64f039a2c41296fcb3f5640",
        "0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48",
        "0x0000000000000000000000000000000000000000",
    ];
    prop_oneof![
        proptest::sample::select(&WORDS[..]).prop_map(str::to_owned),
        proptest::sample::select(&ADDRESSES[..]).prop_map(str::to_owned),
        number(),
        "\\PC{0,12}",
    ]
}

fn number() -> impl Strategy<Value = String> {
    prop_oneof![any::<i64>(), -3..3_i64, 24_000_000..24_100_000_i64, 1_795_000_000..1_796_000_000_i64]
        .prop_map(|number| number.to_string())
}

/// Targets of all routes with numbers, with any numbers.
fn target_with_numbers() -> impl Strategy<Value = String> {
    const POOL: &str = "0x88e6a0c2ddd26feeb64f039a2c41296fcb3f5640";
    const TOKEN: &str = "0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48";
    (0..8_usize, number(), number()).prop_map(|(shape, a, b)| match shape {
        0 => format!("/mpp/timeSeries/{TOKEN}/{POOL}/{a}/{b}"),
        1 => format!("/mpp/poolTrades/{POOL}/{a}/{b}"),
        2 => format!("/mpp/tradeVolume/{POOL}/{a}"),
        3 => format!("/mpp/tradeVolumeAllPools/{TOKEN}/{a}"),
        4 => format!("/mpp/dailyActivePools?page={a}&size={b}&metadata={a}&time_interval={b}"),
        5 => format!("/mpp/dailyActiveTokens?page={a}&size=5&metadata=true"),
        6 => format!("/mpp/stream/allTrades?from_epoch={a}"),
        _ => format!("/mpp/snapshot/base/{POOL}/{a}"),
    })
}

fn check(feed: &SampleFeed, target: &str, last_event_id: Option<&str>) {
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    match feed.respond(path, query, last_event_id) {
        SampleResponse::Json { status, body } => {
            assert!([200, 400, 404].contains(&status), "{target}: {status}");
            let body: Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(body["sample"], true, "{target}");
            assert_eq!(body["error"].is_string(), status != 200, "{target}");
        }
        SampleResponse::Events(mut events) => {
            let greeting = events.next().now_or_never().unwrap().unwrap();
            assert!(greeting.starts_with(b": "));
        }
    }
}

fn feed(now: Timestamp, block_time: Duration) -> SampleFeed {
    SampleFeed::new(Arc::new(ManualClock::at(now)), block_time)
}

proptest! {
    #[test]
    fn paths_of_any_kind_get_a_response(
        segments in proptest::collection::vec(segment(), 0..7),
        query in proptest::option::of("\\PC{0,30}"),
        last_event_id in proptest::option::of("\\PC{0,20}"),
    ) {
        let query = query.map_or_else(String::new, |query| format!("?{query}"));
        let target = format!("/mpp/{}{query}", segments.join("/"));
        check(&feed(NOW, Duration::from_secs(12)), &target, last_event_id.as_deref());
        check(&feed(NOW, Duration::from_secs(12)), &segments.concat(), last_event_id.as_deref());
    }

    #[test]
    fn numbers_of_any_size_get_a_response(
        target in target_with_numbers(),
        last_event_id in proptest::option::of(number()),
    ) {
        check(&feed(NOW, Duration::from_secs(12)), &target, last_event_id.as_deref());
    }

    #[test]
    fn clocks_and_block_times_of_any_kind_get_a_response(
        now in any::<i64>(),
        block_time_millis in prop_oneof![0..20_000_u64, any::<u64>()],
        target in target_with_numbers(),
    ) {
        let block_time = Duration::from_millis(block_time_millis);
        check(&feed(Timestamp::from_unix_millis(now), block_time), &target, None);
        check(&feed(NOW, block_time), &target, None);
    }
}
