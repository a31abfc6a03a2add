//! Authorizations beyond the contract: moves, rows that the schema rejects, discrepancies that `verify` finds, and
//! upgrades of a store of version 10.

use std::time::Duration;

use metering_core::chains::{Address, Block, TokenUnits, TxHash, TxRef, WalletSignature};
use metering_core::charging::{Fingerprint, Posting};
use metering_core::money::{LedgerKind, NewLedgerEntry, PaymentRef};
use metering_core::offers::{
    Authorization, AuthorizationId, AuthorizationNonce, AuthorizationRecord, AuthorizationState, GasPlace,
    IdentifierHash, SettlementFailure, SignedAuthorization, Submission,
};
use metering_core::payments::{Payment, PaymentUse, SettlementStep};
use metering_core::store::{
    AuthorizationCredited, AuthorizationOpened, AuthorizationStore, NewAuthorization, PaymentCredit, PaymentSettled,
    QuotePrecedence, SettlementChange, SourceId,
};
use metering_core::{AccountId, ApiKey, Credits, NewAccount, PaymentStore, Store, SystemRandomness, Timestamp};
use metering_postgres::PostgresStore;
use metering_sql::transfer::{Import, Record, Section, TargetState, compare, copy};
use metering_tests::postgres::{Cluster, fresh_schema, run_in};

use crate::lost_commits::NOON;
use crate::moved::records;
use crate::upgrade::{books_of_version, charge_of, upgraded};

const LEASE: Duration = Duration::from_secs(60);
const GAS: Address = Address::from_bytes([200; 20]);

async fn account(store: &PostgresStore) -> AccountId {
    let id = AccountId::generate(&SystemRandomness);
    let key = ApiKey::generate(&SystemRandomness).hash();
    store.create_account(NewAccount::new(id.clone(), "agent".parse().unwrap(), key, NOON)).await.unwrap();
    id
}

fn signed(chain_id: u64, number: u8) -> SignedAuthorization {
    let authorization = Authorization {
        from: Address::from_bytes([number; 20]),
        to: Address::from_bytes([2; 20]),
        value: TokenUnits::new(u128::MAX - u128::from(number)),
        valid_after: number.into(),
        valid_before: u64::MAX,
        nonce: AuthorizationNonce::from_bytes([number; 32]),
    };
    let signature = WalletSignature::from_bytes(vec![number; 65]).unwrap();
    SignedAuthorization { chain_id, token: Address::from_bytes([3; 20]), authorization, signature }
}

async fn opened(store: &PostgresStore, account: &AccountId, signed: SignedAuthorization) -> AuthorizationId {
    let request = Some(Fingerprint::from_bytes([7; 16]));
    let credits = Credits::from_atoms(50);
    let (account, identifier) = (account.clone(), Some(IdentifierHash::of(&format!("{:?}", signed.id()))));
    let new = NewAuthorization { signed, account, credits, request, identifier, received_at: NOON, usage: None };
    match store.open_authorization(new, LEASE).await.unwrap() {
        AuthorizationOpened::Opened(record) => record.signed.id(),
        refusal => panic!("{refusal:?}"),
    }
}

fn tx(id: &AuthorizationId, number: u8) -> TxRef {
    TxRef { chain_id: id.chain_id, hash: TxHash::from_bytes([number; 32]) }
}

/// Stores a transaction with place `lowest` or a later one.
async fn submitted(store: &PostgresStore, id: &AuthorizationId, lowest: u64, number: u8) -> u64 {
    let place = store.assign_gas_place(id, GAS, lowest).await.unwrap().unwrap();
    let hash = TxHash::from_bytes([number; 32]);
    let submission = Submission { hash, raw: vec![number; 300], signed_at: NOON };
    assert!(store.add_submission(id, submission).await.unwrap());
    place
}

