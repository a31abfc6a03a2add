//! Two handles on one file, each with its own cache: rate limits of keys, and the numbers of new keys.

use std::time::Duration;

use metering_core::Refusal;
use metering_core::access::KeyTerms;
use metering_core::charging::LimitWindow;
use metering_core::store::KeyStore;
use metering_sqlite::SqliteStore;

use super::{all_scopes, assert_sound, charge, charge_at, create, hash, new_key, two};
use crate::contract::fast_folder;
use crate::scene::{NOON, account, count, created, database_path};

#[tokio::test]
async fn rate_limits_of_a_key_count_in_both_handles_and_survive_reopening() {
    let (_folder, file) = database_path();
    let stores = two(&file);
    let (id, _) = account(&stores[0], 1_000).await;
    let mut limited = all_scopes();
    (limited.limits.requests_per_minute, limited.limits.requests_per_day) = (30, 45);
    let key = create(&stores[0], &id, None, hash(1), limited).await;
    create(&stores[0], &id, Some(&key.id), hash(2), all_scopes()).await;
    let mut accepted = [0; 2];
    for minute in 0..2_u64 {
        let at = NOON.saturating_add(Duration::from_secs(60 * minute));
        for number in 0..80_u8 {
            let store = &stores[usize::from(number % 2)];
            match charge_at(store, hash(1 + number / 2 % 2), "/x", at).await {
                Ok(_) => accepted[usize::from(minute == 1)] += 1,
                Err(Refusal::RateLimited { window, .. }) => {
                    assert_eq!(window, if minute == 0 { LimitWindow::Minute } else { LimitWindow::Day });
                }
                Err(other) => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(accepted, [30, 15]);
    drop(stores);
    let store = SqliteStore::open(&file).unwrap();
    let refused = charge_at(&store, hash(2), "/x", NOON).await;
    assert!(matches!(refused, Err(Refusal::RateLimited { .. })), "{refused:?}");
    assert_sound(&store).await;
}

/// A charge with a key that nothing is counted for writes what it wrote before there were many keys: one row of the
/// journal.
#[tokio::test]
async fn charges_with_uncounted_keys_write_no_meter() {
    let (_folder, file, store) = created();
    let (id, first) = account(&store, 1_000).await;
    create(&store, &id, None, hash(1), KeyTerms { max_in_flight: 3, ..all_scopes() }).await;
    for _ in 0..30 {
        charge(&store, first).await.unwrap();
        charge(&store, hash(1)).await.unwrap();
    }
    assert_eq!(count(&file, "key_meter"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn keys_made_in_both_handles_at_once_get_different_numbers() {
    let folder = fast_folder();
    let stores = two(&folder.path().join("metering.db")).map(std::sync::Arc::new);
    let (id, _) = account(&stores[0], 1).await;
    let tasks = (0..60_u8).map(|number| {
        let (store, new) = (stores[usize::from(number % 2)].clone(), new_key(&id, None, hash(number), all_scopes()));
        tokio::spawn(async move { store.create_key(metering_core::store::NewKey { max_keys: 41, ..new }).await })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap().unwrap();
    }
    let labels = stores[1].key_labels(&id).await.unwrap();
    let numbers: Vec<_> = labels.iter().map(|label| label.number.get()).collect();
    assert_eq!(numbers, (0..41).collect::<Vec<_>>(), "as many as the account may have");
    assert_sound(&stores[0]).await;
}
