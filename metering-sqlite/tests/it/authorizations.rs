//! Authorizations on disk: what other handles on the file see, their export, the move of earlier files, and damage.

use std::time::Duration;

use metering_core::access::KeyHash;
use metering_core::chains::{Block, TokenUnits, TxHash, TxRef, WalletSignature};
use metering_core::charging::Fingerprint;
use metering_core::offers::{
    Authorization, AuthorizationId, AuthorizationNonce, AuthorizationRecord, AuthorizationState, GasPlace,
    IdentifierHash, SettlementFailure, SignedAuthorization, Submission,
};
use metering_core::payments::{PaymentUse, SettlementStep};
use metering_core::store::{
    AuthorizationCredited, AuthorizationOpened, AuthorizationStore, NewAuthorization, PaymentCredit, PaymentCredited,
    PaymentSettled, QuotePrecedence, SettlementChange,
};
use metering_core::{AccountId, Credits, PaymentStore, Store, Timestamp};
use metering_sql::transfer::{GasPlacesRecord, Record, Section};
use metering_sqlite::SqliteStore;

use crate::contract::fast_folder;
use crate::migration::write_version;
use crate::scene::{
    NOON, account, assert_corrupt, charge, count, created, credit, database_path, execute, records, tx, wallet,
};

const LEASE: Duration = Duration::from_secs(60);

fn at(seconds: u64) -> Timestamp {
    NOON.saturating_add(Duration::from_secs(seconds))
}

/// Authorization `number` on a chain, with the largest numbers there are.
fn signed(chain_id: u64, number: u8) -> SignedAuthorization {
    let authorization = Authorization {
        from: wallet(number),
        to: wallet(0xdd),
        value: TokenUnits::MAX,
        valid_after: u64::MAX - 1,
        valid_before: u64::MAX,
        nonce: AuthorizationNonce::from_bytes([number; 32]),
    };
    let signature = WalletSignature::from_bytes(vec![number; 8_192]).unwrap();
    SignedAuthorization { chain_id, token: wallet(0xee), authorization, signature }
}

async fn opened(store: &SqliteStore, account: &AccountId, chain_id: u64, number: u8) -> AuthorizationRecord {
    let new = NewAuthorization {
        signed: signed(chain_id, number),
        account: account.clone(),
        credits: Credits::BASE_CALL,
        request: Some(Fingerprint::from_bytes([number; 16])),
        identifier: Some(IdentifierHash::of(&format!("{chain_id}:{number}"))),
        received_at: NOON,
        usage: None,
    };
    match store.open_authorization(new, LEASE).await.unwrap() {
        AuthorizationOpened::Opened(record) => record,
        refusal => panic!("{refusal:?}"),
    }
}

fn submission(number: u8) -> Submission {
    Submission { hash: TxHash::from_bytes([number; 32]), raw: vec![number; 300], signed_at: at(number.into()) }
}

/// The credit for an authorization that a transaction executed.
fn executed(account: &AccountId, tx: TxRef) -> PaymentCredit {
    let credit = credit(account, 1, tx);
    let mut entry = credit.entry.clone();
    entry.payment.as_mut().unwrap().plan_id = None;
    PaymentCredit { used_as: PaymentUse::Authorization, entry, quotes: QuotePrecedence::Account, ..credit }
}

async fn credited(store: &SqliteStore, account: &AccountId, id: &AuthorizationId, tx: TxRef) {
    let outcome = store.credit_authorization(id, executed(account, tx)).await.unwrap();
    assert!(matches!(outcome, AuthorizationCredited::Account(_)), "{outcome:?}");
}

async fn stepped(store: &SqliteStore, tx: TxRef, step: SettlementStep) {
    let seen = store.payment(&tx).await.unwrap().unwrap();
    let outcome = store.settle_payment(SettlementChange { seen, step, now: NOON }).await.unwrap();
    assert!(matches!(outcome, PaymentSettled::Changed(_)), "{outcome:?}");
}

async fn claim(store: &SqliteStore, seconds: u64) -> Vec<AuthorizationId> {
    let claimed = store.claim_authorizations(at(seconds), LEASE, 10).await.unwrap();
    claimed.into_iter().map(|record| record.signed.id()).collect()
}

