//! Every route of the default catalogue, and their consistency with each other.

use std::time::Duration;

use metering_core::Catalogue;
use metering_core::catalogue::{ParamLocation, RequestPath};
use serde_json::{Value, json};

use super::{BLOCK_TIME, FINALIZED, NOW, feed_at, request, request_json};
use crate::{SampleFeed, SampleResponse};

const POOL: &str = "0x88e6a0c2ddd26feeb64f039a2c41296fcb3f5640";
const USDC: &str = "0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48";
const WETH: &str = "0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2";
const DAI: &str = "0x6b175474e89094c44da98b954eedeac495271d0f";
const UNKNOWN_ADDRESS: &str = "0x00000000000000000000000000000000000000ff";

/// Parses a dollar amount of the sample to hundred-millionths.
fn usd_units(text: &Value) -> u64 {
    let text = text.as_str().unwrap();
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    format!("{whole}{fraction:0<8}").parse().unwrap()
}

/// A target for a template of the catalogue.
fn fill(template: &str) -> String {
    let finalized_seconds = NOW.unix_seconds() - 64 * 12;
    [
        ("{pool_address}", POOL.to_owned()),
        ("{token_address}", USDC.to_owned()),
        ("{block_number}", (FINALIZED - 7).to_string()),
        ("{time_interval}", "3600".to_owned()),
        ("{step_seconds}", "60".to_owned()),
        ("{start_timestamp}", (finalized_seconds - 3_600).to_string()),
        ("{end_timestamp}", finalized_seconds.to_string()),
    ]
    .iter()
    .fold(template.to_owned(), |target, (name, value)| target.replace(name, value))
}

/// The names of the members of a document, without those that only say that it is a sample.
fn members(document: &Value) -> Vec<&str> {
    let names = document.as_object().unwrap().keys().map(String::as_str);
    names.filter(|name| !matches!(*name, "sample" | "notice")).collect()
}

#[test]
fn examples_of_the_default_catalogue_are_current() {
    let catalogue = Catalogue::from_json(crate::ROUTES).unwrap();
    let (feed, _) = feed_at(NOW);
    for route in catalogue.routes() {
        let (mut target, mut query) = (route.template.to_string(), Vec::new());
        for param in &route.params {
            let Some(example) = &param.example else { continue };
            match param.location {
                ParamLocation::Path => target = target.replace(&format!("{{{}}}", param.name), example),
                ParamLocation::Query => query.push(format!("{}={example}", param.name)),
            }
        }
        let (response, example) = (route.response.as_ref().unwrap().value(), route.example.as_ref().unwrap().value());
        let properties = members(&response["properties"]);
        assert!(members(example).iter().all(|name| properties.contains(name)), "{target}");
        if route.sse {
            continue;
        }
        let query = query.join("&");
        let target = if query.is_empty() { target } else { format!("{target}?{query}") };
        let (status, body) = request_json(&feed, &target);
        assert_eq!((status, members(&body)), (200, members(example)), "{target}");
    }
}

#[test]
fn every_default_route_returns_sample_data() {
    let catalogue = Catalogue::from_json(crate::ROUTES).unwrap();
    let (feed, _) = feed_at(NOW);
    assert!(!catalogue.routes().is_empty());
    for route in catalogue.routes() {
        let target = fill(&route.template);
        let resolved = catalogue.resolve("GET", &RequestPath::parse(&target).unwrap(), None).unwrap();
        assert_eq!(resolved.route, route);
        if route.sse {
            assert!(matches!(feed.respond(&target, None, None), SampleResponse::Events(_)), "{target}");
            continue;
        }
        let (status, body) = request_json(&feed, &target);
        assert_eq!(status, 200, "{target}: {body}");
        assert_eq!(body["sample"], json!(true), "{target}");
        assert!(body["notice"].as_str().unwrap().contains("sample data"), "{target}");
        let number = if target.contains("/24035929") { FINALIZED - 7 } else { FINALIZED };
        assert_eq!(body["block_number"], json!(number), "{target}");
        assert_eq!(body["block_timestamp"], json!(1_506_816_000 + 12 * number), "{target}");
    }
}

