//! Budgets and rate limits of keys under load: exact, on one server and on two.

use std::time::Duration;

use metering_tests::load::{RunningLoad, Stop, request, start};
use metering_tests::server::Server;
use metering_tests::site::Site;
use serde_json::json;

use super::{Made, made};
use crate::support::calendar::{in_one_minute, minute_with};
use crate::support::wire::{BASE, plan_with_long_timeout, usage_events};

/// 600 base calls with these keys, on 64 connections; each key on one server.
fn storm(callers: &[(&Server, &Made)]) -> (u64, u64, u64) {
    let connections = 64 / callers.len();
    let calls = 600 / u64::try_from(callers.len()).unwrap();
    let loads: Vec<RunningLoad> = callers
        .iter()
        .map(|(server, key)| {
            let call = vec![request("GET", BASE, Some(&key.secret), &[])];
            start(plan_with_long_timeout(server.address(), connections, Stop::AfterRequests(calls), call), |_| ())
        })
        .collect();
    let results: Vec<_> = loads.into_iter().map(RunningLoad::join).collect();
    let with = |status| results.iter().map(|result| result.with_status(status)).sum();
    (with(200), with(402), with(429))
}

#[test]
fn budget_is_never_exceeded() {
    let site = Site::verified();
    let account = site.account("10");
    let servers = [site.server().start(), site.server().start()];
    let owner = servers[0].client_with(&account.api_key);
    // 360 base calls cost 0.05 credits.
    let one = made(&owner, &json!({"limit": "0.05"}));
    assert_eq!(storm(&[(&servers[0], &one)]), (360, 240, 0), "one server");
    let shared = made(&owner, &json!({"limit": "0.05", "limit_reset": "monthly"}));
    assert_eq!(storm(&[(&servers[0], &shared), (&servers[1], &shared)]), (360, 240, 0), "two servers");
    // Two keys with separate budgets share that of their parent key.
    let parent = made(&owner, &json!({"limit": "0.05", "scopes": ["call", "manage"]}));
    let maker = servers[1].client_with(&parent.secret);
    let children = [(); 2].map(|()| made(&maker, &json!({"limit": "0.04", "scopes": ["call"]})));
    assert_eq!(storm(&[(&servers[0], &children[0]), (&servers[1], &children[1])]), (360, 240, 0), "one parent");
    for key in [&one, &shared, &parent] {
        let document = owner.get(&key.path()).expect(200).json()["data"].clone();
        assert_eq!(document["limit_remaining"].to_string(), "0", "{document}");
    }
    assert_eq!(usage_events(&owner), 3 * 360);
}

#[test]
fn rate_limit_of_a_key_is_exact_and_leaves_others_alone() {
    in_one_minute(|| {
        let site = Site::new();
        let account = site.account("10");
        let servers = [site.server().start(), site.server().start()];
        let owner = servers[0].client_with(&account.api_key);
        minute_with(Duration::from_secs(20));
        let key = made(&owner, &json!({"requests_per_minute": 90}));
        assert_eq!(storm(&[(&servers[0], &key), (&servers[1], &key)]), (90, 0, 510));
        assert_eq!(owner.get(BASE).status, 200);
        site.verify();
    });
}
