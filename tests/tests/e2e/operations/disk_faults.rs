//! Disks that fail, fill up or lose files under a running server: responses to clients are true, `/ready` reports the
//! fault, and nothing is charged into a file that is gone.

use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use metering_tests::server::{Server, ServerSetup};
use metering_tests::site::Site;

use crate::support::wire::{BASE, usage_events};

/// A preloaded library that makes the disk fail on command.
struct Faults {
    library: PathBuf,
    control: PathBuf,
}

impl Faults {
    fn on(site: &Site) -> Self {
        let (library, control) = (site.path("disk_faults.so"), site.write("disk_faults", "none"));
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/operations/disk_faults/shim.c");
        let mut build = Command::new("cc");
        build.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).args([source, "-ldl"]);
        let built = build.output().expect("a C compiler is installed; cargo needs one for SQLite");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        Self { library, control }
    }

    fn under(&self, server: ServerSetup) -> ServerSetup {
        let text = |path: &PathBuf| path.to_str().unwrap().to_owned();
        server.set("LD_PRELOAD", &text(&self.library)).set("DISK_FAULTS", &text(&self.control))
    }

    /// From now on the disk fails in this way; `none` ends the fault.
    fn set(&self, fault: &str) {
        let new = self.control.with_extension("new");
        std::fs::write(&new, fault).unwrap();
        std::fs::rename(&new, &self.control).unwrap();
    }
}

fn code_of(server: &Server, api_key: &str) -> (u16, String) {
    let response = server.client_with(api_key).get(BASE);
    (response.status, if response.status == 200 { String::new() } else { response.error() })
}

fn ready(server: &Server) -> u16 {
    server.client().get("/ready").status
}

#[test]
fn failed_flush_is_reported_as_unknown_outcome() {
    let site = Site::verified();
    let account = site.account("1");
    let faults = Faults::on(&site);
    let short = |server: ServerSetup| server.set("METERING_GATEWAY__UPSTREAM_TIMEOUT", "1s");
    let mut server = faults.under(short(site.server())).start();
    assert_eq!(code_of(&server, &account.api_key), (200, String::new()));
    faults.set("flush");
    let keyed = |server: &Server| server.client_with(&account.api_key).with_header("Idempotency-Key", "once");
    let response = keyed(&server).get(BASE);
    assert_eq!((response.status, response.error().as_str()), (503, "outcome_unknown"));
    let message = response.member("message");
    assert!(message.contains("unknown whether") && message.contains("Idempotency-Key"), "{message}");
    assert!(!message.to_lowercase().contains("nothing was charged"), "{message}");
    assert_eq!(response.header("retry-after"), Some("1"));
    assert_ne!(server.wait().code(), Some(0), "the server stops, because a flush is not retried");
    server.expect_log("can no longer be written to safely");
    drop(server);
    // The data reached the file, so the charge exists after a restart.
    let server = short(site.server()).start();
    assert_eq!(usage_events(&server.client_with(&account.api_key)), 2);
    // The retry is served and not charged, as soon as the first request can no longer be in progress.
    let started = Instant::now();
    loop {
        let response = keyed(&server).get(BASE);
        if response.status == 200 {
            break;
        }
        assert_eq!((response.status, response.error().as_str()), (409, "request_in_progress"));
        assert!(started.elapsed() < Duration::from_secs(90), "{}", response.member("retry_after_sec"));
        std::thread::sleep(Duration::from_millis(500));
    }
    assert_eq!(usage_events(&server.client_with(&account.api_key)), 2);
}

#[test]
fn full_disk_charges_nothing_and_fails_ready() {
    let site = Site::verified();
    let account = site.account("1");
    let faults = Faults::on(&site);
    let server = faults.under(site.server()).start();
    assert_eq!(code_of(&server, &account.api_key).0, 200);
    assert_eq!(ready(&server), 200);
    faults.set("full");
    let started = Instant::now();
    let mut not_ready = 0;
    while started.elapsed() < Duration::from_secs(4) {
        let charged = code_of(&server, &account.api_key);
        let is_late = started.elapsed() > Duration::from_secs(1);
        let ready = ready(&server);
        if is_late || charged.0 != 200 {
            assert_eq!(ready, 503, "after {:?}: {charged:?}", started.elapsed());
            not_ready += 1;
        }
        if charged.0 != 200 {
            assert_eq!(charged, (503, "storage_unavailable".to_owned()));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(not_ready > 3, "{not_ready}");
    // Even if no more charges come, as behind a load balancer, `/ready` still reports it.
    for _ in 0..12 {
        assert_eq!(ready(&server), 503);
        std::thread::sleep(Duration::from_secs(1));
    }
    faults.set("none");
    let started = Instant::now();
    while ready(&server) != 200 {
        assert!(started.elapsed() < Duration::from_secs(60), "{}", server.log());
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(code_of(&server, &account.api_key).0, 200);
}

#[test]
fn server_stops_when_its_database_files_are_deleted() {
    for suffix in ["", "-wal", "-shm"] {
        let site = Site::new();
        let account = site.account("1");
        let mut server = site.server().start();
        assert_eq!(code_of(&server, &account.api_key).0, 200);
        let lost = format!("{}{suffix}", site.database().display());
        std::fs::remove_file(&lost).unwrap();
        let charged = server.client_with(&account.api_key).get(BASE);
        assert_eq!(charged.status, 503, "{suffix}: {}", server.log());
        assert_ne!(server.wait().code(), Some(0), "{suffix}");
        server.expect_log("was deleted while the database was open");
    }
    // A server without requests stops too.
    let site = Site::new();
    let _ = site.account("1");
    let mut server = site.server().start();
    std::fs::rename(site.database(), site.path("elsewhere.db")).unwrap();
    assert_ne!(server.wait().code(), Some(0));
}

#[test]
fn corruption_fails_ready_and_never_replaces_a_good_backup() {
    let site = Site::verified();
    let account = site.account("1");
    let backup = site.path("backup.db");
    let make_backup = || site.admin(&["backup", backup.to_str().unwrap(), "--force"]);
    assert_eq!(make_backup().code, Some(0));
    let good = std::fs::read(&backup).unwrap();
    let page: i64 = rusqlite::Connection::open(site.database())
        .unwrap()
        .query_row("SELECT rootpage FROM sqlite_schema WHERE name = 'api_key'", [], |row| row.get(0))
        .unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(site.database()).unwrap();
    file.write_all_at(&[0; 4096], (page.unsigned_abs() - 1) * 4096).unwrap();
    drop(file);

    let server = site.server().start();
    assert_eq!(code_of(&server, &account.api_key), (503, "storage_unavailable".to_owned()));
    for _ in 0..14 {
        assert_eq!(ready(&server), 503);
        std::thread::sleep(Duration::from_secs(1));
    }
    for command in [make_backup(), site.admin(&["verify"])] {
        assert_eq!(command.code, Some(1), "{command:?}");
        assert!(command.stderr.contains("damaged"), "{command:?}");
    }
    assert_eq!(std::fs::read(&backup).unwrap(), good, "the good backup is still there");
    drop(server);

    // Recovery: the backup replaces the database.
    std::fs::copy(&backup, site.database()).unwrap();
    for sidecar in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{sidecar}", site.database().display()));
    }
    let server = site.server().start();
    assert_eq!((code_of(&server, &account.api_key).0, ready(&server)), (200, 200));
}
