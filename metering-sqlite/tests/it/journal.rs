//! The charge journal: the tables lag behind it and no reader does, at every stage of folding, also after a crash.
//!
//! Debug builds begin a round of folding after 100 changes, or 20 of one account.

use std::time::Duration;

use metering_core::access::KeyHash;
use metering_core::charging::{Outcome, Posting, Refund};
use metering_core::store::{EpochReason, LogSecret, LogStep, LogStore, NewEpoch, NewLogged, Posted};
use metering_core::usage::{Activity, DayRange};
use metering_core::{
    AccountId, Charge, ClientSource, Credits, Day, Decision, RateLimits, Receipt, Refusal, Store, Timestamp, UsageLine,
};
use metering_sqlite::SqliteStore;

use crate::scene::{NOON, account, assert_corrupt, charge, count, crash, created, database_path, execute, grant};

const TABLES: [&str; 2] = ["usage_daily", "recent_activity"];

fn at(second: u64) -> Timestamp {
    NOON.saturating_add(Duration::from_secs(second))
}

fn posting(key: KeyHash, path: &str) -> Posting {
    let line = UsageLine { route_template: "/{n}".into(), http_method: "GET".into(), source: ClientSource::Direct };
    let price = Credits::BASE_CALL;
    Posting::Charge(Charge::of(key, price, line).with_path(path))
}

fn receipt(outcome: Outcome) -> Receipt {
    match outcome {
        Outcome::Decided(Decision::Accepted(receipt)) => receipt,
        other => panic!("not charged: {other:?}"),
    }
}

async fn calls(store: &SqliteStore, id: &AccountId) -> u64 {
    let today = NOON.day();
    let report = store.usage_report(id, DayRange { first: today, last: today }).await.unwrap().unwrap();
    report.by_day.iter().map(|day| day.usage_events).sum()
}

fn ids(activity: &[Activity]) -> Vec<u64> {
    activity.iter().map(|entry| entry.id.strip_prefix("act_").unwrap().parse().unwrap()).collect()
}

#[tokio::test]
async fn tables_lag_behind_until_an_orderly_close() {
    let (_folder, file, store) = created();
    let (id, key) = account(&store, 100).await;
    for _ in 0..5 {
        charge(&store, key).await.unwrap();
    }
    assert_eq!(TABLES.map(|table| count(&file, table)), [0, 0]);
    assert_eq!(count(&file, "charge_journal"), 5);
    let other = SqliteStore::open(&file).unwrap();
    for store in [&store, &other] {
        assert_eq!(store.account(&id).await.unwrap().unwrap().totals.balance.atoms(), 95 * 1_000_000);
        assert_eq!(store.accounts(None, 9).await.unwrap().items[0].totals.used.atoms(), 5 * 1_000_000);
        assert_eq!(store.account_by_key(&key).await.unwrap().unwrap().totals.used.atoms(), 5 * 1_000_000);
        assert_eq!(calls(store, &id).await, 5);
        assert_eq!(store.daily_totals(None, 9).await.unwrap().items[0].calls, 5);
        assert_eq!(store.activity(&id, 99).await.unwrap().len(), 6);
        assert_eq!(store.verify().await.unwrap().discrepancies, []);
    }
    drop(other);
    assert_eq!(count(&file, "charge_journal"), 5, "a reader does not change the journal");
    drop(store);
    assert_eq!(TABLES.map(|table| count(&file, table)), [1, 1]);
    assert_eq!(count(&file, "charge_journal"), 0);
    let store = SqliteStore::open(&file).unwrap();
    assert_eq!((calls(&store, &id).await, store.activity(&id, 99).await.unwrap().len()), (5, 6));
}

/// Rows that an open log has not taken stay in the journal when it is folded and closed, and are not folded again.
#[tokio::test]
async fn rows_stay_until_the_log_has_them() {
    let (_folder, file, store) = created();
    let (id, key) = account(&store, 100).await;
    let origin = "log.example/1".to_owned();
    let new = NewEpoch { origin, secret: LogSecret::new([7; 32]), reason: EpochReason::Init, previous: None };
    store.begin_log(new, None, NOON).await.unwrap().unwrap();
    for _ in 0..5 {
        charge(&store, key).await.unwrap();
    }
    drop(store);
    assert_eq!((count(&file, "usage_daily"), count(&file, "charge_journal")), (1, 5), "folded and kept");

    let store = SqliteStore::open(&file).unwrap();
    assert_eq!(calls(&store, &id).await, 5);
    charge(&store, key).await.unwrap();
    let epoch = store.claim_log("node", Duration::from_secs(9), NOON).await.unwrap().unwrap();
    let found = store.unlogged(&epoch, 99).await.unwrap();
    assert_eq!(found.postings.len(), 7, "the opening funds and six charges");
    let step = LogStep {
        epoch: 1,
        node: "node".to_owned(),
        from: 0,
        size: 7,
        root: [1; 32],
        bundles: Vec::new(),
        tiles: Vec::new(),
        accounts: vec![NewLogged { row: found.postings[0].account.unwrap(), number: 0 }],
        lines: Vec::new(),
        taken: found.taken,
        batches: found.batches,
        swept: Vec::new(),
        swept_from: None,
    };
    assert!(store.append_log(step).await.unwrap());
    assert_eq!(count(&file, "charge_journal"), 1, "those that were folded are gone");
    drop(store);
    assert_eq!(count(&file, "charge_journal"), 0);
    let store = SqliteStore::open(&file).unwrap();
    assert_eq!(calls(&store, &id).await, 6);
    assert_eq!(store.verify().await.unwrap().discrepancies, []);
}

