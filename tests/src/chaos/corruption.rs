//! Damages one page at a time: `verify` and `backup` must notice, and a server that cannot charge must not report
//! ready.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use super::Setting;
use super::callers::{BASE, Callers};
use super::fleet::{Fleet, on_image};
use super::report::Report;
use super::rng::Rng;
use crate::server::ServerSetup;
use crate::site::Site;

/// Offsets in the header of an SQLite file: the page size, and the first page of the free list.
const PAGE_SIZE: usize = 16;
const FIRST_FREE: usize = 32;

/// How a page is overwritten.
#[derive(Debug, Clone, Copy)]
enum Damage {
    Zeros,
    Garbage,
}

pub(super) fn run(setting: &mut Setting, report: &mut Report) {
    let fleet = populated();
    let intact = fs::read(fleet.site.database()).expect("the database can be read");
    let page_size = usize::from(u16::from_be_bytes([intact[PAGE_SIZE], intact[PAGE_SIZE + 1]]));
    let mut pages = used_pages(&intact, page_size);
    report.add("pages in use", u64::try_from(pages.len()).unwrap_or(u64::MAX));
    setting.rng.shuffle(&mut pages);
    for (number, page) in pages.into_iter().enumerate() {
        if number > 0 && !setting.has_time_left() {
            break;
        }
        let damage = if setting.rng.one_in(3) { Damage::Garbage } else { Damage::Zeros };
        let damaged = damaged(&intact, page, page_size, damage, &mut setting.rng);
        report.add("pages damaged", 1);
        // The planted bug: the commands check an undamaged file.
        check_commands(if setting.plant { &intact } else { &damaged }, page, damage, report);
        if number % 3 == 0 {
            check_server(&fleet, &damaged, page, damage, report);
        }
    }
}

/// A database with rows in every table that charging touches, closed properly.
fn populated() -> Fleet {
    let fleet = Fleet::new(Site::new());
    for _ in 0..8 {
        let _ = fleet.site.account("5");
    }
    let mut server = fleet.server().start();
    fleet.targets.set([server.address()]);
    let callers = Callers::start(&fleet.targets, fleet.accounts.clone(), 2, |_, _| ());
    thread::sleep(Duration::from_millis(500));
    let _ = callers.stop();
    server.terminate();
    let _ = server.wait();
    drop(server);
    fleet
}

/// The pages in use: all except the free ones.
fn used_pages(file: &[u8], page_size: usize) -> Vec<usize> {
    let number = |at: usize| u32::from_be_bytes(file[at..at + 4].try_into().expect("four bytes"));
    let offset = |page: u32| (usize::try_from(page).unwrap_or(usize::MAX) - 1) * page_size;
    let mut free = BTreeSet::new();
    let mut trunk = number(FIRST_FREE);
    while trunk != 0 && free.insert(offset(trunk)) {
        let at = offset(trunk);
        for leaf in 0..usize::try_from(number(at + 4)).unwrap_or_default() {
            free.insert(offset(number(at + 8 + 4 * leaf)));
        }
        trunk = number(at);
    }
    (0..file.len()).step_by(page_size).filter(|at| !free.contains(at)).collect()
}

fn damaged(intact: &[u8], page: usize, page_size: usize, damage: Damage, rng: &mut Rng) -> Vec<u8> {
    let mut damaged = intact.to_vec();
    let replacement = match damage {
        Damage::Zeros => vec![0; page_size],
        Damage::Garbage => rng.bytes(page_size),
    };
    damaged[page..page + page_size].copy_from_slice(&replacement);
    damaged
}

fn on(file: &[u8]) -> (Site, ServerSetup) {
    on_image(|folder: &Path| fs::write(folder.join("metering.db"), file).expect("the folder can be written to"))
}

fn check_commands(file: &[u8], page: usize, damage: Damage, report: &mut Report) {
    let (site, _) = on(file);
    let backup = site.write("good.db", "yesterday's good backup");
    let name = backup.display().to_string();
    if site.admin(&["verify"]).code == Some(0) {
        report.add("unnoticed by verify", 1);
        report.loss(format!("verify passed with {damage:?} at byte {page}"));
    }
    if site.admin(&["backup", &name, "--force"]).code == Some(0) {
        report.add("unnoticed by backup", 1);
        report.loss(format!("backup passed with {damage:?} at byte {page}"));
    } else if fs::read(&backup).is_ok_and(|kept| kept != b"yesterday's good backup") {
        report.loss(format!("a failed backup replaced a good one with {damage:?} at byte {page}"));
    }
}

/// A server that starts but refuses all charges must not report ready.
fn check_server(fleet: &Fleet, file: &[u8], page: usize, damage: Damage, report: &mut Report) {
    let (_site, setup) = on(file);
    report.add("servers on damaged files", 1);
    let Some(server) = setup.start_if_possible() else {
        report.add("  refused to start", 1);
        return;
    };
    let statuses = fleet.accounts.each_ref().map(|account| {
        let client = server.client_with(&account.api_key);
        client.try_send("GET", BASE, None).map_or(0, |response| response.status)
    });
    if statuses.contains(&200) {
        report.add("  kept charging", 1);
        return;
    }
    report.add("  could not charge", 1);
    // `/ready` may take a second to reflect the error that a charge met.
    thread::sleep(Duration::from_millis(1_200));
    if server.client().try_send("GET", "/ready", None).is_ok_and(|ready| ready.status == 200) {
        report.loss(format!("/ready is 200 while charges end in {statuses:?}, with {damage:?} at byte {page}"));
    }
}
