//! Nodes whose connection to the database fails: cut around commits, at random, or silent.

use std::thread;
use std::time::{Duration, Instant};

use metering_tests::link::Link;
use metering_tests::load::{RunningLoad, Stop};
use metering_tests::postgres::{Cluster, is_skipped};
use metering_tests::server::Server;
use metering_tests::site::Site;

use crate::nodes::{answered, load, settled};
use crate::wire::{BASE, BASE_CALL, amount, balance, usage_events};

/// Nodes, each with its own link to the database.
fn linked_nodes<const N: usize>(url: &str, cluster: &Cluster) -> ([Link; N], [Server; N], Site) {
    let links = [(); N].map(|()| Link::to(cluster.address()));
    // The site's own commands connect directly.
    let site = Site::on_database(url);
    let nodes = links.each_ref().map(|link| site.server().set("METERING_DATABASE", &link.through(url)).start());
    (links, nodes, site)
}

#[test]
fn a_link_that_is_cut_around_commits_leaves_every_answer_true() {
    if is_skipped() {
        return;
    }
    let cluster = Cluster::shared();
    let (links, nodes, site) = linked_nodes(&cluster.fresh_schema(), cluster);
    let account = site.account("1000");
    links.iter().for_each(Link::cut_commits);
    let loads =
        nodes.each_ref().map(|node| load(node.address(), 8, Stop::After(Duration::from_secs(5)), &account.api_key));
    for turn in 0..20 {
        thread::sleep(Duration::from_millis(200));
        // Occasionally cut all connections at once, whatever they are doing.
        if turn % 5 == 4 {
            links[turn % 3].cut_all();
        }
    }
    let results = loads.map(RunningLoad::join);
    let cuts: Vec<u32> = links.iter().map(Link::cuts).collect();
    eprintln!("{cuts:?} commits were cut; {} requests accepted", answered(&results, 200));
    assert!(cuts.iter().all(|cuts| *cuts > 10), "{cuts:?}");
    links.iter().for_each(Link::clear);
    settled(&site, &nodes, &account.api_key, &results);
}

#[test]
fn requests_one_by_one_over_a_link_that_cuts_commits_are_each_charged_once_or_refused() {
    if is_skipped() {
        return;
    }
    let cluster = Cluster::shared();
    let url = cluster.fresh_schema();
    let ([link], [node], site) = linked_nodes(&url, cluster);
    let account = site.account("1");
    let client = node.client_with(&account.api_key);
    link.cut_commits();
    for request in 1..=24 {
        let _ = client.get(BASE).expect(200);
        assert_eq!(usage_events(&client), request, "after {} cuts", link.cuts());
        assert_eq!(balance(&client), amount(7_200 * BASE_CALL - i64::try_from(request).unwrap() * BASE_CALL));
    }
    assert!(link.cuts() >= 12, "{}", link.cuts());
    site.verify();
}

#[test]
fn a_database_that_says_nothing_ends_a_start_in_bounded_time() {
    if is_skipped() {
        return;
    }
    let link = Link::to(Cluster::shared().address());
    link.fall_silent();
    let url = format!("postgres://metering:hunter2@{}/postgres", link.address());
    let site = Site::on_database(&url);
    let begun = Instant::now();
    let ran = site.server().run();
    let took = begun.elapsed();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains(&format!("at {}: no response", link.address())), "{ran:?}");
    assert!(ran.stderr.contains(&link.address().to_string()) && !ran.stderr.contains("hunter2"), "{ran:?}");
    assert!(took < Duration::from_secs(4), "{took:?}");
}

