//! Contracts for the places of transactions that execute authorizations, and for the transactions themselves.

use std::sync::Arc;

use metering_core::chains::Address;
use metering_core::offers::{AuthorizationId, GasPlace, SignedAuthorization, Submission};
use metering_core::payments::SettlementStep;
use metering_core::store::{AuthorizationStore, NewAuthorization};
use tokio::task::JoinSet;

use super::authorization_scene::{
    GAS, TASKS, credit, credited, fail, new, opened, pending, place, record, signed, stepped, submission,
};
use super::event_scene::at;
use super::sale::{tx, wallet};
use super::scene::{customer, racing};

/// Another wallet that pays gas.
const OTHER: Address = wallet(201);

async fn submit(store: &dyn AuthorizationStore, id: &AuthorizationId, number: u8) -> bool {
    store.add_submission(id, submission(number)).await.unwrap()
}

/// Pending authorizations with the places from 0 on.
async fn placed(store: &dyn AuthorizationStore, count: u8) -> Vec<AuthorizationId> {
    let owner = customer(store, 0).await;
    let mut placed = Vec::new();
    for number in 0..count {
        let id = pending(store, &owner.id, number).await;
        assert_eq!(place(store, &id, 0).await, Some(number.into()));
        placed.push(id);
    }
    placed
}

/// An authorization keeps its place until the chain has passed it. Then it gets a new one.
pub async fn a_gas_place_is_kept_until_it_is_passed(store: Arc<dyn AuthorizationStore>) {
    let ids = placed(&*store, 3).await;
    for lowest in [0, 1, 0, 1] {
        assert_eq!(place(&*store, &ids[1], lowest).await, Some(1), "place 1 is not below {lowest}");
        assert_eq!(record(&*store, &ids[1]).await.gas, Some(GasPlace { wallet: GAS, nonce: 1 }));
    }
    assert_eq!(place(&*store, &ids[1], 2).await, Some(3), "place 2 is another one's");
    assert_eq!(record(&*store, &ids[1]).await.gas, Some(GasPlace { wallet: GAS, nonce: 3 }));
    assert_eq!(place(&*store, &ids[0], 2).await, Some(4), "the places that were passed are not assigned again");
    assert_eq!(place(&*store, &ids[0], 0).await, Some(4), "a node that lags behind changes nothing");
    assert_eq!(record(&*store, &ids[2]).await.gas, Some(GasPlace { wallet: GAS, nonce: 2 }));
}

/// The first place is the one after the transactions in the chain, and none is assigned twice.
pub async fn gas_places_begin_after_the_chains_transactions(store: Arc<dyn AuthorizationStore>) {
    let owner = customer(&*store, 0).await;
    for (number, lowest, expected) in [(1, 7, 7), (2, 7, 8), (3, 3, 9), (4, 20, 20), (5, 8, 21)] {
        let id = pending(&*store, &owner.id, number).await;
        assert_eq!(place(&*store, &id, lowest).await, Some(expected), "of authorization {number}");
    }
}

/// Every wallet on every chain has its own places.
pub async fn gas_places_are_of_a_wallet_and_chain(store: Arc<dyn AuthorizationStore>) {
    let owner = customer(&*store, 0).await;
    let chains = [1, 2, u64::MAX];
    for number in 0..2 {
        for (index, chain_id) in (0..).zip(chains) {
            for (wallet, nonce) in [(GAS, number), (OTHER, number + 10)] {
                let unique = number * 100 + index * 10 + u8::from(wallet == OTHER);
                let signed = SignedAuthorization { chain_id, ..signed(unique) };
                let id = opened(&*store, NewAuthorization { signed, ..new(&owner.id, 1) }).await.signed.id();
                let lowest = if wallet == OTHER { 10 } else { 0 };
                let assigned = store.assign_gas_place(&id, wallet, lowest).await.unwrap();
                assert_eq!(assigned, Some(nonce.into()), "{chain_id} {wallet}");
            }
        }
    }
}

/// A failed authorization without transactions gives its place back. The lowest of these that the chain has not passed
/// is the next to be assigned.
pub async fn gas_places_are_given_back_and_reused(store: Arc<dyn AuthorizationStore>) {
    let ids = placed(&*store, 7).await;
    for number in [4, 1, 5] {
        assert!(fail(&*store, &ids[number]).await);
        assert_eq!(record(&*store, &ids[number]).await.gas, None);
    }
    let owner = customer(&*store, 0).await;
    let mut next = Vec::new();
    for (number, lowest) in [(10, 2), (11, 0), (12, 0), (13, 0), (14, 0)] {
        let id = pending(&*store, &owner.id, number).await;
        next.push(place(&*store, &id, lowest).await.unwrap());
    }
    assert_eq!(next, [4, 1, 5, 7, 8]);
    assert_eq!(place(&*store, &ids[0], 1).await, Some(9), "what was given back is assigned once");
}

