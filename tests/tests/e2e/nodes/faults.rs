//! Nodes whose connection to the database fails: cut around commits, at random, or silent.

use std::thread;
use std::time::{Duration, Instant};

use metering_tests::database_proxy::DatabaseProxy;
use metering_tests::load::{RunningLoad, Stop};
use metering_tests::postgres::{Cluster, is_skipped};
use metering_tests::server::Server;
use metering_tests::site::Site;

use crate::nodes::{assert_all_recorded, count_with_status, load};
use crate::support::wire::{BASE, BASE_CALL, amount, balance, usage_events};

/// Nodes, each with its own link to the database.
fn proxied_nodes<const N: usize>(url: &str, cluster: &Cluster) -> ([DatabaseProxy; N], [Server; N], Site) {
    let proxies = [(); N].map(|()| DatabaseProxy::to(cluster.address()));
    // The site's own commands connect directly.
    let site = Site::on_database(url);
    let nodes = proxies.each_ref().map(|proxy| site.server().set("METERING_DATABASE", &proxy.through(url)).start());
    (proxies, nodes, site)
}

#[test]
fn every_response_is_true_when_commits_are_cut() {
    metering_tests::skip_if!(is_skipped());
    let cluster = Cluster::shared();
    let (proxies, nodes, site) = proxied_nodes(&cluster.fresh_schema(), cluster);
    let account = site.account("1000");
    proxies.iter().for_each(DatabaseProxy::cut_commits);
    let loads =
        nodes.each_ref().map(|node| load(node.address(), 8, Stop::After(Duration::from_secs(5)), &account.api_key));
    for round in 0..20 {
        thread::sleep(Duration::from_millis(200));
        // Occasionally cut all connections at once, even busy ones.
        if round % 5 == 4 {
            proxies[round % 3].cut_all();
        }
    }
    let results = loads.map(RunningLoad::join);
    let cuts: Vec<u32> = proxies.iter().map(DatabaseProxy::cuts).collect();
    eprintln!("{cuts:?} commits were cut; {} requests accepted", count_with_status(&results, 200));
    assert!(cuts.iter().all(|cuts| *cuts > 10), "{cuts:?}");
    proxies.iter().for_each(DatabaseProxy::clear);
    assert_all_recorded(&site, &nodes, &account.api_key, &results);
}

#[test]
fn sequential_requests_with_cut_commits_are_charged_once_or_refused() {
    metering_tests::skip_if!(is_skipped());
    let cluster = Cluster::shared();
    let url = cluster.fresh_schema();
    let ([proxy], [node], site) = proxied_nodes(&url, cluster);
    let account = site.account("1");
    let client = node.client_with(&account.api_key);
    proxy.cut_commits();
    for request in 1..=24 {
        let _ = client.get(BASE).expect(200);
        assert_eq!(usage_events(&client), request, "after {} cuts", proxy.cuts());
        assert_eq!(balance(&client), amount(7_200 * BASE_CALL - i64::try_from(request).unwrap() * BASE_CALL));
    }
    assert!(proxy.cuts() >= 12, "{}", proxy.cuts());
    site.verify();
}

#[test]
fn silent_database_ends_startup_in_bounded_time() {
    metering_tests::skip_if!(is_skipped());
    let proxy = DatabaseProxy::to(Cluster::shared().address());
    proxy.fall_silent();
    let url = format!("postgres://metering:hunter2@{}/postgres", proxy.address());
    let site = Site::on_database(&url);
    let started = Instant::now();
    let output = site.server().run();
    let took = started.elapsed();
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.stderr.contains(&format!("at {}: no response", proxy.address())), "{output:?}");
    assert!(output.stderr.contains(&proxy.address().to_string()) && !output.stderr.contains("hunter2"), "{output:?}");
    assert!(took < Duration::from_secs(9), "{took:?}");
}

#[test]
fn silent_host_is_skipped_for_a_working_one() {
    metering_tests::skip_if!(is_skipped());
    let cluster = Cluster::shared();
    let silent = DatabaseProxy::to(cluster.address());
    silent.fall_silent();
    let working = cluster.address().to_string();
    let url = cluster.fresh_schema().replace(&working, &format!("{},{working}", silent.address()));
    let site = Site::on_database(url);
    let (started, node) = (Instant::now(), site.server().start());
    let account = site.account("1");
    let took = started.elapsed();
    let client = node.client_with(&account.api_key);
    let sent = Instant::now();
    for _ in 0..3 {
        let _ = client.get(BASE).expect(200);
    }
    assert!(took < Duration::from_secs(60), "{took:?}");
    assert!(sent.elapsed() < Duration::from_secs(4), "the silent host was tried again: {:?}", sent.elapsed());
}

