//! Lines: the deliveries of one account's events to one webhook go out one at a time, no matter which process claims
//! them.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};

use metering_core::events::DeliveryId;
use metering_core::store::EventStore;
use metering_sqlite::SqliteStore;

use super::{claim, finish, later, send, terms, webhook};
use crate::contract::fast_folder;
use crate::scene::{NOON, account};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_handles_claim_disjoint_deliveries_and_keep_the_order() {
    let folder = fast_folder();
    let file = folder.path().join("metering.db");
    let stores = [(); 2].map(|()| Arc::new(SqliteStore::open(&file).unwrap()));
    let (accounts, each) = (6, 8);
    let mut expected = 0;
    for _ in 0..accounts {
        let (id, _) = account(&stores[0], 1).await;
        for _ in 0..2 {
            let hook = webhook(&stores[0], &id).await;
            expected += send(&stores[1], &hook, each).await.len();
        }
    }
    // The next of a line can only be claimed when this one was finished, so this is also the order of claims.
    let sent = Arc::new(Mutex::new(Vec::new()));
    let work = |store: Arc<SqliteStore>| {
        let sent = Arc::clone(&sent);
        async move {
            let mut idle = 0;
            while idle < 20 {
                let due = super::claim_some(&store, NOON, 3).await;
                idle = if due.is_empty() { idle + 1 } else { 0 };
                for due in due {
                    sent.lock().unwrap().push((due.webhook.id, due.delivery.event.number, due.delivery.id));
                    assert!(finish(&store, &due, NOON).await.is_some(), "nobody else has it");
                }
                tokio::task::yield_now().await;
            }
        }
    };
    let tasks: Vec<_> = (0..4_usize).map(|task| tokio::spawn(work(stores[task % 2].clone()))).collect();
    for task in tasks {
        task.await.unwrap();
    }
    let (mut ids, mut lines) = (HashSet::<DeliveryId>::new(), BTreeMap::<_, Vec<i64>>::new());
    for (line, number, id) in sent.lock().unwrap().iter() {
        assert!(ids.insert(*id), "{id:?} was claimed twice");
        lines.entry(*line).or_default().push(*number);
    }
    assert_eq!((ids.len(), lines.len()), (expected, 2 * accounts));
    assert!(lines.values().all(|numbers| numbers.is_sorted()), "{lines:?}");
}

/// A claim in one handle blocks the rest of the line in the other, and only of that line.
#[tokio::test]
async fn a_line_waits_for_its_first_delivery() {
    let folder = fast_folder();
    let file = folder.path().join("metering.db");
    let (here, there) = (SqliteStore::open(&file).unwrap(), SqliteStore::open(&file).unwrap());
    here.set_operator_webhook(Some(terms()), NOON).await.unwrap();
    let (a, _) = account(&here, 1).await;
    let (b, _) = account(&there, 1).await;
    let hook = webhook(&here, &a).await;
    let tests = send(&there, &hook, 2).await;
    // The operator's webhook gets both new keys, each in the line of its account.
    let due = claim(&here, NOON).await;
    let lines: Vec<_> = due.iter().map(|due| (due.webhook.id, due.delivery.event.account.clone())).collect();
    let operator = metering_core::events::WebhookId::OPERATOR;
    assert_eq!(lines, [(operator, Some(a.clone())), (operator, Some(b)), (hook.id, Some(a))]);
    assert_eq!(claim(&there, later(59)).await, []);
    assert_eq!(due[2].delivery.id, tests[0].id);
    assert!(finish(&here, &due[2], later(1)).await.is_some());
    let next = claim(&there, later(1)).await;
    assert_eq!(next.iter().map(|due| due.delivery.id).collect::<Vec<_>>(), [tests[1].id]);
    let customers = metering_core::events::WebhookOwner::Customers;
    assert_eq!(there.claim_deliveries(later(61), super::LEASE, 9, customers).await.unwrap().len(), 1);
    assert_eq!(claim(&there, later(61)).await.len(), 2, "those to the operator");
}
