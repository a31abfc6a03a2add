//! Moves that are interrupted and run again.

use std::time::{Duration, Instant};

use metering_core::transfer::{Import, Record, ScanMark, SourceId, TargetState};
use metering_core::{PaymentStore, Store};
use metering_postgres::PostgresStore;
use metering_sqlite::SqliteStore;
use metering_tests::postgres::{Cluster, is_skipped};

use crate::filling::{fill, grant};
use crate::fixture::{Fixture, block_on, customer, records};
use crate::link::{Event, Link};

/// Asserts that the target has the same records as the file.
fn assert_moved(fixture: &Fixture) {
    assert!(fixture.migrate(&[]).success().contains("Already moved to"));
    let file = SqliteStore::open_alone(&fixture.file()).unwrap();
    block_on(async { assert_eq!(records(&fixture.postgres().await).await, records(&file).await) });
}

#[test]
fn killed_move_is_finished_by_the_next_run() {
    if is_skipped() {
        return;
    }
    let full = Fixture::new();
    block_on(fill(&full));
    let mut killed = 0;
    for at in 1.. {
        let fixture = Fixture::new();
        std::fs::copy(full.file(), fixture.file()).unwrap();
        let event = if at % 2 == 0 { Event::Stall } else { Event::StallAfter };
        let link = Link::with(event, at);
        let mut running = fixture.start(&fixture.url_by(link.port()));
        if !link.wait(|| running.has_ended()) {
            // Past its last commit: it finished.
            assert_moved(&fixture);
            break;
        }
        running.kill();
        killed += 1;
        // The target must not pass for a complete store, unless it is one.
        let opened = block_on(PostgresStore::connect(&fixture.url.parse().unwrap()));
        if let Ok(store) = &opened
            && block_on(store.accounts(None, 10)).unwrap().items.is_empty()
        {
            // Before the move began.
            assert!(SqliteStore::open(&fixture.file()).is_ok());
        } else if opened.is_ok() {
            assert!(SqliteStore::open(&fixture.file()).is_err(), "at {at}: both accept charges");
        }
        drop(opened);
        let ran = fixture.migrate(&[]);
        ran.success();
        assert_moved(&fixture);
    }
    assert!(killed > 15, "{killed}");
}

#[test]
fn move_that_lost_its_database_is_finished_by_the_next_run() {
    if is_skipped() {
        return;
    }
    let fixture = Fixture::new();
    block_on(fill(&fixture));
    let link = Link::with(Event::Down, 8);
    let message = fixture.migrate_by(&fixture.url_by(link.port())).failure(1);
    assert!(message.contains("did not finish") && message.contains("again"), "{message}");
    assert!(link.happened() > 0);
    let refused = block_on(PostgresStore::connect(&fixture.url.parse().unwrap())).unwrap_err().to_string();
    assert!(refused.contains("has not finished"), "{refused}");
    let message = fixture.admin(&["--database", &fixture.url, "verify"]).failure(1);
    assert!(message.contains("has not finished"), "{message}");
    let looked = fixture.migrate(&["--dry-run"]).success();
    assert!(looked.contains("replacing an unfinished move"), "{looked}");
    // The file is unchanged until everything is copied.
    drop(fixture.sqlite());
    fixture.migrate(&[]).success();
    assert_moved(&fixture);
}

#[test]
fn unacknowledged_commits_are_looked_up_and_not_repeated() {
    if is_skipped() {
        return;
    }
    let fixture = Fixture::new();
    block_on(fill(&fixture));
    let link = Link::with(Event::Cut, 3);
    let ran = fixture.migrate_by(&fixture.url_by(link.port()));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(link.happened() > 4, "{}", link.happened());
    assert_moved(&fixture);
}

#[test]
fn one_of_two_moves_to_one_target_continues() {
    if is_skipped() {
        return;
    }
    let fixture = Fixture::new();
    block_on(fill(&fixture));
    let link = Link::with(Event::Stall, 6);
    let mut first = fixture.start(&fixture.url_by(link.port()));
    assert!(link.wait(|| first.has_ended()));
    // From the same file, and from another one.
    let message = fixture.migrate(&[]).failure(1);
    assert!(message.contains("open in another process"), "{message}");
    let other = Fixture { url: fixture.url.clone(), ..Fixture::new() };
    block_on(async { customer(&other.sqlite(), 77, grant(1)).await });
    for more in [&[][..], &["--dry-run"]] {
        let message = other.migrate(more).failure(5);
        assert!(message.contains("in progress"), "{message}");
    }
    first.kill();
    fixture.migrate(&[]).success();
    assert_moved(&fixture);
    let message = other.migrate(&[]).failure(5);
    assert!(message.contains("another store was moved there"), "{message}");
}

#[test]
fn superseded_move_stops_writing() {
    if is_skipped() {
        return;
    }
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
    if is_skipped() {
        return;
    }
    let fixture = Fixture::new();
    block_on(async { customer(&fixture.sqlite(), 1, grant(72)).await });
    drop(block_on(PostgresStore::connect(&fixture.url.parse().unwrap())).unwrap());
    // A database that does not store what it is given.
    let twist = "CREATE FUNCTION twist() RETURNS trigger LANGUAGE plpgsql AS \
                 'BEGIN NEW.balance := NEW.balance + 1; RETURN NEW; END'";
    fixture.psql(twist);
    fixture.psql("CREATE TRIGGER twist BEFORE INSERT ON meter FOR EACH ROW EXECUTE FUNCTION twist()");
    let ran = fixture.migrate(&[]);
    assert!(ran.stdout.contains("its balance was 0.01 and is now 0.0100000001"), "{ran:?}");
    let message = ran.failure(3);
    assert!(message.contains("the copy is not equal: 1 record differs"), "{message}");
    assert_eq!(block_on(fixture.sqlite().verify()).unwrap().accounts, 1, "the file is still the store to use");
    assert!(block_on(PostgresStore::connect(&fixture.url.parse().unwrap())).is_err());
    fixture.psql("DROP TRIGGER twist ON meter");
    fixture.migrate(&[]).success();
    assert_moved(&fixture);
}
