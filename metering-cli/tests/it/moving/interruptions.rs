//! Moves that are interrupted and run again.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use metering_core::store::SourceId;
use metering_core::{PaymentStore, Store};
use metering_postgres::PostgresStore;
use metering_sql::transfer::{Import, Record, ScanMark, TargetState};
use metering_sqlite::SqliteStore;
use metering_tests::postgres::{Cluster, is_skipped};

use super::filling::grant;
use super::link::{Event, Link};
use super::{Move, customer};
use crate::program::kill;
use crate::store::{block_on, records};

/// How many moves run at the same time.
const AT_ONCE: u32 = 8;

/// Asserts that the target has the same records as the file.
fn assert_moved(moving: &Move) {
    assert!(moving.migrate().contains("Already moved to"));
    let file = SqliteStore::open_alone(&moving.file()).unwrap();
    block_on(async { assert_eq!(records(&moving.postgres().await).await, records(&file).await) });
}

#[test]
fn killed_move_is_finished_by_the_next_run() {
    metering_tests::skip_if!(is_skipped());
    let full = Move::full();
    let file = &full.file();
    let mut killed = 0;
    // Each waits for the database to notice, so several run at once.
    for wave in 0.. {
        let first = wave * AT_ONCE + 1;
        let moves: Vec<_> = thread::scope(|scope| {
            let moves: Vec<_> =
                (first..first + AT_ONCE).map(|at| scope.spawn(move || is_killed_and_finished(file, at))).collect();
            moves.into_iter().map(|moved| moved.join().unwrap()).collect()
        });
        killed += moves.iter().filter(|killed| **killed).count();
        if moves.contains(&false) {
            break;
        }
    }
    assert!(killed > 15, "{killed}");
}

/// Kills a move at this commit, if it has as many, and finishes it. Returns whether it was killed.
fn is_killed_and_finished(full: &Path, at: u32) -> bool {
    let moving = Move::new();
    std::fs::copy(full, moving.file()).unwrap();
    let event = if at.is_multiple_of(2) { Event::Stall } else { Event::StallAfter };
    let link = Link::with(event, at);
    let mut running = moving.start(&moving.url_by(link.port()));
    if !link.wait(|| running.try_wait().unwrap().is_some()) {
        // Past its last commit: it finished.
        assert_moved(&moving);
        return false;
    }
    assert_eq!(kill(running).code, -1, "it ended by itself");
    // The target must not pass for a complete store, unless it is one.
    let opened = moving.connect();
    if let Ok(store) = &opened
        && block_on(store.accounts(None, 10)).unwrap().items.is_empty()
    {
        // Before the move began.
        assert!(SqliteStore::open(&moving.file()).is_ok());
    } else if opened.is_ok() {
        assert!(SqliteStore::open(&moving.file()).is_err(), "at {at}: both accept charges");
    }
    drop(opened);
    moving.migrate();
    assert_moved(&moving);
    true
}

#[test]
fn move_that_lost_its_database_is_finished_by_the_next_run() {
    metering_tests::skip_if!(is_skipped());
    let moving = Move::full();
    let link = Link::with(Event::Down, 8);
    let line = format!("migrate --from $from --to {}", moving.url_by(link.port()));
    let ran = moving.program.run(&line);
    assert_eq!(ran.stderr.lines().filter(|line| line.starts_with("error: ")).count(), 1, "{ran:?}");
    let message = ran.failure(1);
    assert!(message.contains("did not finish") && message.contains("again"), "{message}");
    assert!(link.happened() > 0);
    let refused = moving.connect().unwrap_err().to_string();
    assert!(refused.contains("has not finished"), "{refused}");
    moving.program.refuses(&[("--database $to verify", 1, "has not finished")]);
    moving.program.prints(&[("migrate --from $from --to $to --dry-run", &["replacing an unfinished move"])]);
    // The file is unchanged until everything is copied.
    drop(moving.sqlite());
    moving.migrate();
    assert_moved(&moving);
}

#[test]
fn unacknowledged_commits_are_looked_up_and_not_repeated() {
    metering_tests::skip_if!(is_skipped());
    let moving = Move::full();
    let link = Link::with(Event::Cut, 3);
    let _ = moving.program.run(&format!("migrate --from $from --to {}", moving.url_by(link.port()))).expect(0);
    assert!(link.happened() > 4, "{}", link.happened());
    assert_moved(&moving);
}

