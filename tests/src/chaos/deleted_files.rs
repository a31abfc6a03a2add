//! Deletes the database or its write-ahead log under a running server, which must stop charging into it.

use std::fs;
use std::thread;
use std::time::Duration;

use super::Setting;
use super::callers::{Callers, Kind};
use super::faulty_proxy::Bug;
use super::fleet::{Fleet, within};
use super::kill::targets_for;
use super::report::Report;
use crate::site::Site;

/// How long a server may keep running after the deletion, with some allowance for a busy machine.
const EXIT_WITHIN: Duration = Duration::from_secs(3);

pub(super) fn run(setting: &mut Setting, report: &mut Report) {
    let mut rounds = 0;
    while setting.has_time_left() || rounds == 0 {
        round(setting, report);
        rounds += 1;
    }
}

fn round(setting: &mut Setting, report: &mut Report) {
    let fleet = Fleet::new(Site::new());
    let mut server = fleet.server().start();
    fleet.targets.set([server.address()]);
    let callers = Callers::start(
        &targets_for(&fleet.targets, setting.plant, Bug::NeverRefuse),
        fleet.accounts.clone(),
        2,
        |_, _| (),
    );
    thread::sleep(setting.rng.millis(200, 500));
    let name = *setting.rng.pick(&["metering.db-wal", "metering.db", "metering.db-shm"]);
    let _ = fs::remove_file(fleet.site.data().join(name));
    let before = callers.count(Kind::Plain).charged;
    report.add("files deleted", 1);
    report.add("exited by itself in time", u64::from(within(EXIT_WITHIN, || server.has_exited())));
    let (then, later) = (callers.count(Kind::Plain).charged, Duration::from_millis(700));
    thread::sleep(later);
    let still = callers.count(Kind::Plain).charged.saturating_sub(then);
    report.add("charges confirmed before it was noticed", then.saturating_sub(before));
    report.add("charges confirmed later", still);
    if still > 0 {
        report.loss(format!("charges were confirmed more than 3 s after {name} was deleted"));
    }
    fleet.targets.set([]);
    drop(server);
    callers.abandon();
}
