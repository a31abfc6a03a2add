//! How receipts are batched, and that each can be verified alone.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use metering_core::access::{KeyId, KeyNumber};
use metering_core::charging::HoldId;
use metering_core::prices::PriceNumber;
use metering_core::receipts::{ReceiptError, ReceiptKind, ReceiptSigner, Statement};
use metering_core::store::Created;
use metering_core::{
    AccountId, ApiKey, Clock, Credits, MemoryStore, NewAccount, Store, SystemClock, SystemRandomness, UsageLine,
};
use metering_log::keys::{JwkSet, PrivateKey};
use metering_proof::{BatchSigner, ReceiptFault, ReceiptPayload, SignedReceipt};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, advance};

const ISSUER: &str = "https://api.example.com";

struct Setup {
    signer: Arc<BatchSigner>,
    account: AccountId,
    key: KeyId,
    published: JwkSet,
    log: watch::Sender<Option<String>>,
}

/// A signer, and its task.
async fn setup() -> (Setup, impl Future<Output = ()> + Send + 'static) {
    let (store, secret) = (Arc::new(MemoryStore::new()), ApiKey::generate(&SystemRandomness).hash());
    let id = AccountId::generate(&SystemRandomness);
    let new = NewAccount::new(id.clone(), "agent".parse().unwrap(), secret, SystemClock.now());
    assert!(matches!(store.create_account(new).await.unwrap(), Created::Account(_)));
    let key = PrivateKey::from_seed(&[7; 32]);
    let published = JwkSet::new([key.public()]);
    let (randomness, clock) = (Arc::new(SystemRandomness), Arc::new(SystemClock));
    let (log, running) = watch::channel(None);
    let (signer, task) = BatchSigner::start(key, ISSUER.to_owned(), running, store, randomness, clock);
    (Setup { signer: Arc::new(signer), account: id, key: KeyId::of_first(&secret), published, log }, task)
}

impl Setup {
    fn statement(&self, atoms: i64) -> Statement {
        Statement {
            account: self.account.clone(),
            key: KeyNumber::FIRST,
            request: HoldId::generate(&SystemRandomness),
            kind: ReceiptKind::Charge,
            line: UsageLine {
                route_template: "/chat · gpt-5*".into(),
                http_method: "POST".into(),
                source: metering_core::ClientSource::Mcp,
            },
            price_version: Some(PriceNumber(3)),
            amount: Credits::from_atoms(atoms),
            balance: Some(Credits::from_atoms(-atoms)),
            at: SystemClock.now(),
        }
    }

    fn sign(&self, statement: Statement) -> JoinHandle<Result<String, ReceiptError>> {
        let signer = Arc::clone(&self.signer);
        tokio::spawn(async move { signer.sign(statement).await })
    }

    async fn signed(&self, atoms: i64) -> String {
        self.signer.sign(self.statement(atoms)).await.unwrap()
    }

    fn verify(&self, receipt: &str) -> Result<ReceiptPayload, ReceiptFault> {
        receipt.parse::<SignedReceipt>()?.verify(&self.published)
    }
}

/// The parts of a receipt: payload, place, path, signature.
fn parts(receipt: &str) -> [&str; 4] {
    receipt.splitn(4, '.').collect::<Vec<_>>().try_into().unwrap()
}

#[tokio::test(start_paused = true)]
async fn one_signature_is_for_all_that_wait_and_each_verifies_by_itself() {
    let (setup, task) = setup().await;
    let statements: Vec<Statement> = (1..=100).map(|atoms| setup.statement(atoms)).collect();
    let callers: Vec<_> = statements.iter().map(|statement| setup.sign(statement.clone())).collect();
    // It first runs after the callers.
    tokio::spawn(task);
    let mut receipts = Vec::new();
    for caller in callers {
        receipts.push(caller.await.unwrap().unwrap());
    }

    let signatures: BTreeSet<&str> = receipts.iter().map(|receipt| parts(receipt)[3]).collect();
    assert_eq!(signatures.len(), 1);
    for (receipt, statement) in receipts.iter().zip(&statements) {
        let paid = setup.verify(receipt).unwrap();
        assert_eq!((paid.issuer.as_str(), &paid.account, &paid.key), (ISSUER, &setup.account, &setup.key));
        assert_eq!((paid.key_number, paid.request, paid.kind), (0, statement.request, ReceiptKind::Charge));
        assert_eq!((paid.route.as_str(), paid.source.as_str()), ("POST /chat · gpt-5*", "mcp"));
        assert_eq!((paid.price_version, paid.at), (Some(3), statement.at));
        assert_eq!((paid.amount, paid.balance), (statement.amount, statement.balance));
        assert_eq!((paid.log, paid.logged_by), (None, None));
    }
    // Payload, place and path belong together.
    let (one, other) = (parts(&receipts[10]), parts(&receipts[11]));
    for part in 0..3 {
        let mut mixed = one;
        mixed[part] = other[part];
        assert!(matches!(setup.verify(&mixed.join(".")), Err(ReceiptFault::NotInBatch(_))), "part {part}");
    }
    let salts: BTreeSet<String> = receipts.iter().map(|receipt| setup.verify(receipt).unwrap().salt).collect();
    assert_eq!(salts.len(), 100);
}

