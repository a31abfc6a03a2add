//! Moves that are interrupted and run again.

use std::time::{Duration, Instant};

use metering_core::transfer::{Import, Record, ScanMark, SourceId, Standing};
use metering_core::{PaymentStore, Store};
use metering_postgres::PostgresStore;
use metering_sqlite::SqliteStore;
use metering_tests::postgres::{Cluster, is_skipped};

use crate::desk::{Desk, block_on, customer, records};
use crate::filling::{fill, grant};
use crate::link::{Event, Link};

/// Asserts that the target has the same records as the file.
fn assert_moved(desk: &Desk) {
    assert!(desk.migrate(&[]).success().contains("Already moved to"));
    let file = SqliteStore::open_alone(&desk.file()).unwrap();
    block_on(async { assert_eq!(records(&desk.postgres().await).await, records(&file).await) });
}

#[test]
fn a_move_that_is_killed_anywhere_is_finished_by_the_next() {
    if is_skipped() {
        return;
    }
    let full = Desk::new();
    block_on(fill(&full));
    let mut killed = 0;
    for at in 1.. {
        let desk = Desk::new();
        std::fs::copy(full.file(), desk.file()).unwrap();
        let event = if at % 2 == 0 { Event::Stall } else { Event::StallAfter };
        let link = Link::with(event, at);
        let mut running = desk.start(&desk.url_by(link.port()));
        if !link.wait(|| running.has_ended()) {
            // Past its last commit: it finished by itself.
            assert_moved(&desk);
            break;
        }
        running.kill();
        killed += 1;
        // The target must not pass for a complete store, unless it is one.
        let opened = block_on(PostgresStore::connect(&desk.url.parse().unwrap()));
        if let Ok(store) = &opened
            && block_on(store.accounts(None, 10)).unwrap().items.is_empty()
        {
            // Before the move began.
            assert!(SqliteStore::open(&desk.file()).is_ok());
        } else if opened.is_ok() {
            assert!(SqliteStore::open(&desk.file()).is_err(), "at {at}: both accept charges");
        }
        drop(opened);
        let ran = desk.migrate(&[]);
        ran.success();
        assert_moved(&desk);
    }
    assert!(killed > 15, "{killed}");
}

#[test]
fn a_move_whose_database_goes_away_says_so_and_is_finished_by_the_next() {
    if is_skipped() {
        return;
    }
    let desk = Desk::new();
    block_on(fill(&desk));
    let link = Link::with(Event::Down, 8);
    let message = desk.migrate_by(&desk.url_by(link.port())).failure(1);
    assert!(message.contains("did not finish") && message.contains("again"), "{message}");
    assert!(link.happened() > 0);
    let refused = block_on(PostgresStore::connect(&desk.url.parse().unwrap())).unwrap_err().to_string();
    assert!(refused.contains("has not finished"), "{refused}");
    let message = desk.admin(&["--database", &desk.url, "verify"]).failure(1);
    assert!(message.contains("has not finished"), "{message}");
    let looked = desk.migrate(&["--dry-run"]).success();
    assert!(looked.contains("replacing an unfinished move"), "{looked}");
    // The file is unchanged until everything is copied.
    drop(desk.sqlite());
    desk.migrate(&[]).success();
    assert_moved(&desk);
}

#[test]
fn commits_without_answer_are_looked_up_and_not_repeated() {
    if is_skipped() {
        return;
    }
    let desk = Desk::new();
    block_on(fill(&desk));
    let link = Link::with(Event::Cut, 3);
    let ran = desk.migrate_by(&desk.url_by(link.port()));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(link.happened() > 4, "{}", link.happened());
    assert_moved(&desk);
}

#[test]
fn of_two_moves_to_one_place_one_goes_on() {
    if is_skipped() {
        return;
    }
    let desk = Desk::new();
    block_on(fill(&desk));
    let link = Link::with(Event::Stall, 6);
    let mut first = desk.start(&desk.url_by(link.port()));
    assert!(link.wait(|| first.has_ended()));
    // From the same file, and from another one.
    let message = desk.migrate(&[]).failure(1);
    assert!(message.contains("open in another process"), "{message}");
    let other = Desk { url: desk.url.clone(), ..Desk::new() };
    block_on(async { customer(&other.sqlite(), 77, grant(1)).await });
    for more in [&[][..], &["--dry-run"]] {
        let message = other.migrate(more).failure(5);
        assert!(message.contains("in progress"), "{message}");
    }
    first.kill();
    desk.migrate(&[]).success();
    assert_moved(&desk);
    let message = other.migrate(&[]).failure(5);
    assert!(message.contains("another store was moved there"), "{message}");
}

#[test]
fn a_move_that_another_took_over_writes_nothing_more() {
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
        assert_eq!(first.begin(&source).await.unwrap(), Standing::Empty);
        first.import(mark(1)).await.unwrap();
        for store in [&first, &second] {
            assert_eq!(store.standing(&source).await.unwrap(), Standing::UnderWay);
        }
        assert_eq!(second.begin(&source).await.unwrap(), Standing::UnderWay);
        // The first move loses the lock that kept the second out, but stays alive.
        cluster.end_connections();
        let until = Instant::now() + Duration::from_secs(30);
        let again = loop {
            // The server was told to end the connections, but may take a while.
            match second.begin(&source).await.unwrap() {
                Standing::UnderWay if Instant::now() < until => tokio::time::sleep(Duration::from_millis(20)).await,
                standing => break standing,
            }
        };
        assert_eq!(again, Standing::Unfinished);
        let problem = first.import(mark(2)).await.unwrap_err().to_string();
        assert!(problem.contains("another move to this database has begun"), "{problem}");
        assert!(first.finish().await.is_err());
        second.import(mark(3)).await.unwrap();
        assert!(PostgresStore::connect_existing(&config).await.is_err());
        second.finish().await.unwrap();
        let store = PostgresStore::connect_existing(&config).await.unwrap();
        assert_eq!((store.scan_mark(1).await.unwrap(), store.scan_mark(3).await.unwrap()), (None, Some(7)));
        assert_eq!(second.begin(&source).await.unwrap(), Standing::Finished);
        let other = second.begin(&SourceId::from_bytes([2; 16])).await.unwrap();
        assert!(matches!(other, Standing::Occupied(_)), "{other:?}");
    });
}

#[test]
fn a_copy_that_is_not_equal_is_no_move() {
    if is_skipped() {
        return;
    }
    let desk = Desk::new();
    block_on(async { customer(&desk.sqlite(), 1, grant(72)).await });
    drop(block_on(PostgresStore::connect(&desk.url.parse().unwrap())).unwrap());
    // A database that does not store what it is given.
    let twist = "CREATE FUNCTION twist() RETURNS trigger LANGUAGE plpgsql AS \
                 'BEGIN NEW.balance := NEW.balance + 1; RETURN NEW; END'";
    desk.psql(twist);
    desk.psql("CREATE TRIGGER twist BEFORE INSERT ON meter FOR EACH ROW EXECUTE FUNCTION twist()");
    let ran = desk.migrate(&[]);
    assert!(ran.stdout.contains("its balance was 0.01 and is now 0.0100000001"), "{ran:?}");
    let message = ran.failure(3);
    assert!(message.contains("the copy is not equal: 1 record differs"), "{message}");
    assert_eq!(block_on(desk.sqlite().verify()).unwrap().accounts, 1, "the file is still the store to use");
    assert!(block_on(PostgresStore::connect(&desk.url.parse().unwrap())).is_err());
    desk.psql("DROP TRIGGER twist ON meter");
    desk.migrate(&[]).success();
    assert_moved(&desk);
}
