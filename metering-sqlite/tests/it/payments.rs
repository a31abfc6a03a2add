//! Payments on disk: what persists, and what counts only once.

use std::sync::Arc;
use std::time::Duration;

use metering_core::access::{KeyHash, Payer};
use metering_core::chains::TxRef;
use metering_core::money::LedgerKind;
use metering_core::payments::{PaymentUse, Quote, QuoteState};
use metering_core::store::{Claimed, KeyDelivery, PaymentCredited, QuoteOpened};
use metering_core::{AccountId, PaymentStore, Store, Timestamp};
use metering_sqlite::SqliteStore;

use crate::migration::write_version_4;
use crate::scene::{
    NOON, account, challenge, charge, claim, count, created, credit, database_path, new_account, quote, tx, wallet,
};

async fn open(store: &SqliteStore, number: u8) -> Quote {
    let quote = quote(number);
    assert_eq!(store.open_quote(quote.clone()).await.unwrap(), QuoteOpened::Opened);
    quote
}

async fn claimed(store: &SqliteStore, quote: &Quote, delivery: KeyDelivery) -> (AccountId, KeyHash) {
    let (claim, key) = claim(quote, tx(1), delivery);
    match store.claim_quote(claim).await.unwrap() {
        Claimed::Account(account) => (account.id, key),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn claims_and_credits_survive_reopening() {
    let (_folder, file, store) = created();
    let quote = open(&store, 1).await;
    let (id, key) = claimed(&store, &quote, KeyDelivery::Now).await;
    let credited = store.credit_payment(credit(&id, 2, tx(2))).await.unwrap();
    assert!(matches!(credited, PaymentCredited::Account(_)), "{credited:?}");
    store.open_challenge(challenge(&id, quote.payer, "asked")).await.unwrap();
    store.fail_challenge("asked").await.unwrap();
    store.set_scan_mark(8453, 17).await.unwrap();
    drop(store);

    let store = SqliteStore::open(&file).unwrap();
    let found = store.quote(&quote.nonce).await.unwrap().unwrap();
    assert_eq!(found.state, QuoteState::Claimed { account: id.clone(), tx: tx(1) });
    assert_eq!(Quote { state: QuoteState::Open, ..found }, quote);
    let (again, _) = claim(&quote, tx(1), KeyDelivery::Now);
    assert_eq!(store.claim_quote(again).await.unwrap(), Claimed::AlreadyClaimed);

    let records = store.payments(None, 10).await.unwrap().items;
    assert_eq!(
        records.iter().map(|record| record.used_as).collect::<Vec<_>>(),
        [PaymentUse::PaySignup, PaymentUse::Topup]
    );
    assert_eq!(records[0].payment, claim(&quote, tx(1), KeyDelivery::Now).0.payment);
    assert_eq!(store.payment(&tx(2)).await.unwrap().as_ref(), Some(&records[1]));
    assert_eq!(store.linked_accounts(&wallet(2)).await.unwrap(), std::slice::from_ref(&id));
    let owner = store.account_by_payer(&quote.payer).await.unwrap().unwrap();
    assert_eq!((&owner.id, owner.payer), (&id, Some(Payer { address: quote.payer, chain_id: 8453 })));
    let repeated = store.credit_payment(credit(&id, 2, tx(2))).await.unwrap();
    assert!(matches!(repeated, PaymentCredited::Repeated(..)), "{repeated:?}");
    assert_eq!(store.challenge("asked").await.unwrap().map(|challenge| challenge.failures), Some(1));
    assert_eq!(store.scan_mark(8453).await.unwrap(), Some(17));

    assert_eq!(charge(&store, key).await, Ok(19));
    let ledger = store.ledger(None, 10).await.unwrap().items;
    let paid = ledger.iter().map(|entry| (entry.kind, entry.payment.as_ref().map(|payment| payment.tx)));
    assert_eq!(
        paid.collect::<Vec<_>>(),
        [(LedgerKind::PurchasePaySignup, Some(tx(1))), (LedgerKind::PurchaseTopup, Some(tx(2)))]
    );
    let activity = store.activity(&id, 2).await.unwrap();
    assert_eq!(activity[0].payment, None, "a request");
    assert_eq!(activity[1].payment, ledger[1].payment);
    assert_eq!(store.verify().await.unwrap().discrepancies, []);
}

/// Runs `act` 50 times concurrently, alternating between two stores on the same file.
async fn race<A, F, T>(openers: &[Arc<SqliteStore>; 2], act: A) -> Vec<T>
where
    A: Fn(Arc<SqliteStore>) -> F,
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    let tasks: Vec<_> = (0..50).map(|n| tokio::spawn(act(Arc::clone(&openers[n % 2])))).collect();
    let mut results = Vec::new();
    for task in tasks {
        results.push(task.await.unwrap());
    }
    results
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_openers_claiming_a_quote_create_one_account() {
    let (_folder, file) = database_path();
    let openers = [SqliteStore::create(&file).unwrap(), SqliteStore::open(&file).unwrap()].map(Arc::new);
    let quote = open(&openers[0], 1).await;
    let results = race(&openers, |store| {
        let (claim, _) = claim(&quote, tx(1), KeyDelivery::Now);
        async move { store.claim_quote(claim).await.unwrap() }
    });
    let results = results.await;
    let made = results.iter().filter(|result| matches!(result, Claimed::Account(_))).count();
    let late = results.iter().filter(|result| **result == Claimed::AlreadyClaimed).count();
    assert_eq!((made, late), (1, 49));
    assert_eq!(["account", "api_key", "key_secret", "ledger", "payment"].map(|table| count(&file, table)), [1; 5]);
    assert_eq!(openers[1].verify().await.unwrap().discrepancies, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_openers_credit_a_payment_once() {
    let (_folder, file) = database_path();
    let openers = [SqliteStore::create(&file).unwrap(), SqliteStore::open(&file).unwrap()].map(Arc::new);
    let (id, key) = account(&openers[0], 0).await;
    let results = race(&openers, |store| {
        let credit = credit(&id, 1, tx(1));
        async move { store.credit_payment(credit).await.unwrap() }
    });
    let results = results.await;
    let credited = results.iter().filter(|result| matches!(result, PaymentCredited::Account(_))).count();
    let repeated = results.iter().filter(|result| matches!(result, PaymentCredited::Repeated(..))).count();
    assert_eq!((credited, repeated), (1, 49));
    assert_eq!(["payment", "wallet_link"].map(|table| count(&file, table)), [1, 1]);
    assert_eq!(charge(&openers[1], key).await, Ok(9));
    assert_eq!(openers[0].verify().await.unwrap().discrepancies, []);
}

/// SQLite's integers are signed; chain ids and block numbers are not.
#[tokio::test]
async fn sixty_four_bit_numbers_are_stored() {
    let (_folder, _, store) = created();
    for (block, mark) in [(i64::MAX.cast_unsigned(), i64::MAX.cast_unsigned()), (u64::MAX, u64::MAX), (3, u64::MAX)] {
        store.set_scan_mark(u64::MAX, block).await.unwrap();
        assert_eq!(store.scan_mark(u64::MAX).await.unwrap(), Some(mark));
    }
    let mut new = new_account();
    let payer = Payer { address: wallet(1), chain_id: u64::MAX };
    (new.payer, new.entries) = (Some(payer), Vec::new());
    let id = new.id.clone();
    store.create_account(new).await.unwrap();
    assert_eq!(store.account(&id).await.unwrap().and_then(|account| account.payer), Some(payer));
    let tx = TxRef { chain_id: u64::MAX, ..tx(1) };
    let mut credit = credit(&id, 1, tx);
    credit.payment.block_number = u64::MAX;
    let payment = credit.payment.clone();
    store.credit_payment(credit).await.unwrap();
    assert_eq!(store.payment(&tx).await.unwrap().map(|record| record.payment), Some(payment));
    assert_eq!(store.verify().await.unwrap().discrepancies, []);
}

/// Payments that are on their way during the migration still count: chains that were already in use are registered from
/// the time of the store's first account.
#[tokio::test]
async fn recipients_of_used_chains_are_known_since_store_creation() {
    let (_folder, file) = database_path();
    let changes = "INSERT INTO scan_mark VALUES (8453, 17); UPDATE account SET created_at = created_at - 1795261995000";
    write_version_4(&file, changes);
    let store = SqliteStore::open(&file).unwrap();
    let recipient = |byte| metering_core::chains::Address::from_bytes([byte; 20]);
    let configured = vec![(8453, recipient(1)), (1, recipient(1))];
    let found = store.register_recipients(configured, NOON).await.unwrap();
    let began = Timestamp::from_unix_millis(5_000);
    assert_eq!((found[0].since, found[0].other_store), (began, None));
    assert_eq!(found[1].since, NOON, "a chain that was never used");
    // Payments to a recipient that is configured later are accepted from then on.
    let later = NOON.saturating_add(Duration::from_secs(60));
    assert_eq!(store.register_recipients(vec![(8453, recipient(2))], later).await.unwrap()[0].since, later);
    assert_eq!(store.recipients().await.unwrap().len(), 3);
}
