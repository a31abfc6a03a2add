//! Contracts for stored authorizations: each has one record, from acceptance until it is credited or fails.

use std::sync::Arc;

use metering_core::access::ApiKey;
use metering_core::chains::{Address, TokenUnits};
use metering_core::charging::Fingerprint;
use metering_core::clock::Timestamp;
use metering_core::money::Credits;
use metering_core::offers::{
    Authorization, AuthorizationId, AuthorizationNonce, AuthorizationRecord, AuthorizationState, GasPlace,
    IdentifierHash, SettlementFailure, SignedAuthorization, Submission,
};
use metering_core::random::SystemRandomness;
use metering_core::store::{AuthorizationOpened, AuthorizationStore, NewAuthorization};
use tokio::task::JoinSet;

use super::authorization_scene::{
    GAS, TASKS, credit, credited, fail, new, opened, pending, place, record, signature, signed, submission,
};
use super::event_scene::{LEASE, at};
use super::key_scene::{caller, issue};
use super::sale::{Books, tx};
use super::scene::{NOON, atoms, customer, new_id};

/// An authorization with the smallest or the largest values, and a signature of `length` bytes.
fn extreme(nonce: u8, largest: bool, length: usize) -> SignedAuthorization {
    let (byte, number) = if largest { (0xFF, u64::MAX) } else { (0, 0) };
    let authorization = Authorization {
        from: Address::from_bytes([byte; 20]),
        to: Address::from_bytes([0xFE - byte / 2; 20]),
        value: TokenUnits::new(if largest { u128::MAX } else { 0 }),
        valid_after: number,
        valid_before: number,
        nonce: AuthorizationNonce::from_bytes([nonce; 32]),
    };
    let bytes: Vec<u8> = (0..=u8::MAX).cycle().take(length).collect();
    let token = Address::from_bytes([byte ^ 0x11; 20]);
    SignedAuthorization { chain_id: number, token, authorization, signature: signature(&bytes) }
}

/// Every field of an authorization is stored as given, up to the ends of its range.
pub async fn authorizations_are_stored_unchanged(store: Arc<dyn AuthorizationStore>) {
    let owner = customer(&*store, 0).await;
    let (early, late) = (Timestamp::from_unix_millis(-1), Timestamp::from_unix_millis(253_402_300_799_999));
    // authorization, credits, time
    let table = [
        (extreme(0, false, 1), 1, early),
        (extreme(0xFF, true, 8_192), i64::MAX, late),
        (extreme(1, true, 65), 2, NOON),
        (signed(1), 3, at(1)),
    ];
    let mut stored = Vec::new();
    for (signed, credits, received_at) in table {
        let (account, credits) = (owner.id.clone(), atoms(credits));
        let request = (credits.atoms() > 2).then(|| Fingerprint::from_bytes([0xFF; 16]));
        let identifier = (credits.atoms() != 2).then(|| IdentifierHash::from_bytes([0xFF; 32]));
        let new = NewAuthorization { signed, account, credits, request, identifier, received_at, usage: None };
        let record = opened(&*store, new).await;
        stored.push((record, (credits, received_at)));
    }
    for ((returned, (credits, received_at)), signed) in
        stored.iter().zip([extreme(0, false, 1), extreme(0xFF, true, 8_192), extreme(1, true, 65), signed(1)])
    {
        let expected = AuthorizationRecord {
            signed,
            account: owner.id.clone(),
            credits: *credits,
            request: (credits.atoms() > 2).then(|| Fingerprint::from_bytes([0xFF; 16])),
            identifier: (credits.atoms() != 2).then(|| IdentifierHash::from_bytes([0xFF; 32])),
            received_at: *received_at,
            state: AuthorizationState::Pending,
            tx: None,
            gas: None,
            submissions: Vec::new(),
            usage: None,
        };
        assert_eq!(returned, &expected);
        assert_eq!(record(&*store, &expected.signed.id()).await, expected);
    }
}

