//! Several servers on one PostgreSQL: what one of them confirms holds on all.

mod failover;
mod faults;
mod keys;
mod moving;
mod shared_file;
mod start;

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use metering_tests::load::{LoadResult, RunningLoad, Stop, request, start};
use metering_tests::postgres::{Cluster, fresh_schema, is_skipped};
use metering_tests::server::Server;
use metering_tests::site::Site;

use crate::support::calendar::{in_one_minute, minute_with};
use crate::support::wire::{BASE, BASE_CALL, amount, balance, plan_with_long_timeout, usage_events};

pub(crate) fn three_nodes(site: &Site) -> [Server; 3] {
    // At the same time: each finds the schema missing, and one creates it.
    let start = || site.server().start();
    thread::scope(|scope| [scope.spawn(start), scope.spawn(start), scope.spawn(start)].map(|node| node.join().unwrap()))
}

pub(crate) fn load(address: SocketAddr, connections: usize, stop: Stop, key: &str) -> RunningLoad {
    start(plan_with_long_timeout(address, connections, stop, vec![request("GET", BASE, Some(key), &[])]), |_| ())
}

pub(crate) fn count_with_status(results: &[LoadResult], status: u16) -> u64 {
    results.iter().map(|result| result.with_status(status)).sum()
}

#[test]
pub(crate) fn three_nodes_share_balance_and_caps_exactly() {
    in_one_minute(|| {
        metering_tests::skip_if!(is_skipped());
        let site = Site::on_database(Cluster::shared().fresh_schema());
        let nodes = three_nodes(&site);
        let (poor, capped) = (site.account("0.1"), site.account_with_caps("10", 200, 0));
        minute_with(Duration::from_secs(20));
        // account, accepted requests, status of the others
        for (account, accepted, refusal) in [(&poor, 720, 402), (&capped, 200, 429)] {
            let loads =
                nodes.each_ref().map(|node| load(node.address(), 21, Stop::AfterRequests(400), &account.api_key));
            let results = loads.map(RunningLoad::join);
            assert_eq!(count_with_status(&results, 200), accepted, "{results:?}");
            assert_eq!(count_with_status(&results, refusal), 1_200 - accepted, "{results:?}");
            for node in &nodes {
                assert_eq!(usage_events(&node.client_with(&account.api_key)), accepted);
            }
        }
        assert_eq!(balance(&nodes[0].client_with(&poor.api_key)), "0");
        site.verify();
    });
}

#[test]
fn replaced_key_is_refused_by_every_node() {
    let Some(url) = fresh_schema() else { return };
    let site = Site::on_database(url);
    let nodes = three_nodes(&site);
    let account = site.account("100");
    let mut key = account.api_key.clone();
    for round in 0..5 {
        let busy = nodes.each_ref().map(|node| load(node.address(), 4, Stop::AfterRequests(200), &key));
        let rotated = site.admin_json(&["account", "rotate-key", &account.org_id]);
        // From the moment that the command has ended, on any node.
        for node in &nodes {
            let _ = node.client_with(&key).get(BASE).expect(401);
        }
        let old_loads = busy.map(RunningLoad::join);
        assert_eq!(
            count_with_status(&old_loads, 200) + count_with_status(&old_loads, 401),
            600,
            "round {round}: {old_loads:?}"
        );
        key = rotated["api_key"].as_str().unwrap().to_owned();
        for node in &nodes {
            let _ = node.client_with(&key).get(BASE).expect(200);
        }
    }
    let _ = site.admin_json(&["account", "revoke", &account.org_id, "--yes"]);
    for node in &nodes {
        let _ = node.client_with(&key).get(BASE).expect(401);
    }
    site.verify();
}

#[test]
fn crashed_database_keeps_every_confirmed_charge() {
    metering_tests::skip_if!(is_skipped());
    let mut cluster = Cluster::start(&[]);
    let site = Site::on_database(cluster.fresh_schema());
    let nodes = three_nodes(&site);
    let account = site.account("1000");
    let loads =
        nodes.each_ref().map(|node| load(node.address(), 16, Stop::After(Duration::from_secs(6)), &account.api_key));
    for _ in 0..2 {
        thread::sleep(Duration::from_millis(1_500));
        cluster.crash();
    }
    assert_all_recorded(&site, &nodes, &account.api_key, &loads.map(RunningLoad::join));
}

/// Every request got a response, each accepted one is on record once, and the nodes still work.
pub(crate) fn assert_all_recorded(site: &Site, nodes: &[Server; 3], key: &str, results: &[LoadResult]) {
    let accepted = count_with_status(results, 200);
    assert!(accepted > 100, "{results:?}");
    for result in results {
        // 503 is a correct response: nothing was charged. Other statuses and missing responses are errors.
        assert_eq!(
            (result.responses(), result.errors),
            (result.with_status(200) + result.with_status(503), 0),
            "{result:?}"
        );
    }
    for node in nodes {
        assert_eq!(usage_events(&node.client_with(key)), accepted, "{results:?}");
    }
    let left = 1_000 * 7_200 - i64::try_from(accepted).unwrap();
    assert_eq!(balance(&nodes[0].client_with(key)), amount(left * BASE_CALL));
    site.verify();
    let _ = nodes[1].client_with(key).get(BASE).expect(200);
}
