//! Contracts for authorizations that pay for what one request uses.

use std::sync::Arc;

use metering_core::charging::HoldId;
use metering_core::money::Credits;
use metering_core::offers::{AuthorizationRecord, AuthorizationState, AuthorizedUsage, SettlementFailure};
use metering_core::store::{
    AuthorizationStore, Claimed, NewAuthorization, PaymentCredit, PaymentCredited, QuotePrecedence,
};

use super::authorization_scene::{TASKS, credit, credited, fail, new, opened, pending, place, record, submission};
use super::event_scene::at;
use super::sale::{self, tx, wallet};
use super::scene::{atoms, customer, racing};

/// The hold that authorization `number` backs.
fn hold(number: u8) -> HoldId {
    HoldId::from_bytes([number; 16])
}

/// Stores an authorization for usage by the wallet of its number.
async fn authorized(
    store: &dyn AuthorizationStore,
    owner: &metering_core::AccountId,
    number: u8,
) -> AuthorizationRecord {
    opened(store, NewAuthorization { usage: Some(hold(number)), ..new(owner, number) }).await
}

fn used(record: &AuthorizationRecord, used: Option<Credits>) -> Option<AuthorizedUsage> {
    record.usage.map(|usage| AuthorizedUsage { used, ..usage })
}

/// A request's usage is recorded once; a request without usage ends its authorization.
pub async fn what_a_request_used_is_recorded_once(store: Arc<dyn AuthorizationStore>) {
    let owner = customer(&*store, 0).await;
    let first = authorized(&*store, &owner.id, 1).await;
    assert_eq!(first.usage, Some(AuthorizedUsage { hold: hold(1), used: None }));
    let id = first.signed.id();
    let after = AuthorizationRecord { usage: used(&first, Some(atoms(1))), ..first.clone() };
    assert_eq!(store.use_authorization(&id, atoms(1), at(1)).await.unwrap(), Some(after.clone()));
    assert_eq!(store.use_authorization(&id, atoms(2), at(2)).await.unwrap(), None);
    assert_eq!(record(&*store, &id).await, after);

    let second = authorized(&*store, &owner.id, 2).await;
    let most = store.use_authorization(&second.signed.id(), Credits::MAX, at(1)).await.unwrap();
    assert_eq!(most.and_then(|record| record.credited()), Some(second.credits), "at most what it authorizes");

    let third = authorized(&*store, &owner.id, 3).await;
    let id = third.signed.id();
    store.use_authorization(&id, Credits::ZERO, at(3)).await.unwrap().unwrap();
    let state = AuthorizationState::Failed { failure: SettlementFailure::Expired, at: at(3) };
    let ended = AuthorizationRecord { state, usage: used(&third, Some(Credits::ZERO)), ..third };
    assert_eq!(record(&*store, &id).await, ended);

    let fixed = pending(&*store, &owner.id, 4).await;
    assert_eq!(store.use_authorization(&fixed, atoms(1), at(1)).await.unwrap(), None, "its amount is fixed");
}

/// The transaction that pays for usage buys nothing else, although anyone can see it before it is credited.
pub async fn a_transfer_for_usage_buys_nothing_else(store: Arc<dyn AuthorizationStore>) {
    let owner = customer(&*store, 0).await;
    let id = authorized(&*store, &owner.id, 1).await.signed.id();
    store.use_authorization(&id, atoms(1), at(1)).await.unwrap().unwrap();
    place(&*store, &id, 4).await;
    assert!(store.add_submission(&id, submission(1)).await.unwrap());
    let quote = sale::open(&*store, sale::quote(1)).await;
    assert_eq!(store.claim_quote(sale::claim(&quote, tx(1))).await.unwrap(), Claimed::TxUsed);
    let top_up = sale::credit(&owner.id, sale::payment_by(1, tx(1)));
    let top_up = PaymentCredit { quotes: QuotePrecedence::Account, ..top_up };
    assert_eq!(store.credit_payment(top_up).await.unwrap(), PaymentCredited::TxUsed);
    credited(&*store, &id, credit(&owner.id, 1, tx(1))).await;
}

/// Of several that record what a request used at the same time, one does.
pub async fn racing_reports_of_usage_record_one(store: Arc<dyn AuthorizationStore>) {
    let owner = customer(&*store, 0).await;
    let id = authorized(&*store, &owner.id, 1).await.signed.id();
    let results = racing(&store, 1..=TASKS, |store, task| {
        let credits = atoms(task.into());
        async move { store.use_authorization(&id, credits, at(1)).await.unwrap() }
    })
    .await;
    let recorded: Vec<_> = results.into_iter().flatten().collect();
    let [only] = &recorded[..] else { panic!("{recorded:?}") };
    assert_eq!(&record(&*store, &id).await, only);
}

/// A payer's authorizations for usage are found while they are pending, and if they were used and failed.
pub async fn unsettled_usage_is_found(store: Arc<dyn AuthorizationStore>) {
    let owner = customer(&*store, 0).await;
    let of_payer = async || store.unsettled_usage(&wallet(1)).await.unwrap();
    pending(&*store, &owner.id, 9).await;
    let open = authorized(&*store, &owner.id, 1).await;
    authorized(&*store, &owner.id, 2).await;
    assert_eq!(of_payer().await, std::slice::from_ref(&open));
    let id = open.signed.id();
    store.use_authorization(&id, atoms(1), at(1)).await.unwrap().unwrap();
    assert_eq!(of_payer().await, [record(&*store, &id).await]);
    assert_eq!(store.unpaid_usage(9).await.unwrap(), []);
    assert!(fail(&*store, &id).await);
    let unpaid = record(&*store, &id).await;
    assert!(unpaid.is_unpaid());
    assert_eq!((of_payer().await, store.unpaid_usage(9).await.unwrap()), (vec![unpaid.clone()], vec![unpaid]));
    let other = store.unsettled_usage(&wallet(2)).await.unwrap();
    let other = other[0].signed.id();
    store.use_authorization(&other, atoms(1), at(1)).await.unwrap().unwrap();
    credited(&*store, &other, credit(&owner.id, 2, tx(2))).await;
    assert_eq!(store.unsettled_usage(&wallet(2)).await.unwrap(), []);
    assert_eq!(store.unpaid_usage(9).await.unwrap().len(), 1);
    assert_eq!(store.unpaid_usage(0).await.unwrap(), []);
}