#[tokio::test]
async fn every_step_is_on_disk_and_seen_by_every_opener() {
    let (_folder, file) = database_path();
    let here = SqliteStore::create(&file).unwrap();
    let there = SqliteStore::open(&file).unwrap();
    let (owner, key) = account(&here, 1).await;
    let new = opened(&here, &owner, 8453, 1).await;
    let id = new.signed.id();
    assert_eq!(there.authorization(&id).await.unwrap(), Some(new.clone()));
    let place = GasPlace { wallet: wallet(9), nonce: 7 };
    assert_eq!(there.assign_gas_place(&id, place.wallet, 7).await.unwrap(), Some(7));
    assert!(here.add_submission(&id, submission(1)).await.unwrap());
    assert!(there.add_submission(&id, submission(2)).await.unwrap());
    assert_eq!((claim(&here, 60).await, claim(&there, 60).await), (vec![id], vec![]));
    assert_eq!(charge(&there, key).await, Ok(0));
    credited(&here, &owner, &id, tx(1)).await;
    assert_eq!(charge(&there, key).await, Ok(9));
    let again = there.credit_authorization(&id, executed(&owner, tx(2))).await.unwrap();
    assert!(matches!(again, AuthorizationCredited::NotPending(_)), "{again:?}");
    drop((here, there));
    let store = SqliteStore::open(&file).unwrap();
    let (state, submissions) = (AuthorizationState::Credited, vec![submission(1), submission(2)]);
    let expected = AuthorizationRecord { state, tx: Some(tx(1)), gas: Some(place), submissions, ..new };
    assert_eq!(store.authorization(&id).await.unwrap(), Some(expected));
    assert_eq!(store.first_key(&owner).await.unwrap(), Some(key));
    assert_eq!(store.verify().await.unwrap().discrepancies, []);
}

/// SQLite's integers are signed; nonces and chain ids are not.
#[tokio::test]
async fn gas_places_above_the_signed_range_are_ordered() {
    let (_folder, _, store) = created();
    let (owner, _) = account(&store, 0).await;
    let (gas, middle) = (wallet(9), i64::MAX.cast_unsigned());
    let mut ids = Vec::new();
    for (number, expected) in (1..).zip([middle - 1, middle, middle + 1, middle + 2]) {
        let id = opened(&store, &owner, u64::MAX, number).await.signed.id();
        assert_eq!(store.assign_gas_place(&id, gas, middle - 1).await.unwrap(), Some(expected));
        ids.push(id);
    }
    for id in &ids[..3] {
        assert!(store.fail_authorization(id, SettlementFailure::Expired, NOON).await.unwrap());
    }
    // lowest place, place
    for (number, lowest, expected) in
        [(5, middle, middle), (6, middle, middle + 1), (7, 0, middle - 1), (8, 0, middle + 3)]
    {
        let id = opened(&store, &owner, u64::MAX, number).await.signed.id();
        assert_eq!(store.assign_gas_place(&id, gas, lowest).await.unwrap(), Some(expected), "{number}");
    }
}

/// Records with everything in them are exported a page at a time.
#[tokio::test]
async fn authorizations_and_gas_places_are_exported() {
    let folder = fast_folder();
    let store = SqliteStore::open(&folder.path().join("metering.db")).unwrap();
    let (owner, _) = account(&store, 0).await;
    let mut ids = Vec::new();
    for number in 1..=4 {
        ids.push(opened(&store, &owner, 8453, number).await.signed.id());
    }
    for id in &ids {
        store.assign_gas_place(id, wallet(9), 3).await.unwrap();
    }
    for number in [2, 1] {
        assert!(store.add_submission(&ids[0], submission(number)).await.unwrap());
    }
    credited(&store, &owner, &ids[0], tx(1)).await;
    for (number, failure) in [(1, SettlementFailure::Expired), (2, SettlementFailure::Cancelled)] {
        assert!(store.fail_authorization(&ids[number], failure, NOON).await.unwrap());
    }
    let other = opened(&store, &owner, 1, 9).await.signed.id();
    store.assign_gas_place(&other, wallet(9), u64::MAX - 1).await.unwrap();
    let mut expected = Vec::new();
    for id in [&other, &ids[0], &ids[1], &ids[2], &ids[3]] {
        expected.push(Record::Authorization(Box::new(store.authorization(id).await.unwrap().unwrap())));
    }
    let places = |chain_id, next, given_back| {
        Record::GasPlaces(GasPlacesRecord { chain_id, wallet: wallet(9), next, given_back })
    };
    let sections = [
        (Section::Authorizations, expected),
        (Section::GasPlaces, vec![places(1, u64::MAX, vec![]), places(8453, 7, vec![4, 5])]),
    ];
    for (section, expected) in sections {
        for limit in [1, 2, 10] {
            assert_eq!(records(&store, section, limit).await, expected, "{limit} {section} per page");
        }
    }
}

