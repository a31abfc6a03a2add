//! Two stores with the same history, each on its own backend, report the same, page by page.

use std::time::Duration;

use metering_core::access::{Budget, KeyHash, KeyTerms, Scopes};
use metering_core::charging::{HoldAction, HoldId, HoldTerms, HoldUpdate, Outcome, Posting};
use metering_core::usage::Activity;
use metering_core::{AccountId, ClientSource, Credits, Decision, Store, Timestamp};
use metering_sql::transfer::Section;
use metering_tests::postgres::is_skipped;

use super::filling::{charge, grant, later};
use super::keys::{BELOW, COUNTED, create, secret};
use super::snapshot::account_snapshot;
use super::{Move, NOON, account, account_id, customer};
use crate::store::{block_on, pages};

const DAY: u64 = 86_400;
const LEASE: Duration = Duration::from_secs(60);
const COMMITS: usize = 900;
const SECTIONS: [Section; 6] =
    [Section::Accounts, Section::Keys, Section::Usage, Section::Activity, Section::Holds, Section::Secrets];

#[test]
fn usage_reads_the_same_however_much_is_folded() {
    metering_tests::skip_if!(is_skipped());
    let moving = Move::new();
    block_on(async {
        let sqlite = moving.sqlite();
        let postgres = metering_postgres::PostgresStore::connect(&moving.url.parse().unwrap()).await.unwrap();
        for step in [20, 300, COMMITS] {
            go(&sqlite, step).await;
            go(&postgres, step).await;
            for section in SECTIONS {
                for limit in [1_000, 7, 2] {
                    let (was, is) = (pages(&sqlite, section, limit).await, pages(&postgres, section, limit).await);
                    assert!(!was.is_empty());
                    let differs = was.iter().zip(&is).find(|(was, is)| was != is);
                    assert_eq!((differs, is.len()), (None, was.len()), "after {step}: {section:?} by {limit}");
                }
            }
            assert_eq!(totals(&postgres, 3).await, totals(&postgres, 1_000).await);
            assert_eq!(totals(&postgres, 1_000).await, totals(&sqlite, 1_000).await);
            for id in [1, 2, 3].map(account_id) {
                let (was, is) = (account(&sqlite, &id).await, account(&postgres, &id).await);
                assert_eq!(account_snapshot(&postgres, &is).await, account_snapshot(&sqlite, &was).await);
                for limit in [1, 17, 200] {
                    assert_eq!(newest(&postgres, &id, limit).await, newest(&sqlite, &id, limit).await);
                }
            }
            assert_eq!(postgres.verify().await.unwrap().discrepancies, []);
        }
    });
}

/// Charges, refunds, holds and grants for three accounts up to a step, over several days. One of the accounts has few.
async fn go(store: &dyn Store, to: usize) {
    let from = store.ledger(None, u32::MAX).await.unwrap().items.len();
    let secrets = [1, 2, 3].map(|number| KeyHash::from_bytes([number; 32]));
    if from == 0 {
        for number in 1..=3 {
            customer(store, number, grant(1_000_000)).await;
        }
        let own = create(store, &account_id(1), None, COUNTED, every_route()).await;
        create(store, &account_id(1), Some(&own), BELOW, every_route()).await;
    }
    let of_first = [secrets[0], secret(COUNTED), secret(BELOW)];
    // The grants tell what was done before: one per step, to the account that has most.
    for step in from.saturating_sub(3)..to {
        let now = later(u64::try_from(step).unwrap() * DAY / 90);
        let paths = ["/a", "/b/1", "/b/2", "/Ä", &"/long".repeat(60)];
        let number = if step % 40 == 0 { 2 } else { usize::from(step % 3 == 0) };
        // One line per commit: the order of lines within a commit depends on the backend.
        let new = |path: &str| {
            let path = format!("{}{path}", paths[step * 7 / 3 % paths.len()]);
            let Posting::Charge(mut charge) =
                charge(if number == 0 { of_first[step % 3] } else { secrets[number] }, &path, None)
            else {
                unreachable!()
            };
            charge.line.route_template = paths[step * 7 / 3 % paths.len()].into();
            charge.line.source = ClientSource::ALL[step / 11 % 4];
            charge.price = Credits::from_atoms(i64::try_from(1 + step * 31 % 977).unwrap());
            Posting::Charge(charge)
        };
        let postings = ["", "", "/x", ""][..=step % 4].iter().copied().map(new).collect();
        let outcomes = store.commit(postings, now).await.unwrap();
        if step % 5 == 0 {
            // Some are refunded, on the same day or a day later, together with a new one.
            let refunds = outcomes.into_iter().filter_map(|outcome| match outcome {
                Outcome::Decided(Decision::Accepted(receipt)) => receipt.into_refund().map(Posting::Refund),
                _ => None,
            });
            let later = now.saturating_add(Duration::from_secs(if step % 2 == 0 { DAY } else { 0 }));
            store.commit(refunds.chain([new("")]).collect(), later).await.unwrap();
        }
        if step % 7 == 3 {
            let key = if number == 0 { of_first[step % 3] } else { secrets[number] };
            hold(store, &account_id(u8::try_from(number + 1).unwrap()), key, step, now).await;
        }
        store.post_entry(&account_id(1), grant(1), NOON).await.unwrap();
    }
}

