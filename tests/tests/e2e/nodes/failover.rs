//! A primary with a synchronous standby: every confirmed charge is on both, so either can be lost.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use metering_tests::load::{RunningLoad, Stop, request, start};
use metering_tests::postgres::{Cluster, is_skipped};
use metering_tests::server::Server;
use metering_tests::site::Site;

use crate::nodes::{assert_all_recorded, count_with_status, three_nodes};
use crate::support::wire::{BASE, plan_with_long_timeout, usage_events};

/// A primary whose commits wait for its standby.
fn primary_and_standby() -> (Cluster, Cluster) {
    let primary = Cluster::start(&["synchronous_standby_names=standby"]);
    let standby = primary.standby();
    (primary, standby)
}

fn failover_url(primary: &Cluster, standby: &Cluster) -> String {
    let hosts = format!("{},{}", primary.address(), standby.address());
    format!("postgres://metering@{hosts}/postgres?target_session_attrs=read-write")
}

/// The longest time without an accepted request, counted from `started`.
fn longest_pause(accepted: &Mutex<Vec<Instant>>, started: Instant) -> Duration {
    let mut moments = accepted.lock().unwrap().clone();
    moments.push(started);
    moments.sort_unstable();
    moments.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or_default()
}

#[test]
fn promoted_standby_has_every_confirmed_charge() {
    metering_tests::skip_if!(is_skipped());
    let (mut primary, standby) = primary_and_standby();
    let site = Site::on_database(failover_url(&primary, &standby));
    let nodes = three_nodes(&site);
    let account = site.account("1000");
    let (accepted, started) = (Arc::new(Mutex::new(Vec::new())), Instant::now());
    let loads = nodes.each_ref().map(|node| {
        let accepted = Arc::clone(&accepted);
        let calls = vec![request("GET", BASE, Some(&account.api_key), &[])];
        start(
            plan_with_long_timeout(node.address(), 16, Stop::After(Duration::from_secs(7)), calls),
            move |count_with_status| {
                if count_with_status.status == 200 {
                    accepted.lock().unwrap().push(Instant::now());
                }
            },
        )
    });
    thread::sleep(Duration::from_secs(2));
    primary.kill();
    // An operator, or a failover program, takes a while to notice.
    thread::sleep(Duration::from_secs(1));
    standby.promote();
    let results = loads.map(RunningLoad::join);
    let pause = longest_pause(&accepted, started);
    eprintln!("accepted {} requests, with a pause of {pause:?}", count_with_status(&results, 200));
    assert!(pause >= Duration::from_millis(900), "the failover caused no pause: {pause:?}");
    // One second for the operator, the promotion, and at most a second between two attempts.
    assert!(pause < Duration::from_secs(6), "{pause:?}");
    assert_all_recorded(&site, &nodes, &account.api_key, &results);
}

/// Sends one request from its own thread.
fn call(node: &Server, key: &str) -> thread::JoinHandle<(u16, Duration)> {
    let (client, started) = (node.client_with(key), Instant::now());
    thread::spawn(move || (client.get(BASE).status, started.elapsed()))
}

/// Waits until a commit waits for the standby, and returns its process id.
fn waiting_commit(primary: &Cluster) -> String {
    another_waiting_commit(primary, "0")
}

/// The same for a commit by another process than `known`, which may still be listed although it was ended.
fn another_waiting_commit(primary: &Cluster, known: &str) -> String {
    let sql = format!("SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND pid <> {known} LIMIT 1");
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let found = primary.run(&sql);
        if !found.is_empty() {
            return found;
        }
        assert!(Instant::now() < until, "no commit waited for the standby");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn commit_interrupted_while_replicating_is_charged_once() {
    metering_tests::skip_if!(is_skipped());
    let (primary, mut standby) = primary_and_standby();
    let site = Site::on_database(failover_url(&primary, &standby));
    let node = site.server().start();
    let account = site.account("1");
    let _ = node.client_with(&account.api_key).get(BASE).expect(200);
    standby.kill();
    // Cancelling the wait accepts the primary's copy alone: the commit is confirmed with a warning.
    let cancelled = call(&node, &account.api_key);
    let waiting = waiting_commit(&primary);
    assert!(!cancelled.is_finished());
    assert_eq!(primary.run(&format!("SELECT pg_cancel_backend({waiting})")), "t");
    assert_eq!(cancelled.join().unwrap().0, 200);
    assert_eq!(usage_events(&node.client_with(&account.api_key)), 2);
    // Terminating the connection does not: the outcome is looked up, and known only once the standby confirms it.
    let ended = call(&node, &account.api_key);
    let waiting = waiting_commit(&primary);
    assert_eq!(primary.run(&format!("SELECT pg_terminate_backend({waiting})")), "t");
    let _ = another_waiting_commit(&primary, &waiting);
    thread::sleep(Duration::from_millis(500));
    assert!(!ended.is_finished(), "responded before the standby has it");
    standby.start_again();
    assert_eq!(ended.join().unwrap().0, 200);
    assert_eq!(usage_events(&node.client_with(&account.api_key)), 3);
    assert_eq!(usage_events_of(&standby), "3");
    site.verify();
}

/// The number of requests in a standby's database, each committed by itself.
fn usage_events_of(standby: &Cluster) -> String {
    standby.run("SELECT (SELECT sum(entries) FROM meter) - (SELECT count(*) FROM ledger)")
}

#[test]
fn lost_standby_stops_charges_until_it_returns() {
    metering_tests::skip_if!(is_skipped());
    let (primary, mut standby) = primary_and_standby();
    let site = Site::on_database(failover_url(&primary, &standby));
    let node = site.server().start();
    let (waiting, later) = (site.account("1"), site.account("1"));
    for account in [&waiting, &later] {
        let _ = node.client_with(&account.api_key).get(BASE).expect(200);
    }
    standby.kill();
    let waits = call(&node, &waiting.api_key);
    let _ = waiting_commit(&primary);
    assert_eq!(node.client().get("/ready").status, 503);
    // Longer than the node's response timeout: it abandons the commit, and looks up the outcome.
    thread::sleep(Duration::from_secs(17));
    node.expect_log("no response to a commit");
    assert!(!waits.is_finished(), "the outcome is still unknown");
    // Requests that arrive during that time are quickly refused, and not charged.
    let (status, took) = call(&node, &waiting.api_key).join().unwrap();
    assert_eq!(status, 503);
    assert!(took < Duration::from_secs(9), "{took:?}");
    standby.start_again();
    let (status, took) = waits.join().unwrap();
    eprintln!("responded with {status} after {took:?}, with the standby lost for 17 s");
    assert_eq!(status, 200);
    for (account, events) in [(&waiting, 2), (&later, 1)] {
        assert_eq!(usage_events(&node.client_with(&account.api_key)), events);
        let _ = node.client_with(&account.api_key).get(BASE).expect(200);
    }
    assert_eq!(node.client().get("/ready").status, 200);
    assert_eq!(usage_events_of(&standby), "5");
    site.verify();
}