#[test]
fn block_never_changes() {
    let (feed, _) = feed_at(NOW);
    let (_, body) = request(&feed, "/mpp/snapshot/allTrades/24000000");
    assert_eq!(body, include_str!("block-24000000.json").trim_end());
    let (later, _) = feed_at(NOW.saturating_add(Duration::from_secs(86_400 * 365)));
    assert_eq!(request(&later, "/mpp/snapshot/allTrades/24000000").1, body);
}

#[test]
fn missing_block_number_means_the_latest_final_block() {
    let (feed, _) = feed_at(NOW);
    for path in [
        "/mpp/ethPrice".to_owned(),
        "/mpp/snapshot/allTrades".to_owned(),
        format!("/mpp/snapshot/base/{POOL}"),
        format!("/mpp/snapshot/trades/{POOL}"),
        format!("/mpp/token/price/{WETH}/{POOL}"),
        format!("/mpp/tokenPrices/all/{WETH}"),
    ] {
        assert_eq!(request(&feed, &path), request(&feed, &format!("{path}/{FINALIZED}")), "{path}");
    }
}

#[test]
fn next_block_is_rejected_until_it_is_final() {
    let (feed, clock) = feed_at(NOW);
    let next = format!("/mpp/snapshot/allTrades/{}", FINALIZED + 1);
    let (status, body) = request_json(&feed, &next);
    assert_eq!((status, &body["error"]), (404, &json!("block_not_final")));
    assert_eq!(body["finalized_block"], json!(FINALIZED));
    clock.advance(BLOCK_TIME - Duration::from_millis(1));
    assert_eq!(request(&feed, &next).0, 404);
    clock.advance(Duration::from_millis(1));
    assert_eq!(request(&feed, &next).0, 200);
    assert_eq!(request_json(&feed, "/mpp/ethPrice").1["block_number"], json!(FINALIZED + 1));
}

#[test]
fn prices_agree_across_routes() {
    let (feed, _) = feed_at(NOW);
    let get = |target: String| request_json(&feed, &target).1;
    let price = get(format!("/mpp/token/price/{WETH}/{POOL}"));
    let base = get(format!("/mpp/snapshot/base/{POOL}"));
    let all = get(format!("/mpp/tokenPrices/all/{WETH}"));
    let series = get(format!("/mpp/timeSeries/{WETH}/{POOL}/3600/600"));
    let bases = get(format!("/mpp/snapshot/base_all_pools/{WETH}"));
    assert_eq!(all["price_usd"], get("/mpp/ethPrice".to_owned())["price_usd"]);
    assert_eq!(all["prices"].as_array().unwrap().len(), bases["snapshots"].as_array().unwrap().len());
    let points = series["points"].as_array().unwrap();
    assert_eq!(points.len(), 7);
    for field in ["price", "price_usd"] {
        assert_eq!(base["token1"][field], price[field]);
        assert_eq!(all["prices"][0][field], price[field]);
        assert_eq!(bases["snapshots"][0]["token1"][field], price[field]);
        assert_eq!(points[6][field], price[field]);
    }
    // An hour earlier: 300 blocks.
    assert_eq!(points[0]["block_number"], json!(FINALIZED - 300));
    let then = get(format!("/mpp/token/price/{WETH}/{POOL}/{}", FINALIZED - 300));
    assert_eq!(points[0]["price_usd"], then["price_usd"]);
}

#[test]
fn volumes_are_the_sums_of_the_trades_that_are_listed() {
    let (feed, _) = feed_at(NOW);
    let end = NOW.unix_seconds() - 64 * 12;
    // The window excludes its first second: 300 blocks of 12 s.
    let (_, listed) = request_json(&feed, &format!("/mpp/poolTrades/{POOL}/{}/{end}", end - 3_599));
    let (_, volume) = request_json(&feed, &format!("/mpp/tradeVolume/{POOL}/3600"));
    let trades = listed["trades"].as_array().unwrap();
    assert!(trades.len() > 50, "{}", trades.len());
    assert_eq!(volume["trade_count"], json!(trades.len()));
    assert_eq!(
        usd_units(&volume["volume_usd"]),
        trades.iter().map(|trade| usd_units(&trade["value_usd"])).sum::<u64>()
    );
    for field in ["from_block", "to_block"] {
        assert_eq!(listed[field], volume[field]);
    }
    let (_, of_token) = request_json(&feed, &format!("/mpp/tradeVolumeAllPools/{USDC}/3600"));
    let pools = of_token["pools"].as_array().unwrap();
    assert_eq!(pools[0]["volume_usd"], volume["volume_usd"]);
    assert_eq!(pools[0]["volume"], volume["volume_token0"]);
    assert_eq!(
        usd_units(&of_token["volume_usd"]),
        pools.iter().map(|pool| usd_units(&pool["volume_usd"])).sum::<u64>()
    );
}