/// A hold, which is settled in one of all ways, or left open.
async fn hold(store: &dyn Store, account: &AccountId, key: KeyHash, step: usize, now: Timestamp) {
    let atoms = |atoms: usize| Credits::from_atoms(i64::try_from(atoms).unwrap());
    let mut id = [0; 16];
    id[..2].copy_from_slice(&u16::try_from(step).unwrap().to_be_bytes());
    let terms = HoldTerms { id: HoldId::from_bytes(id), lease: LEASE, fallback: atoms(step % 50) };
    let Posting::Charge(new) = charge(key, "/held", None) else { unreachable!() };
    let new = new.with_price(atoms(1_000)).with_hold(terms);
    let opened = store.commit(vec![Posting::Charge(new)], now).await.unwrap();
    assert!(matches!(opened[..], [Outcome::Decided(Decision::Accepted(_))]), "{opened:?}");
    let (action, now) = match step / 7 % 5 {
        0 => (HoldAction::Capture { cost: atoms(step * 3), may_exceed: true }, now),
        1 => (HoldAction::CaptureFallback, now),
        2 => (HoldAction::Release, now),
        3 => (HoldAction::Expire, now.saturating_add(LEASE)),
        _ => return,
    };
    let update = HoldUpdate::new(account.clone(), terms.id, action);
    let settled = store.commit(vec![Posting::Hold(update)], now).await.unwrap();
    assert!(matches!(&settled[..], [Outcome::Hold(Some(updated))] if updated.changed), "{settled:?}");
}

/// Terms of a key that counts, and refuses nothing. Without a period, since time goes back by a day in this history.
fn every_route() -> KeyTerms {
    let budget = Some(Budget { limit: Credits::from_whole(100).unwrap(), reset: None });
    KeyTerms { budget, ..KeyTerms::new("Counted".parse().unwrap(), Scopes::ALL) }
}

/// The newest entries, without what differs between stores.
async fn newest(store: &dyn Store, id: &AccountId, limit: u32) -> Vec<Activity> {
    let entries = store.activity(id, limit).await.unwrap();
    assert!(!entries.is_empty() && entries.len() <= limit as usize);
    entries.into_iter().map(|entry| Activity { id: String::new(), ..entry }).collect()
}

async fn totals(store: &dyn Store, limit: u32) -> Vec<String> {
    let (mut totals, mut after) = (Vec::new(), None);
    loop {
        let page = store.daily_totals(after.as_ref(), limit).await.unwrap();
        assert!(page.items.len() <= limit as usize && page.items.is_sorted_by_key(|total| total.day));
        totals.extend(page.items);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let mut texts: Vec<String> = totals.iter().map(|total| format!("{total:?}")).collect();
    texts.sort_unstable();
    texts
}
