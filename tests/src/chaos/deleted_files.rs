//! Deletes the database or its write-ahead log under a running server, which must stop charging into it.

use std::fs;
use std::thread;
use std::time::Duration;

use super::Setting;
use super::crew::{Crew, Kind};
use super::fleet::{Fleet, within};
use super::kill::called;
use super::liar::Lie;
use super::report::Report;
use crate::site::Site;

/// How long a server may keep running after the deletion, with some allowance for a busy machine.
const NOTICED: Duration = Duration::from_secs(3);

pub(super) fn run(setting: &mut Setting, report: &mut Report) {
    let mut rounds = 0;
    while setting.goes_on() || rounds == 0 {
        round(setting, report);
        rounds += 1;
    }
}

fn round(setting: &mut Setting, report: &mut Report) {
    let fleet = Fleet::new(Site::new());
    let mut server = fleet.server().start();
    fleet.targets.set([server.address()]);
    let crew = Crew::start(&called(&fleet.targets, setting.plant, Lie::NeverRefuse), fleet.accounts.clone(), 2, |_| ());
    thread::sleep(setting.rng.millis(200, 500));
    let name = *setting.rng.pick(&["metering.db-wal", "metering.db", "metering.db-shm"]);
    let _ = fs::remove_file(fleet.site.data().join(name));
    let before = crew.count(Kind::Plain).charged;
    report.add("files deleted", 1);
    report.add("exited by itself in time", u64::from(within(NOTICED, || server.has_ended())));
    let (then, later) = (crew.count(Kind::Plain).charged, Duration::from_millis(700));
    thread::sleep(later);
    let still = crew.count(Kind::Plain).charged.saturating_sub(then);
    report.add("charges confirmed before it was noticed", then.saturating_sub(before));
    report.add("charges confirmed later", still);
    if still > 0 {
        report.loss(format!("charges were confirmed more than 3 s after {name} was deleted"));
    }
    fleet.targets.set([]);
    drop(server);
    crew.abandon();
}
