//! A limit on tokens per minute that several openers of one database share.

use std::sync::Arc;

use metering_core::Decision;
use metering_core::access::KeyTerms;
use metering_core::store::Store;
use tokio::task::JoinSet;

use super::hold_scene::{capture, held};
use super::key_scene::{caller, issue};
use super::scene::{NOON, assert_verified, decide};
use super::token_limits::{left, limited, request, settle};

/// Several openers of one database race for one limit, and settle each other's holds: it is filled exactly.
///
/// Call it with stores that were opened on the same, empty database.
pub async fn openers_share_a_token_limit(stores: Vec<Arc<dyn Store>>) {
    let customer = limited(&*stores[0], 1_000).await;
    let terms = KeyTerms { tokens_per_minute: 600, ..caller() };
    let key = issue(&*stores[0], &customer.id, None, terms).await;
    let mut tasks: JoinSet<u32> = JoinSet::new();
    for (place, store) in (0..80).zip(stores.iter().cycle()) {
        let (own, secret) = (Arc::clone(store), if place % 4 < 2 { customer.key } else { key.secret });
        let (other, id) = (Arc::clone(&stores[(place + 1) % stores.len()]), customer.id.clone());
        tasks.spawn(async move {
            let decision = decide(&*own, request(secret, 25), NOON).await;
            let Decision::Accepted(receipt) = decision else { return 0 };
            if place % 3 == 0 {
                settle(&*other, &id, held(&receipt).id, capture(3), Some(10), NOON).await;
                return 10;
            }
            25
        });
    }
    let used: u32 = tasks.join_all().await.into_iter().sum();
    for store in &stores {
        assert_eq!(left(&**store, customer.key, NOON).await, 1_000 - used);
    }
    stores[0].set_token_limit(&customer.id, 2_000).await.unwrap();
    assert_eq!(left(&**stores.last().expect("there are stores"), customer.key, NOON).await, 2_000 - used);
    assert_verified(&*stores[0]).await;
}