/// At every commit of a workload that folds all the time, a copy of the files has everything that was confirmed.
#[tokio::test]
async fn a_crash_at_any_stage_of_folding_loses_nothing() {
    let (folder, file, store) = created();
    let mut customers = Vec::new();
    for _ in 0..40 {
        customers.push(account(&store, 1_000_000).await);
    }
    let (mut confirmed, mut stages) = (vec![0_u64; customers.len()], std::collections::BTreeSet::new());
    for number in 0..240_u32 {
        // The first account is charged in every commit, three others in turn.
        let chosen = [0, 1 + number as usize % 39, 1 + (number as usize * 7) % 39, 1 + (number as usize * 11) % 39];
        let postings = chosen.map(|index| posting(customers[index].1, &format!("/{number}")));
        for outcome in store.commit(postings.into(), at(number.into())).await.unwrap() {
            receipt(outcome);
        }
        chosen.iter().for_each(|index| confirmed[*index] += 1);
        if number % 3 > 0 {
            continue;
        }
        let copy = crash(&file, folder.path(), number);
        let sql = "SELECT floor < upto, (SELECT count(*) > 0 FROM charge_journal WHERE id <= floor) FROM fold";
        let connection = rusqlite::Connection::open(&copy).unwrap();
        stages
            .insert(connection.query_row(sql, [], |row| Ok((row.get::<_, bool>(0)?, row.get::<_, bool>(1)?))).unwrap());
        drop(connection);
        let found = SqliteStore::open(&copy).unwrap();
        for ((id, _), confirmed) in customers.iter().zip(&confirmed) {
            assert_eq!(calls(&found, id).await, *confirmed, "commit {number}");
            let used = found.account(id).await.unwrap().unwrap().totals.used.atoms();
            assert_eq!(used, i64::try_from(*confirmed).unwrap() * 1_000_000);
        }
        assert_eq!(found.verify().await.unwrap().discrepancies, []);
    }
    let all = std::collections::BTreeSet::from([(false, false), (false, true), (true, false)]);
    assert_eq!(stages, all, "crashes before, after and in the middle of folding");
    let longest = store.activity(&customers[0].0, u32::MAX).await.unwrap();
    let newest_first = ids(&longest);
    assert_eq!(newest_first.len(), 241);
    assert!(newest_first.is_sorted_by(|newer, older| newer > older), "{newest_first:?}");
    assert_eq!(longest[0].request_path.as_deref(), Some("/239"));
}

/// No matter how many processes charge.
#[tokio::test]
async fn the_journal_stays_short() {
    for stores in 1..=3 {
        let (_folder, file) = database_path();
        let stores: Vec<_> = (0..stores).map(|_| SqliteStore::create(&file).unwrap()).collect();
        let mut keys = Vec::new();
        for _ in 0..300 {
            keys.push(account(&stores[0], 1_000).await.1);
        }
        let mut longest = 0;
        for number in 0..1_500_usize {
            let store = &stores[number % stores.len()];
            store.commit(vec![posting(keys[number * 7 % 300], "/x")], NOON).await.unwrap();
            longest = longest.max(count(&file, "charge_journal"));
        }
        assert!((100..=300).contains(&longest), "{longest} rows with {} stores", stores.len());
        assert_eq!(stores[0].verify().await.unwrap().discrepancies, []);
    }
}

/// Two processes on one file, modelled by two stores: each charges, grants and folds, and both always agree.
#[tokio::test]
async fn openers_that_fold_beside_each_other_agree() {
    let (_folder, file) = database_path();
    let stores = [SqliteStore::create(&file).unwrap(), SqliteStore::open(&file).unwrap()];
    let mut customers = Vec::new();
    for _ in 0..30 {
        customers.push(account(&stores[0], 10).await);
    }
    let mut left = vec![10_i64; customers.len()];
    for number in 0..900_usize {
        let (store, index) = (&stores[number * 5 / 3 % 2], number * 13 % customers.len());
        let (id, key) = &customers[index];
        if number % 17 == 0 {
            let posted = store.post_entry(id, grant(3), NOON).await.unwrap();
            left[index] += 3;
            let Posted::Account(account) = posted else { panic!("{posted:?}") };
            assert_eq!(account.totals.balance.atoms(), left[index] * 1_000_000);
        }
        match charge(store, *key).await {
            Ok(covered) => {
                left[index] -= 1;
                assert_eq!(covered, left[index], "charge {number}");
            }
            Err(Refusal::InsufficientCredits { .. }) => assert_eq!(left[index], 0, "charge {number}"),
            Err(other) => panic!("{other:?}"),
        }
        let elsewhere = &stores[1 - number % 2];
        let found = elsewhere.account(id).await.unwrap().unwrap().totals.balance;
        assert_eq!(found.atoms(), left[index] * 1_000_000, "after charge {number}");
    }
    for store in &stores {
        assert_eq!(store.verify().await.unwrap().discrepancies, []);
    }
}

