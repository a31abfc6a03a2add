//! The changes of holds are in the journal before they are in the tables. No reader or rate limit sees a difference,
//! even after a crash.

use metering_core::charging::{HoldAction, Posting};
use metering_core::store::HoldStore;
use metering_core::usage::{ActivityKind, DayRange};
use metering_core::{RateLimits, Refusal, Store};
use metering_sqlite::SqliteStore;

use super::{act, amounts, assert_sound, at, calls, capture, charge_of, hold_of, id_of, numbers, open, post, update};
use crate::scene::{NOON, account, count, crash, created};

#[tokio::test]
async fn a_crash_at_any_stage_of_folding_loses_no_hold() {
    let (folder, file, store) = created();
    let (id, key) = account(&store, 1_000).await;
    // Each round opens two holds of 3, captures 1 of one of the last round's and charges 1. Every third round releases
    // the other, and all others leave it open.
    let (mut held, mut used, mut released, mut stages) = (0, 0, Vec::new(), std::collections::BTreeSet::new());
    for number in 0..100_u8 {
        let mut batch = vec![
            Posting::Charge(hold_of(key, 3, 2 * number)),
            Posting::Charge(hold_of(key, 3, 2 * number + 1)),
            Posting::Charge(charge_of(key, 1)),
        ];
        (held, used) = (held + 6, used + 1);
        if let Some(last) = number.checked_sub(1) {
            batch.insert(0, update(&id, 2 * last, capture(1)));
            (held, used) = (held - 3, used + 1);
            if last % 3 == 0 {
                batch.push(update(&id, 2 * last + 1, HoldAction::Release));
                released.push(2 * last + 1);
                held -= 3;
            }
        }
        store.commit(batch, NOON).await.unwrap();
        let expected = [1_000 - held - used, held, used];
        assert_eq!(amounts(&store, &id).await, expected, "round {number}");
        if number % 3 > 0 {
            continue;
        }
        let copy = crash(&file, folder.path(), number);
        let found = SqliteStore::open(&copy).unwrap();
        stages.insert(count(&copy, "fold WHERE floor < upto"));
        assert_eq!(amounts(&found, &id).await, expected, "round {number}");
        assert_sound(&found).await;
        let open = numbers(&found.open_holds(&id, u32::MAX).await.unwrap());
        let is_open = |hold: &u8| hold / 2 == number || (hold % 2 == 1 && !released.contains(hold));
        assert_eq!(open, (0..=2 * number + 1).rev().filter(is_open).collect::<Vec<_>>());
        for hold in open {
            assert!(act(&found, &id, hold, HoldAction::Release).await.changed);
        }
        assert_eq!(amounts(&found, &id).await, [1_000 - used, 0, used]);
        assert_sound(&found).await;
    }
    assert_eq!(stages, std::collections::BTreeSet::from([0, 1]), "crashes between rounds of folding and in them");
}

/// A hold counts towards the rate limits when it is opened, and its capture does not count again.
#[tokio::test]
async fn rate_limits_count_a_hold_once() {
    let (_folder, file, mut store) = created();
    let (id, key) = account(&store, 1_000).await;
    let limits = RateLimits::per_minute(4).and_per_day(6);
    store.set_limits(&id, limits).await.unwrap().unwrap();
    let other = SqliteStore::open(&file).unwrap();
    open(&store, key, 3, 1).await;
    open(&other, key, 3, 2).await;
    // Opened and settled in one batch, with a charge of the same line: that makes one row of usage.
    let batch = vec![
        Posting::Charge(hold_of(key, 3, 3)),
        update(&id, 3, capture(1)),
        Posting::Charge(charge_of(key, 1)),
        update(&id, 1, capture(2)),
        Posting::Charge(charge_of(key, 1)),
    ];
    let outcomes = format!("{:?}", store.commit(batch, NOON).await.unwrap());
    assert!(outcomes.contains("window: Minute") && outcomes.matches("Refused").count() == 1, "{outcomes}");
    drop(other);
    for round in 0..2 {
        // First in the journal, then folded.
        let refused = post(&store, hold_of(key, 1, 4), at(59)).await;
        let Err(Refusal::RateLimited { rate, .. }) = refused else { panic!("{refused:?}") };
        assert_eq!((rate.minute.count, rate.day.count), (4, 4), "round {round}");
        drop(store);
        assert_eq!(count(&file, "charge_journal"), 0);
        store = SqliteStore::open(&file).unwrap();
    }
    // The next minute: what was opened before and is settled now does not count in it.
    store.commit(vec![update(&id, 2, capture(1))], at(60)).await.unwrap();
    drop(store);
    let store = SqliteStore::open(&file).unwrap();
    let receipt = post(&store, hold_of(key, 1, 5), at(61)).await.unwrap();
    assert_eq!((receipt.rate.minute.count, receipt.rate.day.count), (1, 5));
    post(&store, charge_of(key, 1), at(62)).await.unwrap();
    assert!(post(&store, charge_of(key, 1), at(200)).await.is_err(), "the limit of the day");
    assert_eq!(amounts(&store, &id).await, [993, 1, 6]);
    assert_sound(&store).await;
}