/// A place that was given back can be given back again.
pub async fn a_gas_place_is_given_back_again(store: Arc<dyn AuthorizationStore>) {
    placed(&*store, 1).await;
    let owner = customer(&*store, 0).await;
    for number in 10..14 {
        let id = pending(&*store, &owner.id, number).await;
        assert_eq!(place(&*store, &id, 0).await, Some(1));
        assert!(fail(&*store, &id).await);
    }
}

/// A failed authorization that has transactions keeps its place, because one of them may be in the chain.
pub async fn a_gas_place_with_a_transaction_is_not_given_back(store: Arc<dyn AuthorizationStore>) {
    let ids = placed(&*store, 2).await;
    assert!(submit(&*store, &ids[0], 1).await);
    assert!(fail(&*store, &ids[0]).await);
    assert_eq!(record(&*store, &ids[0]).await.gas, Some(GasPlace { wallet: GAS, nonce: 0 }));
    let owner = customer(&*store, 0).await;
    let id = pending(&*store, &owner.id, 9).await;
    assert_eq!(place(&*store, &id, 0).await, Some(2));
}

/// An authorization that moves to another wallet gets a place there, and gives its old one back unless it has
/// transactions.
pub async fn another_wallet_has_another_gas_place(store: Arc<dyn AuthorizationStore>) {
    let ids = placed(&*store, 3).await;
    assert!(submit(&*store, &ids[1], 1).await);
    for (id, expected) in ids[..2].iter().zip(40..) {
        assert_eq!(store.assign_gas_place(id, OTHER, 40).await.unwrap(), Some(expected));
        assert_eq!(record(&*store, id).await.gas, Some(GasPlace { wallet: OTHER, nonce: expected }));
    }
    assert_eq!(record(&*store, &ids[1]).await.submissions, [submission(1)], "it keeps its transactions");
    assert_eq!(place(&*store, &ids[0], 0).await, Some(0), "back in the first wallet, without a gap");
    let owner = customer(&*store, 0).await;
    let id = pending(&*store, &owner.id, 9).await;
    assert_eq!(store.assign_gas_place(&id, OTHER, 40).await.unwrap(), Some(40), "given back by the first one");
    assert_eq!(place(&*store, &id, 0).await, Some(3), "1 and 2 are not free");
}

/// Only pending authorizations get a place; others, and unknown ones, use none up.
pub async fn only_pending_authorizations_get_gas_places(store: Arc<dyn AuthorizationStore>) {
    let owner = customer(&*store, 0).await;
    let (paid, failed) = (pending(&*store, &owner.id, 1).await, pending(&*store, &owner.id, 2).await);
    credited(&*store, &paid, credit(&owner.id, 1, tx(1))).await;
    assert!(fail(&*store, &failed).await);
    let unknown = AuthorizationId { chain_id: 1, ..paid };
    for id in [&paid, &failed, &unknown] {
        let before = store.authorization(id).await.unwrap();
        assert_eq!(place(&*store, id, 0).await, None);
        assert_eq!(store.authorization(id).await.unwrap(), before);
    }
    let next = pending(&*store, &owner.id, 3).await;
    assert_eq!(place(&*store, &next, 0).await, Some(0));
    stepped(&*store, tx(1), SettlementStep::Reverse).await;
    assert_eq!(place(&*store, &paid, 0).await, Some(1), "it is pending again");
    credited(&*store, &next, credit(&owner.id, 3, tx(3))).await;
    assert_eq!(place(&*store, &next, 0).await, None, "not even the one that it had");
    assert_eq!(record(&*store, &next).await.gas, Some(GasPlace { wallet: GAS, nonce: 0 }), "it keeps it");
}

/// Many authorizations that get a place at once get different ones, without a gap.
pub async fn racing_authorizations_get_different_gas_places(store: Arc<dyn AuthorizationStore>) {
    let freed = placed(&*store, 2).await;
    for id in &freed {
        assert!(fail(&*store, id).await);
    }
    let owner = customer(&*store, 0).await;
    let mut tasks = JoinSet::new();
    for number in 10..10 + TASKS {
        let id = pending(&*store, &owner.id, number).await;
        let store = Arc::clone(&store);
        tasks.spawn(async move { place(&*store, &id, 0).await.unwrap() });
    }
    let mut places = tasks.join_all().await;
    places.sort_unstable();
    assert!(places.into_iter().eq(0..u64::from(TASKS)));
}

