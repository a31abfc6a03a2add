//! Two handles on one file, each with its own cache: what one changes, the other obeys with its next commit.

use std::time::Duration;

use metering_core::access::{KeyRefusal, KeyTerms};
use metering_core::charging::LimitWindow;
use metering_core::store::{KeyChange, KeyStore, TermsChange};
use metering_core::{Refusal, Store};
use metering_sqlite::SqliteStore;

use super::{all_scopes, assert_sound, change, charge, charge_at, create, hash, new_key, terms, two};
use crate::contract::fast_folder;
use crate::scene::{NOON, account, count, database_path};

/// A change of terms, and what it makes of a charge.
fn changes() -> Vec<(TermsChange, Result<(), Refusal>)> {
    let none = TermsChange::default;
    let expired = NOON.saturating_sub(Duration::from_secs(1));
    vec![
        (TermsChange { disabled: Some(true), ..none() }, Err(Refusal::UnknownKey)),
        (TermsChange { disabled: Some(false), ..none() }, Ok(())),
        (TermsChange { routes: Some("GET /y\n/z/*".parse().unwrap()), ..none() }, Err(Refusal::Key(KeyRefusal::Route))),
        (TermsChange { routes: Some("".parse().unwrap()), ..none() }, Ok(())),
        (
            TermsChange { networks: Some("10.0.0.0/8 2001:db8::/32".parse().unwrap()), ..none() },
            Err(Refusal::Key(KeyRefusal::Network { address: None })),
        ),
        (TermsChange { networks: Some("".parse().unwrap()), ..none() }, Ok(())),
        (
            TermsChange { expires_at: Some(Some(expired)), ..none() },
            Err(Refusal::Key(KeyRefusal::Expired { at: expired })),
        ),
        (TermsChange { expires_at: Some(None), ..none() }, Ok(())),
        (
            TermsChange { scopes: Some("read manage".parse().unwrap()), ..none() },
            Err(Refusal::Key(KeyRefusal::Scope { scope: metering_core::access::Scope::Call })),
        ),
        (TermsChange { scopes: Some("call".parse().unwrap()), ..none() }, Ok(())),
    ]
}

#[tokio::test]
async fn changed_terms_of_a_key_or_one_above_it_count_in_the_other_handle_at_once() {
    let (_folder, file) = database_path();
    let stores = two(&file);
    let (id, _) = account(&stores[0], 1_000).await;
    let parent = create(&stores[0], &id, None, hash(1), all_scopes()).await;
    let child = create(&stores[1], &id, Some(&parent.id), hash(2), all_scopes()).await;
    for turn in 0..2 {
        let (here, there) = (&stores[turn], &stores[1 - turn]);
        for store in [here, there] {
            charge(store, hash(2)).await.unwrap();
        }
        for key in [&child, &parent] {
            for (changed, expected) in changes() {
                let text = format!("{changed:?} of {key:?}");
                let found = change(here, key, terms(changed)).await;
                assert_eq!(charge(there, hash(2)).await.map(drop), expected, "{text}");
                assert_eq!(charge(here, hash(2)).await.map(drop), expected, "{text}");
                let stored = there.key(&id, &key.id, NOON.day()).await.unwrap().unwrap();
                assert_eq!(stored.key, found, "as it was written");
            }
        }
        let again = TermsChange { scopes: Some(all_scopes().scopes), ..TermsChange::default() };
        change(here, &parent, terms(again.clone())).await;
        change(here, &child, terms(again)).await;
    }
    assert_sound(&stores[0]).await;
}

#[tokio::test]
async fn rotations_leaks_and_revocations_count_in_the_other_handle_at_once() {
    let (_folder, file) = database_path();
    let [here, there] = two(&file);
    let (id, first) = account(&here, 1_000).await;
    let parent = create(&here, &id, None, hash(1), all_scopes()).await;
    create(&here, &id, Some(&parent.id), hash(2), all_scopes()).await;
    let lives = async |expected: [bool; 4]| {
        let secrets = [first, hash(1), hash(2), hash(3)];
        for store in [&there, &here] {
            for (secret, expected) in secrets.into_iter().zip(expected) {
                let charged = charge(store, secret).await.map(drop);
                assert_eq!(charged, if expected { Ok(()) } else { Err(Refusal::UnknownKey) }, "{secret:?}");
            }
            assert_eq!(store.live_keys(&secrets, NOON).await.unwrap(), expected);
        }
    };
    lives([true, true, true, false]).await;
    let until = NOON.saturating_add(Duration::from_secs(60));
    change(&here, &parent, KeyChange::Rotate { secret: hash(3), old_until: Some(until) }).await;
    lives([true, true, true, true]).await;
    for store in [&here, &there] {
        assert_eq!(charge_at(store, hash(1), "/x", until).await, Err(Refusal::UnknownKey), "its grace is over");
        charge_at(store, hash(3), "/x", until).await.unwrap();
    }
    let leaked = there.report_leaked(&hash(3), NOON).await.unwrap().unwrap();
    assert_eq!((leaked.id.clone(), leaked.leaked_at), (parent.id.clone(), Some(NOON)));
    assert_eq!(there.report_leaked(&hash(3), NOON).await.unwrap(), None, "it no longer works");
    lives([true, false, false, false]).await;
    change(&here, &parent, KeyChange::Rotate { secret: hash(4), old_until: None }).await;
    lives([true, false, false, false]).await; // whoever found it may have made the child key
    charge(&there, hash(4)).await.unwrap();
    change(&there, &parent, KeyChange::Revoke).await;
    lives([true, false, false, false]).await;
    here.replace_key(&id, hash(5), NOON).await.unwrap().unwrap();
    lives([false; 4]).await;
    for store in [&there, &here] {
        charge(store, hash(5)).await.unwrap();
    }
    here.replace_live_key(&hash(5), hash(6), NOON).await.unwrap().unwrap();
    assert_eq!(there.replace_live_key(&hash(5), hash(7), NOON).await.unwrap(), None);
    for store in [&there, &here] {
        assert_eq!(charge(store, hash(5)).await, Err(Refusal::UnknownKey));
        charge(store, hash(6)).await.unwrap();
    }
    there.revoke_account(&id, NOON).await.unwrap().unwrap();
    for store in [&here, &there] {
        assert_eq!(charge(store, hash(6)).await, Err(Refusal::UnknownKey));
    }
    assert_sound(&there).await;
}

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
    let (_folder, file) = database_path();
    let store = SqliteStore::create(&file).unwrap();
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
