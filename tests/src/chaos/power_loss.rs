//! Power loss: rebuilds the disk from the shim's log as it may have been at many moments. Every charge confirmed by
//! then must be on it, and none that was not sent by then.

use std::collections::BTreeSet;
use std::fs;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use super::Setting;
use super::callers::{Callers, Event, Kind};
use super::crash_image::{Disk, Unflushed};
use super::fleet::{Fleet, on_image, recorded, verify};
use super::journal::{self, Entry};
use super::report::Report;
use crate::shim::{DATABASE, Fault, SYNC_LIES, Shim, WAL};
use crate::site::Site;

const CALLERS: usize = 4;
const IMAGES: usize = 12;
const FEW_IMAGES: usize = 4;

/// The callers' requests and results, each with the log's length at that time: the writes that make a confirmed charge
/// durable are before that length, and the writes of a charge are after the length at which it was sent.
type Noted = Arc<Mutex<Vec<(u64, Kind, Event)>>>;

pub(super) fn run(setting: &mut Setting, report: &mut Report) {
    let mut rounds = 0;
    while setting.has_time_left() || rounds == 0 {
        round(setting, report);
        rounds += 1;
        report.add("rounds", 1);
    }
}

fn round(setting: &mut Setting, report: &mut Report) {
    let (fleet, shim) = (Fleet::new(Site::new()), Shim::build());
    let base = Disk::of(&fleet.site.data());
    if setting.plant {
        shim.inject(Fault { kinds: SYNC_LIES, files: DATABASE | WAL, skip: 0, limit: 0 });
    }
    let noted = Noted::default();
    let (notes, log) = (Arc::clone(&noted), shim.log());
    let note = move |kind, event| {
        let length = fs::metadata(&log).map(|log| log.len()).unwrap_or_default();
        notes.lock().unwrap_or_else(PoisonError::into_inner).push((length, kind, event));
    };
    let start = || {
        let server = shim.recording(fleet.server(), &fleet.site.data()).start();
        fleet.targets.set([server.address()]);
        server
    };
    let mut server = start();
    let callers = Callers::start(&fleet.targets, fleet.accounts.clone(), CALLERS, note);
    // A graceful stop checkpoints the log into the database, and a restart after a kill recovers it: power is lost
    // during both.
    for orderly in [true, false] {
        thread::sleep(setting.rng.millis(200, 500));
        if orderly {
            server.terminate();
            let _ = server.wait();
        }
        drop(server);
        server = start();
    }
    thread::sleep(setting.rng.millis(100, 300));
    let counts = callers.stop();
    drop(server);
    for count in &counts {
        report.add("attempts", count.attempts());
        report.add("confirmed", count.charged);
    }
    let noted = noted.lock().unwrap_or_else(PoisonError::into_inner).clone();
    images(&fleet, base, &journal::read(&shim.log()), &noted, setting, report);
}

fn images(
    fleet: &Fleet,
    mut disk: Disk,
    entries: &[Entry],
    noted: &[(u64, Kind, Event)],
    setting: &mut Setting,
    report: &mut Report,
) {
    let images = if setting.is_short() { FEW_IMAGES } else { IMAGES };
    let moments: BTreeSet<usize> = (0..images).map(|_| setting.rng.index(entries.len())).collect();
    for (number, entry) in entries.iter().enumerate() {
        disk.apply(entry);
        if !moments.contains(&number) {
            continue;
        }
        let unflushed = if setting.rng.one_in(4) { Unflushed::Dropped } else { Unflushed::AnyPart };
        let (site, setup) = on_image(|folder| disk.crash_into(folder, unflushed, &mut setting.rng));
        report.add("power losses", 1);
        let Some(server) = setup.start_if_possible() else {
            report.loss("no server started after a power loss");
            continue;
        };
        let found = recorded(&server, &fleet.accounts);
        drop(server);
        for (kind, found) in [Kind::Plain, Kind::Keyed].into_iter().zip(found) {
            let by_then = |event| {
                let seen = |note: &&(u64, Kind, Event)| note.0 <= entry.end && (note.1, note.2) == (kind, event);
                u64::try_from(noted.iter().filter(seen).count()).unwrap_or(u64::MAX)
            };
            let most = by_then(Event::Sent) - by_then(Event::Refused);
            report.compare_with_bounds("after a power loss", by_then(Event::Charged), most, found);
        }
        verify(&site, report);
    }
}
