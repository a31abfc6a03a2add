//! Continuous backup by Litestream, with the configuration of `deploy/litestream`: what a restore brings back, and that
//! the server and its commands work next to it.

mod payments;
mod restore;
mod with_server;

use metering_core::{Clock, SystemClock};
use metering_tests::client::Client;
use metering_tests::litestream::Litestream;
use metering_tests::site::Site;

use crate::support::wait::until;
use crate::support::wire::{BASE, BASE_CALL, CREDIT, amount, balance, usage_events};

/// The initial balance of accounts.
const CREDITS: i64 = 1_000;

/// Deletes the database with everything next to it, as the loss of its disk would, and makes an empty folder for it.
fn lose_disk(site: &Site) {
    std::fs::remove_dir_all(site.data()).unwrap();
    std::fs::create_dir(site.data()).unwrap();
}

/// Restores the database, and checks that its books add up.
#[track_caller]
fn restore(site: &Site, litestream: &Litestream, args: &[&str]) {
    let restored = litestream.restore(&[args, &["-integrity-check", "full"]].concat());
    assert_eq!(restored.code, Some(0), "{restored:?}");
    site.verify();
}

#[track_caller]
fn charge(client: &Client, times: u64) {
    for _ in 0..times {
        let _ = client.get(BASE).expect(200);
    }
}

/// Asserts that the account was charged so often, and got nothing but its first credits.
#[track_caller]
fn assert_charged(client: &Client, charges: u64) {
    assert_eq!(usage_events(client), charges);
    assert_eq!(balance(client), amount(CREDITS * CREDIT - i64::try_from(charges).unwrap() * BASE_CALL));
}

/// A time after all earlier events and before all later ones. Litestream's files have milliseconds.
fn moment() -> String {
    let before = SystemClock.now();
    until("the clock has gone on", || SystemClock.now().unix_millis() > before.unix_millis() + 1);
    SystemClock.now().to_string()
}