/// An authorization that cannot be read is put off. Those of others are claimed as ever.
#[tokio::test]
async fn an_unreadable_authorization_stops_no_other() {
    let damages = ["signature = x''", "state = 'pending', failure = 'expired'", "valid_before = 1, failed_at = 1"];
    for (index, damage) in damages.into_iter().enumerate() {
        let folder = fast_folder();
        let file = folder.path().join("metering.db");
        let store = SqliteStore::open(&file).unwrap();
        let (owner, _) = account(&store, 0).await;
        let mut ids = Vec::new();
        for number in 1..=3 {
            ids.push(opened(&store, &owner, 8453, number).await.signed.id());
        }
        let damaged = ids.remove(index);
        let set = format!(
            "PRAGMA ignore_check_constraints = on; \
             UPDATE payment_authorization SET {damage} WHERE nonce = x'{}'",
            format!("{:02x}", index + 1).repeat(32)
        );
        execute(&file, &set);
        let problem = store.authorization(&damaged).await.unwrap_err().to_string();
        assert!(problem.contains("payment_authorization.s"), "{damage}: {problem}");
        assert_eq!(claim(&store, 60).await, ids, "{damage}");
        assert_eq!(claim(&store, 119).await, [], "{damage}");
        assert_eq!(claim(&store, 120).await, ids, "{damage}");
    }
}

#[tokio::test]
async fn authorizations_that_contradict_their_payments_are_detected() {
    let mismatch = "another state, or are not recorded as theirs";
    // damage, expected fragment of the message
    let table = [
        ("UPDATE payment_authorization SET state = 'pending' WHERE state = 'credited'", mismatch),
        ("UPDATE payment_authorization SET state = 'credited' WHERE state = 'pending' AND tx_hash NOT NULL", mismatch),
        ("UPDATE payment SET used_as = 'topup' WHERE settlement = 'reversed'", mismatch),
        ("UPDATE payment_authorization SET account = (SELECT max(id) FROM account)", mismatch),
        ("UPDATE payment_authorization SET tx_chain_id = 1 WHERE state = 'credited'", mismatch),
        (
            "DELETE FROM payment_authorization WHERE state = 'credited'; DELETE FROM ledger WHERE id < 4",
            "the ledger of",
        ),
    ];
    for (damage, expected) in table {
        let (_folder, file, store) = created();
        let (owner, _) = account(&store, 1).await;
        account(&store, 1).await;
        for number in 1..=3 {
            let id = opened(&store, &owner, 8453, number).await.signed.id();
            if number < 3 {
                credited(&store, &owner, &id, tx(number)).await;
            }
        }
        let block = Block { number: 19, hash: [19; 32], time: NOON };
        for step in [SettlementStep::Reverse, SettlementStep::Restore(block), SettlementStep::Reverse] {
            stepped(&store, tx(2), step).await;
            assert_eq!(store.verify().await.unwrap().discrepancies, [], "before: {damage}");
        }
        execute(&file, &format!("PRAGMA foreign_keys = off; {damage}"));
        assert_corrupt(&store, expected, damage).await;
    }
}

#[tokio::test]
async fn version_12_files_store_authorizations() {
    let (_folder, file) = database_path();
    drop(write_version(12, &file));
    let owner: AccountId = "org_aaaaaaaaaaaaaaaaaaaa".parse().unwrap();
    let store = SqliteStore::open(&file).unwrap();
    let before = store.account(&owner).await.unwrap().unwrap().totals.balance;
    assert_eq!(store.first_key(&owner).await.unwrap(), Some(KeyHash::from_bytes([0x11; 32])));
    assert!(matches!(store.credit_payment(credit(&owner, 2, tx(2))).await.unwrap(), PaymentCredited::Account(_)));
    let id = opened(&store, &owner, 8453, 1).await.signed.id();
    credited(&store, &owner, &id, tx(1)).await;
    // The newest charges are only in the journal: they count.
    let after = store.account(&owner).await.unwrap().unwrap().totals.balance;
    let purchases = Credits::from_atoms(20 * Credits::BASE_CALL.atoms());
    assert_eq!(Some(after), before.checked_add(purchases));
    assert_eq!(store.verify().await.unwrap().discrepancies, []);
}

/// No part of an authorization expires: otherwise it would be executed or credited again.
#[tokio::test]
async fn no_authorization_is_forgotten() {
    let (_folder, file, store) = created();
    let (owner, _) = account(&store, 0).await;
    for number in 1..=3 {
        let id = opened(&store, &owner, 8453, number).await.signed.id();
        store.assign_gas_place(&id, wallet(9), 0).await.unwrap();
        if number == 1 {
            assert!(store.add_submission(&id, submission(1)).await.unwrap());
            credited(&store, &owner, &id, tx(1)).await;
        } else if number == 3 {
            assert!(store.fail_authorization(&id, SettlementFailure::Refused, NOON).await.unwrap());
        }
    }
    let tables = ["payment_authorization", "authorization_submission", "gas_place", "free_gas_place"];
    let kept = || tables.map(|table| count(&file, table));
    assert_eq!(kept(), [3, 1, 1, 1]);
    store.forget_expired(at(100 * 365 * 86_400)).await.unwrap();
    assert_eq!(kept(), [3, 1, 1, 1]);
}