#[test]
fn a_host_that_says_nothing_is_passed_over_for_one_that_works() {
    if is_skipped() {
        return;
    }
    let cluster = Cluster::shared();
    let silent = Link::to(cluster.address());
    silent.fall_silent();
    let working = cluster.address().to_string();
    let url = cluster.fresh_schema().replace(&working, &format!("{},{working}", silent.address()));
    let site = Site::on_database(url);
    let (begun, node) = (Instant::now(), site.server().start());
    let account = site.account("1");
    let took = begun.elapsed();
    let client = node.client_with(&account.api_key);
    let asked = Instant::now();
    for _ in 0..3 {
        let _ = client.get(BASE).expect(200);
    }
    assert!(took < Duration::from_secs(20), "{took:?}");
    assert!(asked.elapsed() < Duration::from_secs(4), "the silent host was tried again: {:?}", asked.elapsed());
}

#[test]
fn a_primary_that_takes_no_more_writes_is_left_until_one_does() {
    if is_skipped() {
        return;
    }
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
        let until = Instant::now() + Duration::from_secs(15);
        while client.get(BASE).status != status || node.client().get("/ready").status != status {
            assert!(Instant::now() < until, "the status never became {status}: {}", node.log());
            thread::sleep(Duration::from_millis(50));
        }
    }
    site.verify();
}

#[test]
fn a_database_that_falls_silent_under_load_is_given_up_and_found_again() {
    if is_skipped() {
        return;
    }
    let cluster = Cluster::shared();
    let url = cluster.fresh_schema();
    let ([link], [node], site) = linked_nodes(&url, cluster);
    let account = site.account("1000");
    let client = node.client_with(&account.api_key);
    let busy = load(node.address(), 16, Stop::After(Duration::from_secs(14)), &account.api_key);
    thread::sleep(Duration::from_secs(1));
    link.fall_silent();
    let begun = Instant::now();
    let not_ready = node.client().get("/ready");
    let told = begun.elapsed();
    assert_eq!((not_ready.status, not_ready.error().as_str()), (503, "storage_unavailable"));
    assert!(told < Duration::from_secs(8), "{told:?}");
    // Commits in progress wait for their outcome; requests that arrive meanwhile do not wait for them.
    let refused = client.get(BASE);
    let refusal = begun.elapsed();
    assert_eq!(refused.status, 503, "{}", refused.text());
    assert!(refusal < Duration::from_secs(20), "{refusal:?}");
    link.clear();
    let cleared = Instant::now();
    while client.get(BASE).status != 200 {
        assert!(cleared.elapsed() < Duration::from_secs(30), "{}", node.log());
        thread::sleep(Duration::from_millis(100));
    }
    eprintln!(
        "/ready responded with 503 after {told:?}, a request was refused after {refusal:?}, accepted {:?} after",
        cleared.elapsed()
    );
    let results = [busy.join()];
    let accepted = answered(&results, 200);
    assert_eq!(results[0].errors, 0, "{results:?}");
    assert_eq!(results[0].responses(), accepted + answered(&results, 503), "{results:?}");
    assert_eq!(node.client().get("/ready").status, 200);
    assert_eq!(usage_events(&client), accepted + 1);
    site.verify();
}

/// Waits for a log line, which may appear after the response that it is about.
#[track_caller]
fn logged(node: &Server, words: &[&str]) {
    let until = Instant::now() + Duration::from_secs(5);
    while !node.log().lines().any(|line| words.iter().all(|word| line.contains(word))) {
        assert!(Instant::now() < until, "{words:?}: {}", node.log());
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn the_log_says_what_the_database_said() {
    if is_skipped() {
        return;
    }
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
    let refused = |said: &str| {
        let begun = Instant::now();
        // In this order: after a failed charge, /ready needs no write of its own.
        assert_eq!(node.client().get("/ready").status, 503, "{}", node.log());
        assert_eq!(client.get(BASE).status, 503, "{}", node.log());
        // Permanent errors are not retried.
        assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
        for line in ["a batch of charges could not be committed", "the store cannot be written to"] {
            logged(&node, &[line, said]);
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
    logged(&node, &["cannot use a database host", "password authentication failed"]);
    cluster.run("ALTER ROLE node PASSWORD 'right'");
    site.verify();
}