/// Transactions of any length and place, and every failure, are stored as given.
pub async fn submissions_and_failures_are_stored_unchanged(store: Arc<dyn AuthorizationStore>) {
    let owner = customer(&*store, 0).await;
    let moments = [Timestamp::from_unix_millis(-1), at(1), Timestamp::from_unix_millis(253_402_300_799_999)];
    for ((number, failure), time) in (1..).zip(SettlementFailure::ALL).zip(moments) {
        let id = pending(&*store, &owner.id, number).await;
        let wallet = Address::from_bytes([0xFF; 20]);
        let lowest = u64::from(u32::MAX) * u64::from(number);
        assert_eq!(store.assign_gas_place(&id, wallet, lowest).await.unwrap(), Some(lowest));
        let raw: Vec<u8> = (0..=u8::MAX).cycle().take(if number == 2 { 20_000 } else { number.into() }).collect();
        let submission = Submission { raw, signed_at: time, ..submission(0xFF - number) };
        assert!(store.add_submission(&id, submission.clone()).await.unwrap());
        assert!(store.fail_authorization(&id, failure, time).await.unwrap());
        let found = record(&*store, &id).await;
        assert_eq!(found.state, AuthorizationState::Failed { failure, at: time });
        assert_eq!(found.gas, Some(GasPlace { wallet, nonce: lowest }));
        assert_eq!(found.submissions, [submission]);
    }
}

/// Authorizations that differ in their chain, token, payer or nonce are different ones.
pub async fn each_part_of_the_id_tells_authorizations_apart(store: Arc<dyn AuthorizationStore>) {
    let owner = customer(&*store, 0).await;
    let first = signed(1);
    let (other, nonce) = (Address::from_bytes([7; 20]), AuthorizationNonce::from_bytes([7; 32]));
    let of = |authorization| SignedAuthorization { authorization, ..signed(1) };
    let others = [
        SignedAuthorization { chain_id: first.chain_id + 1, ..first.clone() },
        SignedAuthorization { token: other, ..first.clone() },
        of(Authorization { from: other, ..first.authorization }),
        of(Authorization { nonce, ..first.authorization }),
    ];
    opened(&*store, new(&owner.id, 1)).await;
    for signed in &others {
        assert_eq!(store.authorization(&signed.id()).await.unwrap(), None, "{signed:?}");
    }
    for signed in others {
        let record = opened(&*store, NewAuthorization { signed, ..new(&owner.id, 1) }).await;
        assert_eq!(store.authorization(&record.signed.id()).await.unwrap(), Some(record));
    }
    assert!(fail(&*store, &first.id()).await);
    assert_eq!(store.claim_authorizations(at(60), LEASE, 9).await.unwrap().len(), 4, "the others are still pending");
}

/// An authorization is stored once. Sent again with other details, it returns the existing record.
pub async fn an_authorization_is_stored_once(store: Arc<dyn AuthorizationStore>) {
    let (owner, other) = (customer(&*store, 0).await, customer(&*store, 0).await);
    let first = opened(&*store, new(&owner.id, 1)).await;
    let id = first.signed.id();
    let expect_known = async |record: &AuthorizationRecord| {
        let mut altered = signed(1);
        altered.signature = signature(&[9; 8]);
        altered.authorization.to = Address::ZERO;
        altered.authorization.value = TokenUnits::new(1);
        (altered.authorization.valid_after, altered.authorization.valid_before) = (5, 6);
        let again = [
            new(&owner.id, 1),
            new(&other.id, 1),
            new(&new_id(), 1),
            NewAuthorization { credits: Credits::MAX, received_at: at(99), ..new(&owner.id, 1) },
            NewAuthorization { signed: altered, ..new(&owner.id, 1) },
        ];
        for again in again {
            let outcome = store.open_authorization(again, LEASE).await.unwrap();
            assert_eq!(outcome, AuthorizationOpened::Known(record.clone()));
            assert_eq!(&super::authorization_scene::record(&*store, &id).await, record);
        }
    };
    expect_known(&first).await;
    place(&*store, &id, 3).await;
    store.add_submission(&id, submission(1)).await.unwrap();
    expect_known(&record(&*store, &id).await).await;
    credited(&*store, &id, credit(&owner.id, 1, tx(1))).await;
    expect_known(&record(&*store, &id).await).await;
    let failed = pending(&*store, &owner.id, 2).await;
    assert!(fail(&*store, &failed).await);
    let known = AuthorizationOpened::Known(record(&*store, &failed).await);
    assert_eq!(store.open_authorization(new(&other.id, 2), LEASE).await.unwrap(), known);
    store.revoke_account(&owner.id, NOON).await.unwrap();
    expect_known(&record(&*store, &id).await).await;
    assert_eq!(store.claim_authorizations(at(9_999), LEASE, 9).await.unwrap(), [], "none is pending again");
}