#[test]
fn trades_are_listed_up_to_the_latest_final_block_and_with_their_block() {
    let (feed, _) = feed_at(NOW);
    let end = NOW.unix_seconds() - 64 * 12;
    let (_, body) = request_json(&feed, &format!("/mpp/poolTrades/{POOL}/{}/{}", end - 600, i64::MAX));
    assert_eq!((&body["from_block"], &body["to_block"]), (&json!(FINALIZED - 50), &json!(FINALIZED)));
    for trade in body["trades"].as_array().unwrap() {
        let (_, block) = request_json(&feed, &format!("/mpp/snapshot/trades/{POOL}/{}", trade["block_number"]));
        assert_eq!(block["block_timestamp"], trade["block_timestamp"]);
        let hashes: Vec<_> = block["trades"].as_array().unwrap().iter().map(|trade| &trade["tx_hash"]).collect();
        assert!(hashes.contains(&&trade["tx_hash"]));
    }
    // No block in this range is final yet.
    let (status, body) = request_json(&feed, &format!("/mpp/poolTrades/{POOL}/{}/{}", end + 1, end + 600));
    assert_eq!((status, &body["from_block"], &body["trades"]), (200, &Value::Null, &json!([])));
}

#[test]
fn rankings_are_sorted_and_paged() {
    let (feed, _) = feed_at(NOW);
    for (route, list) in [("dailyActiveTokens", "tokens"), ("dailyActivePools", "pools")] {
        let (_, all) = request_json(&feed, &format!("/mpp/{route}?size=100"));
        let volumes: Vec<_> =
            all[list].as_array().unwrap().iter().map(|entry| usd_units(&entry["volume_usd"])).collect();
        assert!(volumes.is_sorted_by(|a, b| a >= b), "{volumes:?}");
        assert_eq!(all["total"], json!(volumes.len()));
        assert_eq!(all["time_interval"], json!(86_400));
        assert_eq!(all[list][0].get("metadata"), None);
        let (_, second) = request_json(&feed, &format!("/mpp/{route}?page=2&size=3&metadata=true"));
        assert_eq!(second[list].as_array().unwrap().len(), 3);
        assert_eq!(second[list][0]["volume_usd"], all[list][3]["volume_usd"]);
        assert!(second[list][0]["metadata"].is_object());
        let (_, usual) = request_json(&feed, &format!("/mpp/{route}"));
        assert_eq!(usual[list].as_array().unwrap().len(), volumes.len().min(10));
        let (_, beyond) = request_json(&feed, &format!("/mpp/{route}?page={}", i64::MAX));
        assert_eq!(beyond[list], json!([]));
    }
}

#[test]
fn rankings_of_a_fast_chain_cover_what_can_be_summed_up() {
    let clock = std::sync::Arc::new(super::ManualClock::at(NOW));
    let feed = SampleFeed::new(clock, Duration::from_millis(100));
    let (status, body) = request_json(&feed, "/mpp/dailyActivePools");
    assert_eq!((status, &body["time_interval"]), (200, &json!(720)));
    assert_eq!(body["to_block"].as_u64().unwrap() - body["from_block"].as_u64().unwrap(), 7_199);
}