/// Rate limits count what is still in the journal, and what was folded since.
#[tokio::test]
async fn rate_limits_hold_while_the_journal_is_folded() {
    let (_folder, file) = database_path();
    let stores = [SqliteStore::create(&file).unwrap(), SqliteStore::open(&file).unwrap()];
    let (id, key) = account(&stores[0], 1_000).await;
    let limits = RateLimits::per_minute(70).and_per_day(100);
    stores[1].set_limits(&id, limits).await.unwrap().unwrap();
    let mut accepted = [0; 3];
    for number in 0..300_usize {
        let minute = number / 100;
        let outcome = stores[number % 2].commit(vec![posting(key, "/x")], at(60 * minute as u64)).await.unwrap();
        accepted[minute] += usize::from(matches!(outcome[..], [Outcome::Decided(Decision::Accepted(_))]));
    }
    assert_eq!(accepted, [70, 30, 0]);
}

/// A refund is booked on the day of its charge, which may be folded long since.
#[tokio::test]
async fn a_refund_after_midnight_counts_for_the_day_before() {
    let (_folder, file, store) = created();
    let (id, key) = account(&store, 100).await;
    let first = receipt(store.commit(vec![posting(key, "/x")], NOON).await.unwrap().remove(0));
    drop(store);
    let store = SqliteStore::open(&file).unwrap();
    let refund: Refund = first.into_refund().unwrap();
    let tomorrow = at(86_400);
    store.commit(vec![Posting::Refund(refund), posting(key, "/x")], tomorrow).await.unwrap();
    let check = async |store: &SqliteStore| {
        let days = DayRange { first: NOON.day(), last: tomorrow.day() };
        let report = store.usage_report(&id, days).await.unwrap().unwrap();
        let days: Vec<(Day, u64, i64)> =
            report.by_day.iter().map(|day| (day.day, day.usage_events, day.credits_used.atoms())).collect();
        assert_eq!(days, [(tomorrow.day(), 1, 1_000_000), (NOON.day(), 1, 0)]);
    };
    check(&store).await;
    drop(store);
    check(&SqliteStore::open(&file).unwrap()).await;
}

#[tokio::test]
async fn damage_to_the_journal_is_detected() {
    // damage, expected fragment of the message
    let table = [
        ("DELETE FROM charge_journal WHERE id = (SELECT min(id) FROM charge_journal)", "is missing"),
        ("DELETE FROM charge_journal WHERE id = (SELECT id FROM charge_journal LIMIT 1 OFFSET 2)", "is missing"),
        ("UPDATE charge_journal SET entries = zeroblob(9)", "checksum"),
        ("UPDATE charge_journal SET entries = x''", "too short"),
        ("DELETE FROM fold", "not recorded"),
        (
            "DELETE FROM key_secret; DELETE FROM api_key; DELETE FROM meter; DELETE FROM ledger; DELETE FROM account",
            "is missing",
        ),
    ];
    for (damage, expected) in table {
        let (_folder, file, store) = created();
        let (_, key) = account(&store, 100).await;
        for _ in 0..5 {
            charge(&store, key).await.unwrap();
        }
        assert_eq!(store.verify().await.unwrap().discrepancies, [], "before: {damage}");
        execute(&file, &format!("PRAGMA foreign_keys = off; {damage}"));
        assert_corrupt(&store, expected, damage).await;
    }
}

#[tokio::test]
async fn damage_to_recent_activity_is_detected() {
    let damages = [
        "UPDATE recent_activity SET entries = x'01'",
        "UPDATE recent_activity SET entries = x''",
        "UPDATE recent_activity SET slot = 5",
        "UPDATE meter SET activity_count = 99",
    ];
    for damage in damages {
        let (_folder, file, store) = created();
        let (_, key) = account(&store, 100).await;
        charge(&store, key).await.unwrap();
        drop(store);
        let store = SqliteStore::open(&file).unwrap();
        assert_eq!(store.verify().await.unwrap().discrepancies, [], "before: {damage}");
        execute(&file, damage);
        assert_corrupt(&store, "recent activity", damage).await;
    }
}