async fn credited(store: &PostgresStore, id: &AuthorizationId, number: u8) {
    let record = store.authorization(id).await.unwrap().unwrap();
    let authorization = record.signed.authorization;
    let payment = Payment {
        tx: tx(id, number),
        payer: authorization.from,
        recipient: authorization.to,
        token: id.token,
        amount: authorization.value,
        block_number: 9,
        block_hash: Some([9; 32]),
        mined_at: NOON,
    };
    let paid = Some(PaymentRef { tx: payment.tx, plan_id: None });
    let credit = PaymentCredit {
        account: record.account,
        payment,
        used_as: PaymentUse::Authorization,
        entry: NewLedgerEntry {
            payment: paid,
            ..NewLedgerEntry::new(LedgerKind::PurchaseTopup, record.credits, "With a request")
        },
        sold: None,
        value: None,
        link_payer: false,
        quotes: QuotePrecedence::Account,
        now: NOON,
    };
    let outcome = store.credit_authorization(id, credit).await.unwrap();
    assert!(matches!(outcome, AuthorizationCredited::Account(_)), "{outcome:?}");
}

async fn stepped(store: &PostgresStore, tx: TxRef, step: SettlementStep) {
    let seen = store.payment(&tx).await.unwrap().unwrap();
    let outcome = store.settle_payment(SettlementChange { seen, step, now: NOON }).await.unwrap();
    assert!(matches!(outcome, PaymentSettled::Changed(_)), "{outcome:?}");
}

async fn record(store: &PostgresStore, id: &AuthorizationId) -> AuthorizationRecord {
    store.authorization(id).await.unwrap().unwrap()
}

/// One authorization of each state: pending with two transactions, credited, reversed, failed with a place, failed
/// without one, and pending on the largest chain id. Place 1 of the wallet was given back, and so was the highest one.
async fn fill(store: &PostgresStore) -> Vec<AuthorizationId> {
    let owner = account(store).await;
    let mut ids = Vec::new();
    for number in 0..5 {
        ids.push(opened(store, &owner, signed(8_453, number)).await);
    }
    ids.push(opened(store, &owner, signed(u64::MAX, 5)).await);
    assert_eq!(submitted(store, &ids[0], 0, 10).await, 0);
    assert_eq!(store.assign_gas_place(&ids[4], GAS, 0).await.unwrap(), Some(1));
    assert_eq!(submitted(store, &ids[0], 1, 1).await, 2);
    assert_eq!(submitted(store, &ids[3], 0, 13).await, 3);
    for (id, number) in [(&ids[1], 21), (&ids[2], 22)] {
        credited(store, id, number).await;
    }
    stepped(store, tx(&ids[2], 22), SettlementStep::Reverse).await;
    for (id, failure) in [(&ids[3], SettlementFailure::Refused), (&ids[4], SettlementFailure::Cancelled)] {
        assert!(store.fail_authorization(id, failure, NOON).await.unwrap());
    }
    let last = opened(store, &owner, signed(u64::MAX, 6)).await;
    assert_eq!(store.assign_gas_place(&last, GAS, u64::MAX).await.unwrap(), Some(u64::MAX));
    assert!(store.fail_authorization(&last, SettlementFailure::Expired, NOON).await.unwrap());
    ids.push(last);
    ids
}