/// Sending a pending authorization again does not claim it.
pub async fn a_repeated_authorization_is_not_claimed_again(store: Arc<dyn AuthorizationStore>) {
    let owner = customer(&*store, 0).await;
    let first = opened(&*store, new(&owner.id, 1)).await;
    let again = NewAuthorization { received_at: at(30), ..new(&owner.id, 1) };
    store.open_authorization(again, LEASE).await.unwrap();
    assert_eq!(store.claim_authorizations(at(60), LEASE, 9).await.unwrap(), [first]);
}

/// An unknown or revoked account stores nothing, and another account can still use the authorization.
pub async fn only_live_accounts_store_authorizations(store: Arc<dyn AuthorizationStore>) {
    let (revoked, live) = (customer(&*store, 0).await, customer(&*store, 0).await);
    store.revoke_account(&revoked.id, NOON).await.unwrap();
    for account in [&revoked.id, &new_id()] {
        let outcome = store.open_authorization(new(account, 1), LEASE).await.unwrap();
        assert_eq!(outcome, AuthorizationOpened::NoSuchAccount);
        assert_eq!(store.authorization(&signed(1).id()).await.unwrap(), None);
    }
    assert_eq!(opened(&*store, new(&live.id, 1)).await.account, live.id);
}

/// Storing or failing an authorization moves no credits.
pub async fn pending_and_failed_authorizations_move_no_credits(store: Arc<dyn AuthorizationStore>) {
    let owner = customer(&*store, 5).await;
    let before = Books::read(&*store).await;
    let id = pending(&*store, &owner.id, 1).await;
    place(&*store, &id, 0).await;
    store.add_submission(&id, submission(1)).await.unwrap();
    assert_eq!(Books::read(&*store).await, before);
    assert!(fail(&*store, &id).await);
    assert_eq!(Books::read(&*store).await, before);
}

/// Many accounts send one authorization at once: one stores it, and all others get its record.
pub async fn racing_accounts_store_one_authorization(store: Arc<dyn AuthorizationStore>) {
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        let owner = customer(&*store, 0).await;
        let store = Arc::clone(&store);
        tasks.spawn(async move { store.open_authorization(new(&owner.id, 1), LEASE).await.unwrap() });
    }
    let stored = tasks.join_all().await;
    let kept = record(&*store, &signed(1).id()).await;
    let count = |outcome: &AuthorizationOpened| stored.iter().filter(|other| *other == outcome).count();
    assert_eq!(count(&AuthorizationOpened::Opened(kept.clone())), 1);
    assert_eq!(count(&AuthorizationOpened::Known(kept)), usize::from(TASKS) - 1);
}