#[tokio::test(start_paused = true)]
async fn while_a_log_runs_receipts_promise_that_their_postings_will_be_in_it() {
    let (setup, task) = setup().await;
    tokio::spawn(task);
    setup.log.send_replace(Some("api.example.com/log/1".to_owned()));
    let statement = setup.statement(1);
    let promised = setup.verify(&setup.signer.sign(statement.clone()).await.unwrap()).unwrap();
    assert_eq!(promised.log.as_deref(), Some("api.example.com/log/1"));
    assert_eq!(promised.logged_by, Some(statement.at.saturating_add(Duration::from_secs(86_400))));
    setup.log.send_replace(None);
    let paid = setup.verify(&setup.signed(2).await).unwrap();
    assert_eq!((paid.log, paid.logged_by), (None, None));
}

#[tokio::test(start_paused = true)]
async fn the_first_four_signatures_of_a_millisecond_are_made_at_once_and_then_receipts_wait_for_the_next() {
    let (setup, task) = setup().await;
    tokio::spawn(task);
    let began = Instant::now();
    let mut receipts = Vec::new();
    for atoms in 1..=4 {
        receipts.push(setup.signed(atoms).await);
    }
    assert_eq!(began.elapsed(), Duration::ZERO);
    // Receipts that arrive within the same millisecond are signed together.
    for caller in [setup.sign(setup.statement(5)), setup.sign(setup.statement(6))] {
        receipts.push(caller.await.unwrap().unwrap());
    }
    assert!(began.elapsed() >= Duration::from_millis(1));
    let sizes: Vec<&str> = receipts.iter().map(|receipt| parts(receipt)[1]).collect();
    assert_eq!(sizes, ["0-1", "0-1", "0-1", "0-1", "0-2", "1-2"]);

    advance(Duration::from_millis(5)).await;
    let began = Instant::now();
    setup.signed(7).await;
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn receipts_whose_clients_are_gone_are_not_signed() {
    let (setup, task) = setup().await;
    let (gone, there) = (setup.sign(setup.statement(1)), setup.sign(setup.statement(2)));
    let signing = tokio::spawn(async move {
        // Both wait by now.
        gone.abort();
        assert!(gone.await.unwrap_err().is_cancelled());
        task.await;
    });
    let receipt = there.await.unwrap().unwrap();
    assert_eq!(parts(&receipt)[1], "0-1");
    drop(setup);
    signing.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn more_than_may_wait_are_refused_and_all_are_when_the_signer_stops() {
    let (setup, task) = setup().await;
    let mut callers = JoinSet::new();
    for atoms in 1..=8_193 {
        let (signer, statement) = (Arc::clone(&setup.signer), setup.statement(atoms));
        callers.spawn(async move { signer.sign(statement).await });
    }
    let refused = callers.join_next().await.unwrap().unwrap();
    assert!(matches!(refused, Err(ReceiptError::Overloaded)), "{refused:?}");
    drop(task);
    while let Some(stopped) = callers.join_next().await {
        assert!(matches!(stopped.unwrap(), Err(ReceiptError::Stopped)));
    }
    assert!(matches!(setup.signer.sign(setup.statement(1)).await, Err(ReceiptError::Stopped)));
}

#[tokio::test]
async fn unknown_keys_get_no_receipt() {
    let (setup, _task) = setup().await;
    let statement = Statement { key: KeyNumber::new(5), ..setup.statement(1) };
    let error = setup.signer.sign(statement).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("the statement cannot be signed: {} has no key with the number 5", setup.account)
    );
}