#[tokio::test(flavor = "multi_thread")]
async fn authorizations_are_moved_and_go_on_at_their_new_place() {
    let Some(url) = fresh_schema() else { return };
    let source = PostgresStore::connect(&url.parse().unwrap()).await.unwrap();
    let ids = fill(&source).await;
    assert_eq!(source.verify().await.unwrap().discrepancies, []);

    let url = Cluster::shared().fresh_schema();
    let id = SourceId::from_bytes([7; 16]);
    let broken_off = PostgresStore::connect_to_import(&url.parse().unwrap()).await.unwrap();
    assert_eq!(broken_off.begin(&id).await.unwrap(), TargetState::Empty);
    copy(&source, &broken_off, &mut |_, _| {}).await.unwrap();
    drop(broken_off);
    // The next attempt starts with empty tables.
    let target = PostgresStore::connect_to_import(&url.parse().unwrap()).await.unwrap();
    let begun = async || loop {
        match target.begin(&id).await.unwrap() {
            TargetState::InProgress => tokio::time::sleep(Duration::from_millis(50)).await,
            state => return state,
        }
    };
    assert_eq!(begun().await, TargetState::Unfinished);
    let mut moved = Vec::new();
    let mut count = |section, records| {
        if matches!(section, Section::Authorizations | Section::GasPlaces) {
            moved.push((section, records));
        }
    };
    copy(&source, &target, &mut count).await.unwrap();
    assert_eq!((moved.last(), moved.len() >= 2), (Some(&(Section::GasPlaces, 2)), true));
    let comparison = compare(&source, &target, &mut |_, _| {}).await.unwrap();
    assert!(comparison.is_equal(), "{comparison:?}");
    target.finish().await.unwrap();
    assert_eq!(target.verify().await.unwrap().discrepancies, []);
    for id in &ids {
        assert_eq!(record(&target, id).await, record(&source, id).await);
    }

    // No process works on them yet.
    let claimed = target.claim_authorizations(NOON, LEASE, 10).await.unwrap();
    let claimed: Vec<_> = claimed.iter().map(|record| record.signed.id()).collect();
    assert_eq!(claimed.len(), 3);
    assert!([0, 2, 5].iter().all(|number| claimed.contains(&ids[*number])));
    assert_eq!(source.claim_authorizations(NOON, LEASE, 10).await.unwrap(), [], "here they are claimed");
    // Places, transactions and payments continue.
    assert_eq!(target.assign_gas_place(&ids[2], GAS, 0).await.unwrap(), Some(1), "it was given back");
    assert_eq!(submitted(&target, &ids[0], 3, 2).await, 4);
    let submissions = record(&target, &ids[0]).await.submissions;
    assert_eq!(submissions.iter().map(|submission| submission.raw[0]).collect::<Vec<_>>(), [10, 1, 2]);
    let block = Block { number: 19, hash: [19; 32], time: NOON };
    stepped(&target, tx(&ids[2], 22), SettlementStep::Restore(block)).await;
    assert_eq!(record(&target, &ids[2]).await.state, AuthorizationState::Credited);
    assert_eq!(target.verify().await.unwrap().discrepancies, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn authorizations_are_exported_page_by_page() {
    let Some(url) = fresh_schema() else { return };
    let store = PostgresStore::connect(&url.parse().unwrap()).await.unwrap();
    fill(&store).await;
    for (section, count) in [(Section::Authorizations, 7), (Section::GasPlaces, 2)] {
        let found = records(&store, section, 1).await;
        assert_eq!(found, records(&store, section, 100).await);
        assert_eq!(found.len(), count, "{section}");
    }
    let mut places: Vec<_> = records(&store, Section::GasPlaces, 100)
        .await
        .into_iter()
        .map(|record| match record {
            Record::GasPlaces(places) => (places.chain_id, places.next, places.given_back),
            other => panic!("{other:?}"),
        })
        .collect();
    places.sort_unstable();
    assert_eq!(places, [(8_453, 4, vec![1]), (u64::MAX, u64::MAX, vec![u64::MAX])]);
}

/// The smallest place from the lowest on is found among small and large ones: their bytes compare like the numbers.
#[tokio::test(flavor = "multi_thread")]
async fn places_compare_as_unsigned_numbers() {
    let Some(url) = fresh_schema() else { return };
    let store = PostgresStore::connect(&url.parse().unwrap()).await.unwrap();
    let owner = account(&store).await;
    let large = u64::MAX / 2 + 1;
    let mut ids = Vec::new();
    for (number, lowest) in (0..).zip([255, 256, large, large + 1]) {
        let id = opened(&store, &owner, signed(1, number)).await;
        assert_eq!(store.assign_gas_place(&id, GAS, lowest).await.unwrap(), Some(lowest));
        ids.push(id);
    }
    for id in ids {
        assert!(store.fail_authorization(&id, SettlementFailure::Expired, NOON).await.unwrap());
    }
    for (number, lowest, place) in [(10, 256, 256), (11, 256, large), (12, large + 1, large + 1), (13, 0, 255)] {
        let id = opened(&store, &owner, signed(1, number)).await;
        assert_eq!(store.assign_gas_place(&id, GAS, lowest).await.unwrap(), Some(place));
        assert_eq!(record(&store, &id).await.gas, Some(GasPlace { wallet: GAS, nonce: place }));
    }
    let next = opened(&store, &owner, signed(1, 14)).await;
    assert_eq!(store.assign_gas_place(&next, GAS, 0).await.unwrap(), Some(large + 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn verification_finds_authorizations_that_do_not_match_their_payment() {
    let Some(url) = fresh_schema() else { return };
    let store = PostgresStore::connect(&url.parse().unwrap()).await.unwrap();
    let ids = fill(&store).await;
    assert_eq!(store.verify().await.unwrap().discrepancies, []);
    let other = account(&store).await;
    // the transaction, the state of its authorization, a wrong state
    for (tx, state, wrong) in [("15", "credited", "pending"), ("16", "pending", "credited")] {
        let set = |from: &str, to: &str| {
            let which = format!("state = '{from}' AND tx_hash = decode(repeat('{tx}', 32), 'hex')");
            run_in(&url, &format!("UPDATE payment_authorization SET state = '{to}' WHERE {which}"))
        };
        set(state, wrong);
        let error = store.verify().await.unwrap_err().to_string();
        assert!(error.contains("in another state, or are not recorded as theirs: 1 in all"), "{error}");
        set(wrong, state);
        assert_eq!(store.verify().await.unwrap().discrepancies, []);
    }
    let accounts = |id: &str| {
        format!(
            "UPDATE payment_authorization SET account = (SELECT id FROM account WHERE org_id = '{id}') \
                 WHERE state = 'credited'"
        )
    };
    run_in(&url, &accounts(other.as_str()));
    assert!(store.verify().await.is_err(), "another account's payment");
    run_in(&url, &accounts(record(&store, &ids[0]).await.account.as_str()));
    run_in(&url, "UPDATE payment SET used_as = 'topup' WHERE tx_hash = decode(repeat('15', 32), 'hex')");
    assert!(store.verify().await.is_err(), "a top-up");
}

/// Nodes of version 10 keep working: their writes find everything that they name.
#[tokio::test(flavor = "multi_thread")]
async fn accounts_of_version_ten_pay_with_requests() {
    let Some(url) = books_of_version(10) else { return };
    let store = upgraded(&url).await;

    let id: AccountId = "org_x0000000000000000005".parse().unwrap();
    let before = store.account(&id).await.unwrap().unwrap().totals;
    let authorization = opened(&store, &id, signed(8_453, 1)).await;
    assert_eq!(store.claim_authorizations(Timestamp::from_unix_millis(i64::MAX), LEASE, 10).await.unwrap().len(), 1);
    submitted(&store, &authorization, 0, 1).await;
    credited(&store, &authorization, 1).await;
    store.commit(vec![Posting::Charge(charge_of(1))], NOON).await.unwrap();
    let totals = store.account(&id).await.unwrap().unwrap().totals;
    assert_eq!(totals.balance.atoms(), before.balance.atoms() + 50 - 1);
    assert_eq!(totals.purchased.atoms(), before.purchased.atoms() + 50);
    assert_eq!(store.verify().await.unwrap().discrepancies, []);
}

/// The schema rejects rows that would be executed or credited twice, even from faulty programs.
#[tokio::test(flavor = "multi_thread")]
async fn places_and_payments_are_of_one_authorization() {
    let Some(url) = fresh_schema() else { return };
    let store = PostgresStore::connect(&url.parse().unwrap()).await.unwrap();
    fill(&store).await;
    let changes = [
        "UPDATE payment_authorization SET (gas_wallet, gas_nonce) = (SELECT gas_wallet, gas_nonce \
           FROM payment_authorization WHERE state = 'failed' AND gas_nonce IS NOT NULL) WHERE tx_hash IS NOT NULL",
        "UPDATE payment_authorization SET (tx_chain_id, tx_hash) = (SELECT tx_chain_id, tx_hash \
           FROM payment_authorization WHERE state = 'credited') WHERE state = 'failed'",
    ];
    for change in changes {
        let caught =
            format!("DO $$ BEGIN {change}; RAISE 'it was accepted'; EXCEPTION WHEN unique_violation THEN NULL; END $$");
        run_in(&url, &caught);
    }
}