/// Only an authorization that has failed is made pending again. It keeps its account, its place if a transaction has
/// it, and its transactions.
pub async fn a_failed_authorization_is_reopened(store: Arc<dyn AuthorizationStore>) {
    let owner = customer(&*store, 0).await;
    let [failed, paid] = [pending(&*store, &owner.id, 1).await, pending(&*store, &owner.id, 2).await];
    let reopen = async |id: AuthorizationId, seconds| store.reopen_authorization(&id, at(seconds)).await.unwrap();
    assert_eq!(reopen(failed, 500).await, None, "it is pending");
    assert_eq!(reopen(signed(9).id(), 500).await, None, "there is none");
    credited(&*store, &paid, credit(&owner.id, 2, tx(1))).await;
    assert_eq!(reopen(paid, 500).await, None, "it was credited");
    place(&*store, &failed, 3).await;
    store.add_submission(&failed, submission(1)).await.unwrap();
    let before = record(&*store, &failed).await;
    assert!(fail(&*store, &failed).await);
    assert_eq!(reopen(failed, 500).await.as_ref(), Some(&before));
    assert_eq!(record(&*store, &failed).await, before);
    assert_eq!(store.claim_authorizations(at(499), LEASE, 9).await.unwrap(), [], "it is claimed");
    assert_eq!(store.claim_authorizations(at(500), LEASE, 9).await.unwrap(), [before]);
    credited(&*store, &failed, credit(&owner.id, 1, tx(2))).await;
}

/// An account's first key is found while it works, no matter which other keys there are.
pub async fn an_accounts_first_key_is_found(store: Arc<dyn AuthorizationStore>) {
    let owner = customer(&*store, 0).await;
    let first = async || store.first_key(&owner.id).await.unwrap();
    assert_eq!(first().await, Some(owner.key));
    issue(&*store, &owner.id, None, caller()).await;
    assert_eq!(first().await, Some(owner.key));
    let newer = ApiKey::generate(&SystemRandomness).hash();
    store.replace_key(&owner.id, newer, at(1)).await.unwrap();
    assert_eq!(first().await, Some(newer));
    assert_eq!(store.first_key(&new_id()).await.unwrap(), None);
    store.report_leaked(&newer, at(2)).await.unwrap();
    assert_eq!(first().await, None, "it leaked");
    store.replace_key(&owner.id, ApiKey::generate(&SystemRandomness).hash(), at(3)).await.unwrap();
    assert!(first().await.is_some());
    store.revoke_account(&owner.id, at(4)).await.unwrap();
    assert_eq!(first().await, None, "the account is revoked");
}

/// A pending authorization fails once, and stays failed.
pub async fn an_authorization_fails_once(store: Arc<dyn AuthorizationStore>) {
    let owner = customer(&*store, 0).await;
    let first = opened(&*store, new(&owner.id, 1)).await;
    let id = first.signed.id();
    let failure = SettlementFailure::Cancelled;
    assert!(store.fail_authorization(&id, failure, at(3)).await.unwrap());
    let failed = AuthorizationRecord { state: AuthorizationState::Failed { failure, at: at(3) }, ..first };
    assert_eq!(record(&*store, &id).await, failed);
    for failure in SettlementFailure::ALL {
        assert!(!store.fail_authorization(&id, failure, at(4)).await.unwrap());
    }
    assert_eq!(record(&*store, &id).await, failed);
    let unknown = AuthorizationId { chain_id: 1, ..id };
    assert!(!fail(&*store, &unknown).await);
    assert_eq!(store.authorization(&unknown).await.unwrap(), None);
    let paid = pending(&*store, &owner.id, 2).await;
    credited(&*store, &paid, credit(&owner.id, 2, tx(2))).await;
    let before = record(&*store, &paid).await;
    assert!(!fail(&*store, &paid).await, "it is credited");
    assert_eq!(record(&*store, &paid).await, before);
    assert_eq!(before.gas, None);
    assert_eq!(place(&*store, &id, 0).await, None, "no place for a failed one");
    let next = pending(&*store, &owner.id, 3).await;
    assert_eq!(store.assign_gas_place(&next, GAS, 0).await.unwrap(), Some(0));
}