#[test]
fn read_only_primary_is_abandoned_until_it_accepts_writes() {
    metering_tests::skip_if!(is_skipped());
    let cluster = Cluster::start(&["fsync=off"]);
    let site = Site::on_database(cluster.url());
    let node = site.server().start();
    let account = site.account("1");
    let client = node.client_with(&account.api_key);
    let _ = client.get(BASE).expect(200);
    // Simulates a primary that became a standby; existing connections stay.
    for (setting, status) in [("on", 503), ("off", 200)] {
        cluster.run(&format!("ALTER SYSTEM SET default_transaction_read_only = {setting}"));
        cluster.run("SELECT pg_reload_conf()");
        // Each connection picks up reloaded settings at its own time; a charge is retried for ten seconds.
        let until = Instant::now() + Duration::from_secs(60);
        while client.get(BASE).status != status || node.client().get("/ready").status != status {
            assert!(Instant::now() < until, "the status never became {status}: {}", node.log());
            thread::sleep(Duration::from_millis(50));
        }
    }
    site.verify();
}

#[test]
fn database_silent_under_load_is_abandoned_and_found_again() {
    metering_tests::skip_if!(is_skipped());
    let cluster = Cluster::shared();
    let url = cluster.fresh_schema();
    let ([proxy], [node], site) = proxied_nodes(&url, cluster);
    let account = site.account("1000");
    let client = node.client_with(&account.api_key);
    let busy = load(node.address(), 16, Stop::After(Duration::from_secs(14)), &account.api_key);
    thread::sleep(Duration::from_secs(1));
    proxy.fall_silent();
    let started = Instant::now();
    let not_ready = node.client().get("/ready");
    let noticed = started.elapsed();
    assert_eq!((not_ready.status, not_ready.error().as_str()), (503, "storage_unavailable"));
    assert!(noticed < Duration::from_secs(13), "{noticed:?}");
    // Commits in progress wait for their outcome; requests that arrive in that time do not wait for them.
    let refused = client.get(BASE);
    let refusal = started.elapsed();
    assert_eq!(refused.status, 503, "{}", refused.text());
    assert!(refusal < Duration::from_secs(20), "{refusal:?}");
    proxy.clear();
    let cleared = Instant::now();
    while client.get(BASE).status != 200 {
        assert!(cleared.elapsed() < Duration::from_secs(60), "{}", node.log());
        thread::sleep(Duration::from_millis(100));
    }
    eprintln!(
        "/ready responded with 503 after {noticed:?}, a request was refused after {refusal:?}, accepted {:?} after",
        cleared.elapsed()
    );
    let results = [busy.join()];
    let accepted = count_with_status(&results, 200);
    assert_eq!(results[0].errors, 0, "{results:?}");
    assert_eq!(results[0].responses(), accepted + count_with_status(&results, 503), "{results:?}");
    assert_eq!(node.client().get("/ready").status, 200);
    assert_eq!(usage_events(&client), accepted + 1);
    site.verify();
}

/// Waits for a log line, which may appear after the response that it is about.
#[track_caller]
fn wait_for_log(node: &Server, parts: &[&str]) {
    let until = Instant::now() + Duration::from_secs(60);
    while !node.log().lines().any(|line| parts.iter().all(|word| line.contains(word))) {
        assert!(Instant::now() < until, "{parts:?}: {}", node.log());
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn database_errors_are_logged() {
    metering_tests::skip_if!(is_skipped());
    let cluster = Cluster::start(&["fsync=off"]);
    cluster.run("CREATE ROLE node LOGIN PASSWORD 'right'");
    cluster.run("CREATE SCHEMA node AUTHORIZATION node");
    cluster.admit("host all all all scram-sha-256");
    let hosts = format!("{},127.0.0.1:1", cluster.address());
    let site = Site::on_database(format!("postgres://node:right@{hosts}/postgres"));
    let node = site.server().set("METERING_LOG__FILTER", "info,metering_postgres=debug").start();
    let account = site.account("1");
    let client = node.client_with(&account.api_key);
    let _ = client.get(BASE).expect(200);
    let refused = |expected_text: &str| {
        let started = Instant::now();
        // In this order: after a failed charge, /ready needs no separate write.
        assert_eq!(node.client().get("/ready").status, 503, "{}", node.log());
        assert_eq!(client.get(BASE).status, 503, "{}", node.log());
        // Permanent errors are not retried.
        assert!(started.elapsed() < Duration::from_secs(8), "{:?}", started.elapsed());
        for line in ["a batch of charges could not be committed", "the store cannot be written to"] {
            wait_for_log(&node, &[line, expected_text]);
        }
    };
    cluster.run("REVOKE UPDATE ON node.meter, node.probe FROM node");
    refused("permission denied for table");
    cluster.run("GRANT UPDATE ON node.meter, node.probe TO node");
    let _ = client.get(BASE).expect(200);
    thread::sleep(Duration::from_millis(1_100));
    cluster.run("ALTER ROLE node PASSWORD 'another'");
    cluster.end_connections();
    refused("password authentication failed");
    wait_for_log(&node, &["cannot use a database host", "password authentication failed"]);
    cluster.run("ALTER ROLE node PASSWORD 'right'");
    site.verify();
}