#[test]
fn invalid_parameters_are_rejected_by_name() {
    let (feed, _) = feed_at(NOW);
    let now = NOW.unix_seconds();
    // target, status, error, parameter
    let table = [
        ("/mpp/nothing".to_owned(), 404, "unknown_route", ""),
        ("/other".to_owned(), 404, "unknown_route", ""),
        ("/mpp/ethPrice/".to_owned(), 400, "invalid_parameter", "block_number"),
        ("/mpp/ethPrice/-1".to_owned(), 400, "invalid_parameter", "block_number"),
        (format!("/mpp/ethPrice/{}", i64::MAX), 404, "block_not_final", ""),
        (format!("/mpp/pool/{UNKNOWN_ADDRESS}/metadata"), 404, "unknown_pool", ""),
        (format!("/mpp/pool/{}/metadata", &POOL[..40]), 400, "invalid_parameter", "pool_address"),
        (format!("/mpp/token/{UNKNOWN_ADDRESS}/pools"), 404, "unknown_token", ""),
        (format!("/mpp/token/price/{DAI}/{POOL}"), 400, "invalid_parameter", "token_address"),
        (format!("/mpp/tradeVolume/{POOL}/0"), 400, "invalid_parameter", "time_interval"),
        (format!("/mpp/tradeVolume/{POOL}/-5"), 400, "invalid_parameter", "time_interval"),
        (format!("/mpp/tradeVolume/{POOL}/86400"), 200, "", ""),
        (format!("/mpp/tradeVolume/{POOL}/86401"), 400, "invalid_parameter", "time_interval"),
        (format!("/mpp/tradeVolumeAllPools/{USDC}/{}", i64::MAX), 400, "invalid_parameter", "time_interval"),
        (format!("/mpp/poolTrades/{POOL}/{now}/{}", now - 1), 400, "invalid_parameter", "end_timestamp"),
        (format!("/mpp/poolTrades/{POOL}/-1/{now}"), 400, "invalid_parameter", "start_timestamp"),
        (format!("/mpp/poolTrades/{POOL}/0/{now}"), 400, "invalid_parameter", "start_timestamp"),
        (format!("/mpp/timeSeries/{WETH}/{POOL}/3600/0"), 400, "invalid_parameter", "step_seconds"),
        (format!("/mpp/timeSeries/{WETH}/{POOL}/60/61"), 400, "invalid_parameter", "step_seconds"),
        (format!("/mpp/timeSeries/{WETH}/{POOL}/999/1"), 200, "", ""),
        (format!("/mpp/timeSeries/{WETH}/{POOL}/1000/1"), 400, "invalid_parameter", "step_seconds"),
        (format!("/mpp/timeSeries/{DAI}/{POOL}/3600/60"), 400, "invalid_parameter", "token_address"),
        (format!("/mpp/timeSeries/{WETH}/{POOL}/{0}/{0}", i64::MAX), 400, "invalid_parameter", "time_interval"),
        ("/mpp/dailyActivePools?page=0".to_owned(), 400, "invalid_parameter", "page"),
        ("/mpp/dailyActivePools?size=0".to_owned(), 400, "invalid_parameter", "size"),
        ("/mpp/dailyActivePools?size=101".to_owned(), 400, "invalid_parameter", "size"),
        ("/mpp/dailyActiveTokens?metadata=maybe".to_owned(), 400, "invalid_parameter", "metadata"),
        ("/mpp/dailyActiveTokens?time_interval=0".to_owned(), 400, "invalid_parameter", "time_interval"),
    ];
    for (target, status, error, parameter) in table {
        let (given, body) = request_json(&feed, &target);
        assert_eq!(given, status, "{target}: {body}");
        assert_eq!(body["sample"], json!(true), "{target}");
        assert_eq!(body["error"].as_str().unwrap_or_default(), error, "{target}");
        let named = body["fields"].as_object().map(|fields| fields.keys().cloned().collect::<Vec<_>>().join(","));
        assert_eq!(named.unwrap_or_default(), parameter, "{target}");
    }
}

#[test]
fn response_without_final_block_says_so() {
    let (feed, _) = feed_at(metering_core::Timestamp::from_unix_millis(0));
    for target in ["/mpp/ethPrice", "/mpp/ethPrice/0", "/mpp/dailyActivePools", "/mpp/stream/allTrades"] {
        let (status, body) = request_json(&feed, target);
        assert_eq!((status, &body["error"]), (404, &json!("block_not_final")), "{target}");
        assert_eq!(body["finalized_block"], Value::Null, "{target}");
    }
}