#[test]
fn one_of_two_moves_to_one_target_continues() {
    metering_tests::skip_if!(is_skipped());
    let moving = Move::full();
    let link = Link::with(Event::Stall, 6);
    let mut first = moving.start(&moving.url_by(link.port()));
    assert!(link.wait(|| first.try_wait().unwrap().is_some()));
    // From the same file, and from another one.
    moving.refuses(1, "open in another process");
    let other = Move::to(moving.url.clone());
    block_on(async { customer(&other.sqlite(), 77, grant(1)).await });
    other.refuses(5, "in progress");
    other.program.refuses(&[("migrate --from $from --to $to --dry-run", 5, "in progress")]);
    assert_eq!(kill(first).code, -1, "it ended by itself");
    moving.migrate();
    assert_moved(&moving);
    other.refuses(5, "another store was moved there");
}

#[test]
fn superseded_move_stops_writing() {
    metering_tests::skip_if!(is_skipped());
    // A cluster of its own, because its connections are ended.
    let cluster = Cluster::start(&["fsync=off"]);
    let config = cluster.fresh_schema().parse().unwrap();
    let mark = |chain_id| vec![Record::ScanMark(ScanMark { chain_id, block: 7 })];
    let source = SourceId::from_bytes([1; 16]);
    block_on(async {
        let first = PostgresStore::connect_to_import(&config).await.unwrap();
        let second = PostgresStore::connect_to_import(&config).await.unwrap();
        assert_eq!(first.begin(&source).await.unwrap(), TargetState::Empty);
        first.import(mark(1)).await.unwrap();
        for store in [&first, &second] {
            assert_eq!(store.target_state(&source).await.unwrap(), TargetState::InProgress);
        }
        assert_eq!(second.begin(&source).await.unwrap(), TargetState::InProgress);
        // The first move loses the lock that kept the second out, but stays alive.
        cluster.end_connections();
        let until = Instant::now() + Duration::from_secs(30);
        let again = loop {
            // The server is ending the connections, but may take a while.
            match second.begin(&source).await.unwrap() {
                TargetState::InProgress if Instant::now() < until => {
                    tokio::time::sleep(Duration::from_millis(20)).await
                }
                target_state => break target_state,
            }
        };
        assert_eq!(again, TargetState::Unfinished);
        let problem = first.import(mark(2)).await.unwrap_err().to_string();
        assert!(problem.contains("another move to this database has begun"), "{problem}");
        assert!(first.finish().await.is_err());
        second.import(mark(3)).await.unwrap();
        assert!(PostgresStore::connect_existing(&config).await.is_err());
        second.finish().await.unwrap();
        let store = PostgresStore::connect_existing(&config).await.unwrap();
        assert_eq!((store.scan_mark(1).await.unwrap(), store.scan_mark(3).await.unwrap()), (None, Some(7)));
        assert_eq!(second.begin(&source).await.unwrap(), TargetState::Finished);
        let other = second.begin(&SourceId::from_bytes([2; 16])).await.unwrap();
        assert!(matches!(other, TargetState::Occupied(_)), "{other:?}");
    });
}

#[test]
fn unequal_copy_is_not_a_finished_move() {
    metering_tests::skip_if!(is_skipped());
    let moving = Move::with_one_account();
    drop(moving.connect().unwrap());
    // A database that does not store what it is given.
    let twist = "CREATE FUNCTION twist() RETURNS trigger LANGUAGE plpgsql AS \
                 'BEGIN NEW.balance := NEW.balance + 1; RETURN NEW; END'";
    moving.psql(twist);
    moving.psql("CREATE TRIGGER twist BEFORE INSERT ON meter FOR EACH ROW EXECUTE FUNCTION twist()");
    let ran = moving.program.run(super::MIGRATE);
    assert!(ran.stdout.contains("its balance was 0.0009722222 and is now 0.0009722224"), "{ran:?}");
    assert!(ran.failure(3).contains("the copy is not equal: 1 record differs"));
    assert_eq!(block_on(moving.sqlite().verify()).unwrap().accounts, 1, "the file is still the store to use");
    assert!(moving.connect().is_err());
    moving.psql("DROP TRIGGER twist ON meter");
    moving.migrate();
    assert_moved(&moving);
}
