//! Many concurrent connections on one key: exactly as many requests pass as are allowed.

use std::time::Duration;

use metering_tests::load::{LoadResult, Stop, request, run};
use metering_tests::server::Server;
use metering_tests::site::{IssuedAccount, Site};

use crate::support::calendar::{away_from_midnight, in_one_minute, minute_with};
use crate::support::wire::{BASE, amount, balance, plan_with_long_timeout, usage_events};

const CONNECTIONS: usize = 64;

fn send_concurrently(server: &Server, account: &IssuedAccount, requests: u64) -> LoadResult {
    let call = vec![request("GET", BASE, Some(&account.api_key), &[])];
    let result = run(plan_with_long_timeout(server.address(), CONNECTIONS, Stop::AfterRequests(requests), call));
    assert_eq!((result.responses(), result.errors), (requests, 0), "{result:?}");
    result
}

#[test]
fn credit_for_n_calls_admits_exactly_n_requests() {
    let site = Site::verified();
    let server = site.server().start();
    // credits, accepted requests, balance: 720 calls, 720 and a fraction, and one
    for (credits, calls, left) in
        [("0.1", 720, 0), ("0.10000001", 721, 72 - 1_000_000), ("0.00000001", 1, 72 - 1_000_000)]
    {
        let account = site.account(credits);
        let result = send_concurrently(&server, &account, 1_200);
        assert_eq!((result.with_status(200), result.with_status(402)), (calls, 1_200 - calls), "{result:?}");
        let client = server.client_with(&account.api_key);
        assert_eq!((balance(&client), usage_events(&client)), (amount(left), calls));
    }
}

#[test]
fn minute_cap_admits_exactly_its_number() {
    in_one_minute(|| {
        let site = Site::new();
        let server = site.server().start();
        let account = site.account_with_caps("10", 100, 0);
        let client = server.client_with(&account.api_key);
        minute_with(Duration::from_secs(12));
        let first = client.get(BASE).expect(200);
        assert_eq!(first.header("ratelimit-policy"), Some("\"minute\";q=100;w=60"));
        let state = first.header("ratelimit").unwrap().to_owned();
        assert!(state.starts_with("\"minute\";r=99;t="), "{state}");
        let result = send_concurrently(&server, &account, 800);
        assert_eq!((result.with_status(200), result.with_status(429)), (99, 701), "{result:?}");

        let refused = client.get(BASE).expect(429);
        let body = refused.json();
        assert_eq!((refused.error().as_str(), body["limit_window"].as_str()), ("rate_limited", Some("minute")));
        assert_eq!(body["rate_limits"].to_string(), "{\"requests_per_day\":0,\"requests_per_minute\":100}");
        let wait = body["retry_after_sec"].as_u64().unwrap();
        assert!((1..=60).contains(&wait), "{wait}");
        assert_eq!(refused.header("retry-after"), Some(wait.to_string().as_str()));
        assert_eq!(refused.header("ratelimit"), Some(format!("\"minute\";r=0;t={wait}").as_str()));
        assert_eq!(refused.header("x-bds-credit-charged"), None);
        // Account endpoints are not metered, so caps do not apply to them.
        assert_eq!((balance(&client), usage_events(&client)), (amount(72_000_000_000 - 100_000_000), 100));
        site.verify();
    });
}

#[test]
fn day_cap_admits_exactly_its_number_across_restarts() {
    let site = Site::verified();
    let account = site.account_with_caps("10", 0, 150);
    away_from_midnight();
    let server = site.server().start();
    let result = send_concurrently(&server, &account, 700);
    assert_eq!((result.with_status(200), result.with_status(429)), (150, 550), "{result:?}");
    server.kill();
    let server = site.server().start();
    let refused = server.client_with(&account.api_key).get(BASE).expect(429);
    let body = refused.json();
    assert_eq!(body["limit_window"], "day");
    let wait = body["retry_after_sec"].as_u64().unwrap();
    assert!((1..=86_400).contains(&wait), "{wait}");
    assert_eq!(refused.header("ratelimit-policy"), Some("\"day\";q=150;w=86400"));
    assert_eq!(refused.header("ratelimit"), Some(format!("\"day\";r=0;t={wait}").as_str()));
}