#[tokio::test]
async fn a_renewed_lease_is_not_in_the_journal() {
    let (_folder, file, store) = created();
    let (id, key) = account(&store, 10).await;
    open(&store, key, 3, 1).await;
    let before = count(&file, "charge_journal");
    assert!(act(&store, &id, 1, HoldAction::Renew { until: at(90) }).await.changed);
    assert!(!act(&store, &id, 1, HoldAction::Expire).await.changed);
    assert_eq!(count(&file, "charge_journal"), before);
    assert_eq!(store.hold(&id_of(1)).await.unwrap().unwrap().expires_at, at(90));
    assert_eq!(store.expired_holds(at(60), 9).await.unwrap(), []);
    assert_eq!(numbers(&store.expired_holds(at(90), 9).await.unwrap()), [1]);
}

/// Usage of a hold is booked on the day on which it was opened, folded or not, and activity shows how it was settled.
#[tokio::test]
async fn usage_of_a_hold_is_of_its_day_and_says_how_it_was_settled() {
    let (_folder, file, store) = created();
    let (id, key) = account(&store, 100).await;
    for number in 1..5 {
        open(&store, key, 5, number).await;
    }
    let tomorrow = at(86_400);
    let settle = [
        update(&id, 1, capture(3)),
        update(&id, 2, HoldAction::CaptureFallback),
        update(&id, 3, HoldAction::Expire),
        update(&id, 4, HoldAction::Release),
        Posting::Charge(charge_of(key, 2)),
    ];
    store.commit(settle.into(), tomorrow).await.unwrap();
    let check = async |store: &SqliteStore| {
        let days = DayRange { first: NOON.day(), last: tomorrow.day() };
        let report = store.usage_report(&id, days).await.unwrap().unwrap();
        let days: Vec<_> = report.by_day.iter().map(|day| (day.day, day.usage_events, day.credits_used)).collect();
        assert_eq!(days, [(tomorrow.day(), 1, calls(2)), (NOON.day(), 4, calls(5))]);
        let activity = store.activity(&id, 4).await.unwrap();
        let mut entries: Vec<_> =
            activity.iter().map(|entry| (entry.kind.as_str(), entry.amount, entry.calls, entry.created_at)).collect();
        entries.sort_unstable();
        let expected = [
            (ActivityKind::HoldExpired.as_str(), calls(-1), 1, tomorrow),
            (ActivityKind::HoldReleased.as_str(), calls(0), 1, tomorrow),
            (ActivityKind::Usage.as_str(), calls(-4), 2, tomorrow),
            (ActivityKind::Usage.as_str(), calls(-2), 1, tomorrow),
        ];
        assert_eq!(entries, expected);
        assert!(activity.iter().all(|entry| entry.request_path.as_deref() == Some("/7")), "{activity:?}");
        assert_eq!(amounts(store, &id).await, [93, 0, 7]);
        assert_sound(store).await;
    };
    assert!(count(&file, "charge_journal") > 0);
    check(&store).await;
    drop(store);
    assert_eq!(count(&file, "charge_journal"), 0);
    check(&SqliteStore::open(&file).unwrap()).await;
}
