//! Server and commands next to a running Litestream, which holds a read transaction, takes the checkpoints, and has two
//! tables in the database.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use metering_tests::litestream::{Litestream, is_skipped};
use metering_tests::load::{Stop, request, start};
use metering_tests::site::Site;

use super::{CREDITS, assert_charged, charge, lose_disk, restore};
use crate::mcp::metric;
use crate::support::wire::{BASE, BASE_CALL, CREDIT, amount, balance, plan_with_long_timeout, usage_events};

const CONNECTIONS: usize = 16;

/// The log starts over after about this many pages, instead of 1,000, so that a short test sees several checkpoints.
const CHECKPOINTS: (&str, &str) = ("min-checkpoint-page-count: 1000\n", "min-checkpoint-page-count: 50\n");

/// How often the log starts over in the test.
const RESTARTS: u32 = 8;

/// The minimum that a commit writes to the log: the header of a frame, and a page.
const FRAME_BYTES: u64 = 24 + 4096;

/// How often the write-ahead log has started over, a number in its header:
/// <https://sqlite.org/fileformat2.html#walformat>.
fn log_restarts(database: &Path) -> u32 {
    let header = std::fs::read(log_of(database)).unwrap();
    u32::from_be_bytes(header[12..16].try_into().unwrap())
}

fn log_of(database: &Path) -> PathBuf {
    format!("{}-wal", database.display()).into()
}

#[test]
fn charges_checkpoints_and_commands_go_on_beside_it() {
    metering_tests::skip_if!(is_skipped());
    let site = Site::new();
    let account = site.account(&CREDITS.to_string());
    let litestream = Litestream::of(&site, &[CHECKPOINTS]);
    let server = site.server().start();
    let replication = litestream.start();
    let before = log_restarts(&site.database());

    let calls = vec![request("GET", BASE, Some(&account.api_key), &[])];
    let plan = plan_with_long_timeout(server.address(), CONNECTIONS, Stop::After(Duration::from_secs(60)), calls);
    let load = start(plan, |_| ());
    let copy = site.path("backup.db").display().to_string();
    // Commands while it is charged, until there were some checkpoints.
    let begun = Instant::now();
    while log_restarts(&site.database()) < before + RESTARTS {
        for command in [&["doctor"][..], &["verify"], &["backup", "--force", &copy]] {
            let output = site.admin(command);
            assert_eq!(output.code, Some(0), "{command:?}: {output:?}");
        }
        assert!(begun.elapsed() < Duration::from_secs(55), "too few checkpoints: {}", litestream.log());
    }
    // Without checkpoints the file would have all writes, on a machine of any speed.
    let (log_bytes, commits) =
        (std::fs::metadata(log_of(&site.database())).unwrap().len(), metric(&server, "metering_commits_total"));
    assert!(log_bytes < commits * FRAME_BYTES, "{log_bytes} after {commits} commits");
    let _ = server.client().get("/ready").expect(200);
    let _ = site.admin_json(&["account", "grant", &account.org_id, "--credits", "5"]);
    server.kill();
    let confirmed = load.join().with_status(200);

    // The next server takes over. Litestream ends with the server and begins after it, as its unit says: what a killed
    // server has written to the log and does not count would otherwise get into the copy.
    replication.stop();
    let mut server = site.server().start();
    let replication = litestream.start();
    let client = server.client_with(&account.api_key);
    let charged = usage_events(&client);
    assert!((confirmed..=confirmed + CONNECTIONS as u64).contains(&charged), "{charged}, {confirmed} confirmed");
    let left = |charges: u64| amount((CREDITS + 5) * CREDIT - i64::try_from(charges).unwrap() * BASE_CALL);
    assert_eq!(balance(&client), left(charged));
    charge(&client, 5);
    server.terminate();
    assert!(server.wait().success());
    assert!(!server.log().contains(" ERROR "), "{}", server.log());
    let server = site.server().start();
    let client = server.client_with(&account.api_key);
    charge(&client, 5);
    assert_eq!(balance(&client), left(charged + 10));
    assert!(!server.log().contains("was replaced") && !server.log().contains("was deleted"), "{}", server.log());
    replication.sync();
    assert!(!litestream.log().contains("level=ERROR"), "{}", litestream.log());
    server.kill();
    replication.kill();

    lose_disk(&site);
    restore(&site, &litestream, &[]);
    let server = site.server().start();
    assert_eq!(balance(&server.client_with(&account.api_key)), left(charged + 10));
}

#[test]
fn settings_are_those_of_the_configuration_and_its_sqlite_is_one_that_the_store_accepts() {
    metering_tests::skip_if!(is_skipped());
    let site = Site::new();
    let _ = site.account("1");
    let litestream = Litestream::of(&site, &[]);
    litestream.start().stop();
    let log = litestream.log();
    for setting in [
        "sync-interval=1s ",
        "starting L0 retention monitor\" system=store interval=1h0m0s retention=72h0m0s",
        "level=1 interval=30s",
        "level=2 interval=5m0s",
        "level=3 interval=1h0m0s",
        "level=9 interval=6h0m0s",
    ] {
        assert!(log.contains(setting), "{setting}: {log}");
    }
    lose_disk(&site);
    assert_eq!(litestream.restore(&[]).code, Some(0));
    // Versions of SQLite before 3.51.3 can corrupt a database that several processes write to. The database has the
    // version that wrote to it last: Litestream's, which added its tables.
    let header = std::fs::read(site.database()).unwrap();
    let version = u32::from_be_bytes(header[96..100].try_into().unwrap());
    assert!(version >= 3_051_003, "{version}");
}

#[test]
fn database_that_was_not_closed_cleanly_is_checked_before_litestream_opens_it() {
    metering_tests::skip_if!(is_skipped());
    const CHECKING: &str = "the database was not closed cleanly; checking it for damage";
    let site = Site::new();
    let account = site.account(&CREDITS.to_string());
    let litestream = Litestream::of(&site, &[]);
    let server = site.server().start();
    let replication = litestream.start();
    charge(&server.client_with(&account.api_key), 10);
    server.kill();
    replication.kill();

    // As after a power loss: the server is first, and Litestream follows.
    let mut server = site.server().start();
    server.expect_log(CHECKING);
    let replication = litestream.start();
    charge(&server.client_with(&account.api_key), 10);

    // As at a shutdown: Litestream ends first. The server is the last to close the database, which leaves no log.
    replication.stop();
    charge(&server.client_with(&account.api_key), 10);
    server.terminate();
    assert!(server.wait().success());
    assert!(!log_of(&site.database()).exists());
    let server = site.server().start();
    assert!(!server.log().contains(CHECKING), "{}", server.log());
    let replication = litestream.start();
    assert_charged(&server.client_with(&account.api_key), 30);

    // Charges after its end are copied after its restart.
    server.kill();
    replication.kill();
    lose_disk(&site);
    restore(&site, &litestream, &[]);
    assert_charged(&site.server().start().client_with(&account.api_key), 30);
}
