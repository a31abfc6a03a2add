//! Contracts for claiming authorizations: one process at a time continues each.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use metering_core::offers::{AuthorizationId, AuthorizationState};
use metering_core::payments::SettlementStep;
use metering_core::store::{AuthorizationStore, NewAuthorization};

use super::authorization_scene::{
    TASKS, claim, credit, credited, fail, new, opened, pending, place, record, stepped, submission,
};
use super::event_scene::{LEASE, MANY, at};
use super::sale::{MOMENT, tx};
use super::scene::{customer, racing};

/// A new authorization is claimed for its lease; later claims last as long as their own leases.
pub async fn an_authorization_is_claimed_for_its_lease(store: Arc<dyn AuthorizationStore>) {
    let owner = customer(&*store, 0).await;
    let id = pending(&*store, &owner.id, 1).await;
    place(&*store, &id, 0).await;
    store.add_submission(&id, submission(1)).await.unwrap();
    let claim_before =
        async |seconds| store.claim_authorizations(at(seconds).saturating_sub(MOMENT), LEASE, MANY).await.unwrap();
    assert_eq!(claim_before(60).await, []);
    let claimed = store.claim_authorizations(at(60), Duration::from_secs(10), MANY).await.unwrap();
    assert_eq!(claimed, [record(&*store, &id).await], "the whole record");
    assert_eq!(claim_before(70).await, []);
    assert_eq!(claim(&*store, 70, MANY).await, [id]);
    assert_eq!(claim(&*store, 129, MANY).await, [], "it is claimed for a minute");
    assert_eq!(claim(&*store, 130, MANY).await, [id]);
}

/// Only so many are claimed at a time, those whose claims ended longest ago first.
pub async fn claims_of_authorizations_are_limited_and_in_order(store: Arc<dyn AuthorizationStore>) {
    let owner = customer(&*store, 0).await;
    let mut ids = Vec::new();
    for (number, seconds) in [(1, 30), (2, 10), (3, 20), (4, 0), (5, 40), (6, 100)] {
        let received = NewAuthorization { received_at: at(seconds), ..new(&owner.id, number) };
        ids.push((seconds, opened(&*store, received).await.signed.id()));
    }
    ids.sort_unstable();
    let ids: Vec<_> = ids.into_iter().map(|(_, id)| id).collect();
    assert_eq!(claim(&*store, 100, 0).await, []);
    assert_eq!(claim(&*store, 100, 2).await, ids[..2]);
    assert_eq!(claim(&*store, 100, 2).await, ids[2..4]);
    assert_eq!(claim(&*store, 100, 2).await, ids[4..5]);
    assert_eq!(claim(&*store, 100, 2).await, [], "the last one is claimed until later");
    assert_eq!(claim(&*store, 1_000, 1).await.len(), 1);
    assert_eq!(claim(&*store, 1_000, 9).await.len(), 5);
}

/// The end of a claim can be moved, also to an earlier time.
pub async fn a_claim_of_an_authorization_is_extended(store: Arc<dyn AuthorizationStore>) {
    let owner = customer(&*store, 0).await;
    let (first, second) = (pending(&*store, &owner.id, 1).await, pending(&*store, &owner.id, 2).await);
    let before = record(&*store, &first).await;
    store.extend_claim(&first, at(500)).await.unwrap();
    assert_eq!(record(&*store, &first).await, before, "nothing else changes");
    assert_eq!(claim(&*store, 499, MANY).await, [second]);
    assert_eq!(claim(&*store, 500, MANY).await, [first]);
    store.extend_claim(&first, at(501)).await.unwrap();
    assert_eq!(claim(&*store, 501, MANY).await, [first]);
    let unknown = AuthorizationId { chain_id: 1, ..first };
    store.extend_claim(&unknown, at(0)).await.unwrap();
    assert_eq!(store.authorization(&unknown).await.unwrap(), None);
}

/// Only pending authorizations are claimed, and the claims of others are not extended.
pub async fn only_pending_authorizations_are_claimed(store: Arc<dyn AuthorizationStore>) {
    let owner = customer(&*store, 0).await;
    let (paid, failed) = (pending(&*store, &owner.id, 1).await, pending(&*store, &owner.id, 2).await);
    credited(&*store, &paid, credit(&owner.id, 1, tx(1))).await;
    assert!(fail(&*store, &failed).await);
    for id in [&paid, &failed] {
        store.extend_claim(id, at(5_000)).await.unwrap();
    }
    assert_eq!(claim(&*store, 9_999, MANY).await, []);
    stepped(&*store, tx(1), SettlementStep::Reverse).await;
    assert_eq!(record(&*store, &paid).await.state, AuthorizationState::Pending);
    assert_eq!(claim(&*store, 60, MANY).await, [paid], "pending again, and its claim was not extended");
}

/// Authorizations of a revoked account are still claimed: they may have been executed.
pub async fn authorizations_of_revoked_accounts_are_claimed(store: Arc<dyn AuthorizationStore>) {
    let owner = customer(&*store, 0).await;
    let id = pending(&*store, &owner.id, 1).await;
    store.revoke_account(&owner.id, at(1)).await.unwrap();
    assert_eq!(claim(&*store, 60, MANY).await, [id]);
}

/// Callers that claim at the same time share no authorization.
pub async fn racing_claims_share_no_authorization(store: Arc<dyn AuthorizationStore>) {
    let owner = customer(&*store, 0).await;
    for number in 0..TASKS {
        pending(&*store, &owner.id, number).await;
    }
    for round in 1..=3 {
        let results = racing(&store, 0..8, |store, _| async move { claim(&*store, 60 * round, 5).await }).await;
        let mut claimed = results.concat();
        // A caller may leave what another one is about to take.
        claimed.extend(claim(&*store, 60 * round, MANY).await);
        assert_eq!(claimed.len(), usize::from(TASKS), "in round {round}");
        assert_eq!(claimed.into_iter().collect::<BTreeSet<_>>().len(), usize::from(TASKS), "in round {round}");
    }
}