/// Many callers that assign a place to one authorization at once get the same one, and use one up.
pub async fn racing_callers_get_one_gas_place(store: Arc<dyn AuthorizationStore>) {
    let owner = customer(&*store, 0).await;
    let id = pending(&*store, &owner.id, 1).await;
    let results = racing(&store, 0..TASKS, |store, _| async move { place(&*store, &id, 5).await }).await;
    assert_eq!(results, vec![Some(5); usize::from(TASKS)]);
    let next = pending(&*store, &owner.id, 2).await;
    assert_eq!(place(&*store, &next, 5).await, Some(6));
}

/// Transactions are kept in the order in which they were stored, each once.
pub async fn submissions_are_kept_in_order(store: Arc<dyn AuthorizationStore>) {
    let ids = placed(&*store, 2).await;
    for number in [9, 3, 5] {
        assert!(submit(&*store, &ids[0], number).await);
    }
    let stored = [9, 3, 5].map(submission);
    assert_eq!(record(&*store, &ids[0]).await.submissions, stored);
    let repeated = Submission { raw: vec![1], signed_at: at(1_000), ..submission(3) };
    assert!(store.add_submission(&ids[0], repeated).await.unwrap(), "it is stored");
    assert_eq!(record(&*store, &ids[0]).await.submissions, stored, "as it was");
    assert_eq!(place(&*store, &ids[0], 1).await, Some(2));
    assert!(submit(&*store, &ids[0], 1).await);
    assert_eq!(record(&*store, &ids[0]).await.submissions, [9, 3, 5, 1].map(submission), "of all its places");
    assert_eq!(record(&*store, &ids[1]).await.submissions, []);
}

/// A transaction is stored only for a pending authorization that has a place.
pub async fn a_submission_needs_a_pending_authorization_with_a_place(store: Arc<dyn AuthorizationStore>) {
    let owner = customer(&*store, 0).await;
    let mut ids = Vec::new();
    for number in 1..=3 {
        ids.push(pending(&*store, &owner.id, number).await);
    }
    assert!(!submit(&*store, &ids[0], 1).await, "it has no place");
    let unknown = AuthorizationId { chain_id: 1, ..ids[0] };
    assert!(!submit(&*store, &unknown, 1).await);
    for id in &ids {
        place(&*store, id, 0).await;
        assert!(submit(&*store, id, id.nonce.as_bytes()[0]).await);
    }
    credited(&*store, &ids[1], credit(&owner.id, 2, tx(2))).await;
    assert!(fail(&*store, &ids[2]).await);
    for (id, number) in [(&ids[1], 2), (&ids[1], 8), (&ids[2], 3), (&ids[2], 9)] {
        let before = record(&*store, id).await;
        assert!(!submit(&*store, id, number).await, "it is not pending");
        assert_eq!(record(&*store, id).await, before);
    }
    let unplaced = pending(&*store, &owner.id, 4).await;
    assert!(!submit(&*store, &unplaced, 4).await);
    assert_eq!(record(&*store, &unplaced).await.submissions, []);
}

/// Many transactions stored at once are all kept, each once.
pub async fn racing_submissions_are_all_kept(store: Arc<dyn AuthorizationStore>) {
    let id = placed(&*store, 1).await.remove(0);
    let results = racing(&store, 0..TASKS, |store, number| async move { submit(&*store, &id, number / 2).await }).await;
    assert!(results.into_iter().all(|stored| stored));
    let mut stored = record(&*store, &id).await.submissions;
    stored.sort_by_key(|submission| submission.raw[0]);
    assert_eq!(stored, (0..TASKS / 2).map(submission).collect::<Vec<_>>());
}

/// An authorization that fails while a transaction is stored either has the transaction and keeps its place, or has
/// neither.
pub async fn a_failure_and_a_submission_race(store: Arc<dyn AuthorizationStore>) {
    for id in placed(&*store, 20).await {
        let (failing, submitting) = (Arc::clone(&store), Arc::clone(&store));
        let failed = tokio::spawn(async move { fail(&*failing, &id).await });
        let submitted = tokio::spawn(async move { submit(&*submitting, &id, 1).await });
        assert!(failed.await.unwrap());
        let submitted = submitted.await.unwrap();
        let after = record(&*store, &id).await;
        assert_eq!((after.submissions.len(), after.gas.is_some()), (usize::from(submitted), submitted));
    }
}
