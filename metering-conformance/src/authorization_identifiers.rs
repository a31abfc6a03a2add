//! Contracts for the ids that clients give their payments: of a payer's authorizations, one has each.

use std::sync::Arc;

use metering_core::offers::{AuthorizationNonce, IdentifierHash, SignedAuthorization};
use metering_core::store::{AuthorizationOpened, AuthorizationStore, NewAuthorization};

use super::authorization_scene::{TASKS, fail, new, opened, signed};
use super::event_scene::LEASE;
use super::sale::wallet;
use super::scene::{customer, new_id, racing};

const ID: IdentifierHash = IdentifierHash::from_bytes([5; 32]);
const OTHER: IdentifierHash = IdentifierHash::from_bytes([6; 32]);

/// An authorization of the payer of the first one, with another nonce.
fn of_first_payer(number: u8) -> SignedAuthorization {
    let mut signed = signed(1);
    signed.authorization.nonce = AuthorizationNonce::from_bytes([number; 32]);
    signed
}

/// An id finds its authorization, and no other authorization of its payer gets it, even after that one failed.
pub async fn an_id_is_of_one_authorization(store: Arc<dyn AuthorizationStore>) {
    let (owner, other) = (customer(&*store, 0).await, customer(&*store, 0).await);
    let (payer, nobody) = (wallet(1), new_id());
    let found = async |id| store.authorization_by_identifier(&payer, &id).await.unwrap();
    assert_eq!(found(ID).await, None);
    let first = NewAuthorization { identifier: Some(ID), ..new(&owner.id, 1) };
    let record = opened(&*store, first.clone()).await;
    assert_eq!((record.identifier, found(ID).await.as_ref()), (Some(ID), Some(&record)));
    assert_eq!(found(OTHER).await, None);
    let refused = async |number, account| {
        let new = NewAuthorization { signed: of_first_payer(number), identifier: Some(ID), ..new(account, 1) };
        let id = new.signed.id();
        let outcome = store.open_authorization(new, LEASE).await.unwrap();
        assert_eq!(outcome, AuthorizationOpened::IdentifierUsed);
        assert_eq!(store.authorization(&id).await.unwrap(), None);
    };
    refused(2, &owner.id).await;
    refused(2, &other.id).await;
    refused(2, &nobody).await;
    assert!(fail(&*store, &record.signed.id()).await);
    refused(2, &owner.id).await;
    // The same authorization is recognized under any id.
    let known = store.authorization(&record.signed.id()).await.unwrap().unwrap();
    for identifier in [Some(ID), Some(OTHER), None] {
        let outcome = store.open_authorization(NewAuthorization { identifier, ..first.clone() }, LEASE).await.unwrap();
        assert_eq!(outcome, AuthorizationOpened::Known(known.clone()));
    }
    assert_eq!(found(OTHER).await, None);
    // Others, and those without an id, are stored.
    for (number, identifier) in [(2, Some(OTHER)), (3, None), (4, None)] {
        opened(&*store, NewAuthorization { signed: of_first_payer(number), identifier, ..new(&owner.id, 1) }).await;
    }
}

/// Payers do not share ids.
pub async fn an_id_is_of_one_payer(store: Arc<dyn AuthorizationStore>) {
    let owner = customer(&*store, 0).await;
    for number in [1, 2] {
        let record = opened(&*store, NewAuthorization { identifier: Some(ID), ..new(&owner.id, number) }).await;
        assert_eq!(store.authorization_by_identifier(&wallet(number), &ID).await.unwrap(), Some(record));
    }
    assert_eq!(store.authorization_by_identifier(&wallet(3), &ID).await.unwrap(), None);
}

/// Many authorizations with one id arrive at once: one is stored.
pub async fn racing_authorizations_share_no_id(store: Arc<dyn AuthorizationStore>) {
    let owner = customer(&*store, 0).await;
    let outcomes = racing(&store, 0..TASKS, |store, number| {
        let account = owner.id.clone();
        let new = NewAuthorization { signed: of_first_payer(number), identifier: Some(ID), ..new(&account, 1) };
        async move { store.open_authorization(new, LEASE).await.unwrap() }
    })
    .await;
    let refused = outcomes.iter().filter(|outcome| **outcome == AuthorizationOpened::IdentifierUsed).count();
    assert_eq!(refused, usize::from(TASKS) - 1);
    let stored = store.authorization_by_identifier(&wallet(1), &ID).await.unwrap().unwrap();
    assert!(outcomes.contains(&AuthorizationOpened::Opened(stored)));
}
