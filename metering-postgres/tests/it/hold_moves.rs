//! Moves a store with holds to another database, and compares both.

use std::time::Duration;

use metering_core::charging::{HoldAction, HoldId, HoldTerms, HoldUpdate, Outcome, Posting};
use metering_core::money::{LedgerKind, NewLedgerEntry};
use metering_core::store::{HoldStore, SourceId};
use metering_core::{
    AccountId, ApiKey, Charge, Credits, Decision, NewAccount, RequestId, Store, SystemRandomness, Timestamp,
};
use metering_postgres::PostgresStore;
use metering_sql::transfer::{Export, Import, Section, TargetState, compare, copy};
use metering_tests::postgres::{Cluster, fresh_schema};

use crate::lost_commits::NOON;

const LEASE: Duration = Duration::from_secs(30);

async fn open(store: &PostgresStore, key: &ApiKey, path: &str, request: Option<&str>) -> HoldId {
    let terms = HoldTerms::new(&SystemRandomness, LEASE, Credits::from_atoms(3));
    let request_id = request.map(|request| RequestId::parse(request).unwrap());
    let charge = Charge::new(key, Credits::from_atoms(10), "POST", "/chat");
    let charge = charge.with_hold(terms).with_path(path).with_request_id(request_id);
    match store.commit(vec![Posting::Charge(charge)], NOON).await.unwrap().remove(0) {
        Outcome::Decided(Decision::Accepted(receipt)) => receipt.hold.unwrap().id,
        outcome => panic!("{outcome:?}"),
    }
}

async fn update(store: &PostgresStore, account: &AccountId, id: HoldId, action: HoldAction, now: Timestamp) {
    let update = HoldUpdate::new(account.clone(), id, action);
    match store.commit(vec![Posting::Hold(update)], now).await.unwrap().remove(0) {
        Outcome::Hold(Some(updated)) => assert!(updated.changed),
        outcome => panic!("{outcome:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn open_and_settled_holds_are_moved_and_settled_at_their_new_place() {
    let Some(url) = fresh_schema() else { return };
    let source = PostgresStore::connect(&url.parse().unwrap()).await.unwrap();
    let (key, account) = (ApiKey::generate(&SystemRandomness), AccountId::generate(&SystemRandomness));
    let mut new = NewAccount::new(account.clone(), "agent".parse().unwrap(), key.hash(), NOON);
    new.entries = vec![NewLedgerEntry::new(LedgerKind::SignupBonus, Credits::from_atoms(1_000), "Free")];
    source.create_account(new).await.unwrap();
    let (first, again) =
        (open(&source, &key, "/chat", Some("order-1")).await, open(&source, &key, "/chat/7", None).await);
    let capture = |atoms| HoldAction::Capture { cost: Credits::from_atoms(atoms), may_exceed: true };
    let (ended, over) = (NOON.saturating_add(LEASE), capture(14));
    // Enough that some usage is in blocks, and some in the tail.
    for action in
        [over, HoldAction::CaptureFallback, HoldAction::Release, HoldAction::Expire].into_iter().cycle().take(30)
    {
        let id = open(&source, &key, "/chat/8", None).await;
        update(&source, &account, id, action, ended).await;
    }

    let target = PostgresStore::connect_to_import(&Cluster::shared().fresh_schema().parse().unwrap()).await.unwrap();
    assert_eq!(target.begin(&SourceId::from_bytes([7; 16])).await.unwrap(), TargetState::Empty);
    let mut moved = 0;
    let mut count = |section, records| {
        if section == Section::Holds {
            moved = records;
        }
    };
    copy(&source, &target, &mut count).await.unwrap();
    assert_eq!(moved, 32);
    assert!(compare(&source, &target, &mut |_, _| {}).await.unwrap().is_equal());
    target.finish().await.unwrap();
    assert_eq!(target.export(Section::Holds, None, 100).await.unwrap().items.len(), 32);
    for id in [first, again] {
        assert_eq!(target.hold(&id).await.unwrap(), source.hold(&id).await.unwrap());
    }
    let totals = source.account(&account).await.unwrap().unwrap().totals;
    assert_eq!((totals.held.atoms(), target.account(&account).await.unwrap().unwrap().totals), (20, totals));
    let kinds = async |store: &PostgresStore| {
        let shown = store.activity(&account, 100).await.unwrap();
        shown.into_iter().map(|entry| (entry.kind, entry.amount, entry.calls)).collect::<Vec<_>>()
    };
    assert_eq!(kinds(&target).await, kinds(&source).await);
    // A repeated request finds its hold, which can be settled here.
    assert_eq!(open(&target, &key, "/chat", Some("order-1")).await, first);
    update(&target, &account, first, capture(10), ended).await;
    update(&target, &account, again, HoldAction::Expire, ended).await;
    assert_eq!(target.account(&account).await.unwrap().unwrap().totals.held, Credits::ZERO);
    assert_eq!(target.verify().await.unwrap().discrepancies, []);
}
