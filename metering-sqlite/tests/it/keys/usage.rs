//! Usage by key: in reports, recent activity, daily totals and records, folded or not.

use metering_core::access::{KeyNumber, KeyTerms};
use metering_core::store::{KeyChange, KeyStore};
use metering_core::usage::DayRange;
use metering_core::{AccountId, Store};
use metering_sql::transfer::{Record, Section};
use metering_sqlite::SqliteStore;

use super::{BASE, all_scopes, assert_sound, budget, calls, change, charge, charge_at, create, hash};
use crate::scene::{NOON, account, created, records};

/// The usage of three keys: the first 2 calls on one route, the second 3, the third 1 on each of two.
async fn use_keys(store: &SqliteStore) -> AccountId {
    let (id, first) = account(store, 100).await;
    let second = create(store, &id, None, hash(1), KeyTerms { budget: budget(9, None), ..all_scopes() }).await;
    create(store, &id, Some(&second.id), hash(2), all_scopes()).await;
    for key in [hash(1), first, hash(1), hash(2), hash(1), first] {
        charge(store, key).await.unwrap();
    }
    let receipt = charge_at(store, hash(2), "/y", NOON).await.unwrap();
    let refund = charge_at(store, hash(2), "/y", NOON).await.unwrap().into_refund().unwrap();
    drop(receipt);
    store.commit(vec![metering_core::charging::Posting::Refund(refund)], NOON).await.unwrap();
    id
}

async fn check(store: &SqliteStore, id: &AccountId) {
    let number = KeyNumber::new;
    let report = store.usage_report(id, DayRange::last_days(NOON, 3)).await.unwrap().unwrap();
    let by_key: Vec<_> = report.by_key.iter().map(|total| (total.key, total.call_count, total.credits_used)).collect();
    assert_eq!(by_key, [(number(1), 3, calls(3)), (number(0), 2, calls(2)), (number(2), 3, calls(2))]);

    let activity = store.activity(id, 50).await.unwrap();
    let newest_first: Vec<_> = activity.iter().filter_map(|entry| Some((entry.key?.get(), entry.calls))).collect();
    assert_eq!(newest_first, [(2, 1), (2, 1), (2, 1), (0, 1), (1, 1), (2, 1), (1, 1), (0, 1), (1, 1)]);
    assert_eq!(activity.last().unwrap().key, None, "a ledger entry");

    let of_account = store.account_daily_totals(id, DayRange::last_days(NOON, 3)).await.unwrap();
    let row = |total: &metering_core::usage::DailyTotal| {
        (total.line.route_template.to_string(), total.key.get(), total.calls, total.credits_used.atoms() / BASE)
    };
    let expected = [("/x", 0, 2, 2), ("/x", 1, 3, 3), ("/x", 2, 1, 1), ("/y", 2, 2, 1)];
    let expected = expected.map(|(route, key, calls, credits)| (route.to_owned(), key, calls, credits));
    assert_eq!(of_account.iter().map(row).collect::<Vec<_>>(), expected);
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = store.daily_totals(after.as_ref(), 1).await.unwrap();
        all.extend(page.items);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(all, of_account, "a page for each");

    let keys = store.keys(id, None, 10, NOON.day()).await.unwrap().items;
    let used: Vec<_> = keys.iter().map(|status| (status.key.number.get(), status.usage.total, status.spent)).collect();
    let spent = keys[1].spent.unwrap();
    assert_eq!(spent.amount, calls(5));
    assert_eq!(used, [(0, calls(2), None), (1, calls(3), Some(spent)), (2, calls(2), None)]);
    assert!(keys.iter().all(|status| status.usage.daily == status.usage.total));
    assert!(keys.iter().all(|status| status.usage.last_used == Some(NOON.day())));
    assert_sound(store).await;
}

#[tokio::test]
async fn usage_is_told_apart_by_key_before_and_after_folding() {
    let (_folder, file, store) = created();
    let id = use_keys(&store).await;
    check(&store, &id).await;
    check(&SqliteStore::open(&file).unwrap(), &id).await;
    drop(store);
    let store = SqliteStore::open(&file).unwrap();
    check(&store, &id).await;
    let copy = file.with_file_name("copy.db");
    assert_eq!(store.backup_to(&copy).await.unwrap().discrepancies, []);
    check(&SqliteStore::open(&copy).unwrap(), &id).await;
}

#[tokio::test]
async fn records_have_every_key_its_meter_and_its_secrets() {
    let (_folder, _, store) = created();
    let other = account(&store, 1).await.0;
    let id = use_keys(&store).await;
    let statuses = store.keys(&id, None, 10, NOON.day()).await.unwrap().items;
    let later = NOON.saturating_add(std::time::Duration::from_secs(60));
    let rotated = KeyChange::Rotate { secret: hash(9), old_until: Some(later) };
    change(&store, &statuses[2].key, rotated).await;
    let leaked = store.report_leaked(&hash(1), NOON).await.unwrap().unwrap();

    let keys = records(&store, Section::Keys, 2).await;
    let keys: Vec<_> = keys
        .iter()
        .map(|record| match record {
            Record::Key(record) => record,
            other => panic!("{other:?}"),
        })
        .collect();
    let places: Vec<_> = keys.iter().map(|record| (&record.key.account, record.key.number.get())).collect();
    assert_eq!(places, [(&other, 0), (&id, 0), (&id, 1), (&id, 2)]);
    assert_eq!((&keys[2].key, &keys[3].key), (&leaked, &statuses[2].key));
    let spent: Vec<_> = keys.iter().map(|record| record.meter.map(|meter| meter.spent.amount)).collect();
    assert_eq!(spent, [None, None, Some(calls(5)), None]);

    let secrets = records(&store, Section::Secrets, 2).await;
    let secrets = secrets.iter().map(|record| match record {
        Record::Secret(record) => record,
        other => panic!("{other:?}"),
    });
    let mut made: Vec<_> = secrets
        .filter(|secret| !secret.key.is_first())
        .map(|secret| (secret.hash, secret.key.get(), secret.expires_at, secret.revoked_at))
        .collect();
    made.sort_by_key(|(hash, ..)| *hash.as_bytes());
    let expected = [(hash(1), 1, None, Some(NOON)), (hash(2), 2, Some(later), None), (hash(9), 2, None, None)];
    assert_eq!(made, expected);

    let totals = records(&store, Section::Usage, 2).await;
    let of_keys: Vec<_> = totals
        .iter()
        .filter_map(|record| match record {
            Record::Usage(total) => Some((total.line.route_template.to_string(), total.key.get())),
            _ => None,
        })
        .collect();
    let expected = [("/x", 0), ("/x", 1), ("/x", 2), ("/y", 2)].map(|(route, key)| (route.to_owned(), key));
    assert_eq!(of_keys, expected);
    let activity = records(&store, Section::Activity, 2).await;
    let of_keys = activity.iter().filter_map(|record| match record {
        Record::Activity(entry) => Some(entry.key.get()),
        _ => None,
    });
    assert_eq!(of_keys.collect::<Vec<_>>(), [1, 0, 1, 2, 1, 0, 2, 2, 2]);
}
