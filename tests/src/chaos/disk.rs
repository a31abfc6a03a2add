//! A disk that is full, that cannot be read or written, or whose flushes fail.

use std::thread;
use std::time::{Duration, Instant};

use super::callers::Callers;
use super::crash_image::{Disk, Unflushed};
use super::fleet::{Fleet, becomes_ready, on_image, recorded, verify, within};
use super::report::Report;
use super::{Setting, journal};
use crate::server::Server;
use crate::shim::{DATABASE, Fault, READ_EIO, SYNC_EIO, SYNC_LIES, Shim, WAL, WRITE_EIO, WRITE_ENOSPC, WRITE_LIES};
use crate::site::Site;

const CALLERS: usize = 4;

/// The maximum number of rounds while no fault has taken effect.
const MAX_ROUNDS: u32 = 40;

/// How soon `/ready` must be 503 while nothing can be written, with some allowance for a busy machine.
const NOT_READY_WITHIN: Duration = Duration::from_secs(2);

pub(super) fn full(setting: &mut Setting, report: &mut Report) {
    let faults = [Fault { kinds: WRITE_ENOSPC, files: DATABASE | WAL, skip: 0, limit: 0 }];
    run(setting, report, &faults, true);
}

pub(super) fn input_output_errors(setting: &mut Setting, report: &mut Report) {
    let fault = |kinds, files, limit| Fault { kinds, files, skip: 0, limit };
    let faults = [
        fault(WRITE_EIO, DATABASE | WAL, 0),
        fault(WRITE_EIO, WAL, 1),
        fault(READ_EIO, DATABASE, 0),
        fault(READ_EIO, WAL, 1),
        fault(READ_EIO | WRITE_EIO, DATABASE | WAL, 0),
    ];
    run(setting, report, &faults, false);
}

fn run(setting: &mut Setting, report: &mut Report, faults: &[Fault], watch_ready: bool) {
    let (fleet, shim) = (Fleet::new(Site::new()), Shim::build());
    let start = || start_server(&fleet, shim.under(fleet.server(), &fleet.site.data()));
    let mut server = start();
    let callers = Callers::start(&fleet.targets, fleet.accounts.clone(), CALLERS, |_, _| ());
    let mut rounds = 0;
    // A fault may have no effect, because cached data is not read. Short runs continue until one has.
    while setting.has_time_left() || (report.counter("calls that failed") == 0 && rounds < MAX_ROUNDS) {
        rounds += 1;
        thread::sleep(setting.rng.millis(100, 400));
        let mut fault = *setting.rng.pick(faults);
        // Faults strike in the middle of a transaction as often as at its start.
        fault.skip = u32::try_from(setting.rng.below(12)).unwrap_or_default();
        if setting.plant {
            fault = Fault { kinds: WRITE_LIES, limit: 0, ..fault };
        }
        shim.inject(fault);
        let started = Instant::now();
        report.add("disk faults", 1);
        if watch_ready && !setting.plant {
            check_ready(&mut server, started, report);
        }
        thread::sleep(setting.rng.millis(100, 600));
        shim.clear();
        report.add("calls that failed", shim.injected());
        if setting.plant || server.has_exited() {
            report.add("server exits", u64::from(!setting.plant));
            drop(server);
            server = start();
        } else if !becomes_ready(&server.client()) {
            report.loss("the server was not ready 30 s after the disk recovered");
            drop(server);
            server = start();
        }
    }
    let counts = callers.stop();
    drop(server);
    fleet.compare_with_record(&counts, report);
}

fn start_server(fleet: &Fleet, setup: crate::server::ServerSetup) -> Server {
    let server = setup.start();
    fleet.targets.set([server.address()]);
    server
}

/// While nothing can be written, `/ready` must fail.
fn check_ready(server: &mut Server, started: Instant, report: &mut Report) {
    let client = server.client();
    let noticed = within(NOT_READY_WITHIN, || {
        // A server that exited is not ready either.
        server.has_exited() || client.try_send("GET", "/ready", None).map_or(true, |ready| ready.status == 503)
    });
    let took = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    report.maximum("slowest /ready 503, ms", took);
    if !noticed {
        report.loss("/ready did not respond with 503 within 2 s of the disk being full");
    }
}

/// After each failed flush a server starts on the file as the page cache has it, and another on an image without any
/// unflushed data: kernels may do either.
pub(super) fn failed_flushes(setting: &mut Setting, report: &mut Report) {
    let (fleet, shim) = (Fleet::new(Site::new()), Shim::build());
    let mut disk = Disk::of(&fleet.site.data());
    let mut server = start_server(&fleet, shim.recording(fleet.server(), &fleet.site.data()));
    if setting.plant {
        shim.inject(Fault { kinds: SYNC_LIES, files: DATABASE | WAL, skip: 0, limit: 0 });
    }
    let callers = Callers::start(&fleet.targets, fleet.accounts.clone(), CALLERS, |_, _| ());
    let mut handled = 0;
    while setting.has_time_left() {
        thread::sleep(setting.rng.millis(200, 600));
        if !setting.plant {
            let skip = u32::try_from(setting.rng.below(6)).unwrap_or_default();
            let limit = u32::try_from(setting.rng.below(3)).unwrap_or_default();
            shim.inject(Fault { kinds: SYNC_EIO, files: WAL, skip, limit });
            let struck = within(Duration::from_secs(5), || shim.injected() > 0);
            report.add("flushes that failed", u64::from(struck));
            thread::sleep(setting.rng.millis(20, 200));
        }
        report.add("server exits", u64::from(server.has_exited()));
        let counts = [super::callers::Kind::Plain, super::callers::Kind::Keyed].map(|kind| callers.count(kind).charged);
        drop(server);
        if !setting.plant {
            shim.clear();
        }
        let entries = journal::read(&shim.log());
        entries[handled..].iter().for_each(|entry| disk.apply(entry));
        handled = entries.len();
        check_dropped(&fleet, &disk, counts, setting, report);
        server = start_server(&fleet, shim.recording(fleet.server(), &fleet.site.data()));
    }
    let counts = callers.stop();
    drop(server);
    assert!(setting.plant || report.counter("flushes that failed") > 0, "no flush failed");
    fleet.compare_with_record(&counts, report);
}

fn check_dropped(fleet: &Fleet, disk: &Disk, counts: [u64; 2], setting: &mut Setting, report: &mut Report) {
    let (site, setup) = on_image(|folder| disk.crash_into(folder, Unflushed::Dropped, &mut setting.rng));
    report.add("images without unflushed data", 1);
    let Some(server) = setup.start_if_possible() else {
        report.loss("no server started on an image without unflushed data");
        return;
    };
    let on_image = recorded(&server, &fleet.accounts);
    drop(server);
    for (least, found) in counts.into_iter().zip(on_image) {
        report.compare_with_bounds("an image without unflushed data", least, u64::MAX, found);
    }
    verify(&site, report);
}
