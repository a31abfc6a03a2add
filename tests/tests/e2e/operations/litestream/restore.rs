//! Restores: the latest state, and that of any moment.

use std::time::{Duration, Instant};

use metering_tests::litestream::{Litestream, is_skipped};
use metering_tests::load::{Stop, request, start};
use metering_tests::site::Site;

use super::{CREDITS, assert_charged, charge, lose_disk, moment, restore};
use crate::support::wire::{BASE, plan_with_long_timeout, usage_events};

const CONNECTIONS: usize = 8;

/// Charges that were confirmed longer than this before the disk was lost must be restored. The configuration implies
/// two seconds: a check for changes every second, and a copy every second. The rest is for a busy machine.
const MAX_LOSS: Duration = Duration::from_secs(12);

/// How many entries of the ledger have this note.
fn noted(site: &Site, note: &str) -> usize {
    let ledger = site.admin(&["export", "ledger"]);
    assert_eq!(ledger.code, Some(0), "{ledger:?}");
    ledger.stdout.matches(note).count()
}

#[test]
fn lost_disk_costs_no_charge_that_was_copied() {
    metering_tests::skip_if!(is_skipped());
    let site = Site::verified();
    let [account, watched] = [(); 2].map(|()| site.account(&CREDITS.to_string()));
    let litestream = Litestream::of(&site, &[]);
    let server = site.server().start();
    let replication = litestream.start();

    let calls = vec![request("GET", BASE, Some(&account.api_key), &[])];
    let plan = plan_with_long_timeout(server.address(), CONNECTIONS, Stop::AfterRequests(500), calls.clone());
    let copied = start(plan, |_| ()).join().with_status(200);
    assert_eq!(copied, 500);
    replication.sync();

    // Many callers, and one that remembers when it got each response.
    let plan = plan_with_long_timeout(server.address(), CONNECTIONS, Stop::After(Duration::from_secs(60)), calls);
    let load = start(plan, |_| ());
    let client = server.client_with(&watched.api_key);
    let (begun, mut responses) = (Instant::now(), Vec::new());
    while begun.elapsed() < Duration::from_secs(4) {
        charge(&client, 1);
        responses.push(Instant::now());
    }
    let lost_at = Instant::now();
    server.kill();
    replication.kill();
    let confirmed = copied + load.join().with_status(200);

    lose_disk(&site);
    restore(&site, &litestream, &[]);
    let server = site.server().start();
    let client = server.client_with(&account.api_key);
    let restored = usage_events(&client);
    // A charge may be recorded whose response was never sent: one for each connection.
    assert!((copied..=confirmed + CONNECTIONS as u64).contains(&restored), "{restored}, {copied} to {confirmed}");
    assert_charged(&client, restored);
    let client = server.client_with(&watched.api_key);
    let restored = usage_events(&client);
    assert_charged(&client, restored);
    let first_lost = responses.get(usize::try_from(restored).unwrap());
    let lost = first_lost.map_or(Duration::ZERO, |response| lost_at - *response);
    eprintln!("{restored} of {} charges are restored; the oldest lost one was {lost:?} old", responses.len());
    assert!(lost < MAX_LOSS, "{lost:?}");
    // The server continues from there.
    charge(&client, 3);
    assert_charged(&client, restored + 3);
}

#[test]
fn moment_before_a_wrong_grant_is_restored() {
    metering_tests::skip_if!(is_skipped());
    let site = Site::new();
    let account = site.account(&CREDITS.to_string());
    let litestream = Litestream::of(&site, &[]);
    let mut server = site.server().start();
    let replication = litestream.start();

    let client = server.client_with(&account.api_key);
    charge(&client, 20);
    replication.sync();
    let before = moment();
    let _ =
        site.admin_json(&["account", "grant", &account.org_id, "--credits", "5000", "--note", "one nought too many"]);
    charge(&client, 5);
    replication.sync();
    let after = moment();
    assert_eq!(noted(&site, "one nought too many"), 1);
    server.terminate();
    assert!(server.wait().success());
    replication.stop();

    lose_disk(&site);
    restore(&site, &litestream, &["-timestamp", &before]);
    assert_eq!(noted(&site, "one nought too many"), 0);
    let server = site.server().start();
    let client = server.client_with(&account.api_key);
    assert_charged(&client, 20);

    // The copy continues from there.
    let replication = litestream.start();
    charge(&client, 7);
    replication.sync();
    server.kill();
    replication.kill();
    lose_disk(&site);
    restore(&site, &litestream, &[]);
    assert_eq!(noted(&site, "one nought too many"), 0);
    let server = site.server().start();
    assert_charged(&server.client_with(&account.api_key), 27);
    drop(server);

    // Events between the restored moment and the restore can still be looked up.
    lose_disk(&site);
    restore(&site, &litestream, &["-timestamp", &after]);
    assert_eq!(noted(&site, "one nought too many"), 1);
    let server = site.server().start();
    assert_eq!(usage_events(&server.client_with(&account.api_key)), 25);
}

/// What `deploy/litestream/existing-database.conf` prevents.
#[test]
fn empty_database_on_a_lost_disk_hides_no_earlier_state() {
    metering_tests::skip_if!(is_skipped());
    let site = Site::new();
    let account = site.account(&CREDITS.to_string());
    let litestream = Litestream::of(&site, &[]);
    let server = site.server().start();
    let replication = litestream.start();
    charge(&server.client_with(&account.api_key), 10);
    replication.sync();
    let before = moment();
    server.kill();
    replication.kill();

    lose_disk(&site);
    let server = site.server().start();
    let replication = litestream.start();
    assert_eq!(server.client_with(&account.api_key).get("/credits/balance").status, 401);
    server.kill();
    replication.stop();

    lose_disk(&site);
    restore(&site, &litestream, &[]);
    let accounts = site.admin(&["account", "list"]);
    assert!(!accounts.stdout.contains(&account.org_id), "the empty database is the newest state: {accounts:?}");
    lose_disk(&site);
    restore(&site, &litestream, &["-timestamp", &before]);
    let server = site.server().start();
    assert_charged(&server.client_with(&account.api_key), 10);
}
