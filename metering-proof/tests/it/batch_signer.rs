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
use tokio::task::{JoinHandle, JoinSet, yield_now};

const ISSUER: &str = "https://api.example.com";

struct Setup {
    signer: Arc<BatchSigner>,
    account: AccountId,
    key: KeyId,
    published: JwkSet,
    log: watch::Sender<Option<String>>,
}

async fn setup() -> Setup {
    let (store, secret) = (Arc::new(MemoryStore::new()), ApiKey::generate(&SystemRandomness).hash());
    let id = AccountId::generate(&SystemRandomness);
    let new = NewAccount::new(id.clone(), "agent".parse().unwrap(), secret, SystemClock.now());
    assert!(matches!(store.create_account(new).await.unwrap(), Created::Account(_)));
    let key = PrivateKey::from_seed(&[7; 32]);
    let published = JwkSet::new([key.public()]);
    let (randomness, clock) = (Arc::new(SystemRandomness), Arc::new(SystemClock));
    let (log, running) = watch::channel(None);
    let signer = BatchSigner::new(key, ISSUER.to_owned(), running, store, randomness, clock);
    Setup { signer: Arc::new(signer), account: id, key: KeyId::of_first(&secret), published, log }
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

#[tokio::test]
async fn one_signature_is_for_all_that_wait_and_each_verifies_by_itself() {
    let setup = setup().await;
    let statements: Vec<Statement> = (1..=100).map(|atoms| setup.statement(atoms)).collect();
    let callers: Vec<_> = statements.iter().map(|statement| setup.sign(statement.clone())).collect();
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

#[tokio::test]
async fn while_a_log_runs_receipts_promise_that_their_postings_will_be_in_it() {
    let setup = setup().await;
    setup.log.send_replace(Some("api.example.com/log/1".to_owned()));
    let statement = setup.statement(1);
    let promised = setup.verify(&setup.signer.sign(statement.clone()).await.unwrap()).unwrap();
    assert_eq!(promised.log.as_deref(), Some("api.example.com/log/1"));
    assert_eq!(promised.logged_by, Some(statement.at.saturating_add(Duration::from_secs(86_400))));
    setup.log.send_replace(None);
    let paid = setup.verify(&setup.signed(2).await).unwrap();
    assert_eq!((paid.log, paid.logged_by), (None, None));
}

/// Callers on several threads sign for each other: every one of them gets its own receipt.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn receipts_of_many_threads_are_all_signed() {
    let setup = Arc::new(setup().await);
    let mut callers = JoinSet::new();
    for caller in 0..16 {
        let setup = Arc::clone(&setup);
        callers.spawn(async move {
            for atoms in 1..=100 {
                let paid = setup.verify(&setup.signed(1_000 * caller + atoms).await).unwrap();
                assert_eq!(paid.amount, Credits::from_atoms(1_000 * caller + atoms));
            }
        });
    }
    callers.join_all().await;
}

#[tokio::test]
async fn receipts_whose_clients_are_gone_are_not_signed() {
    let setup = setup().await;
    let gone = setup.sign(setup.statement(1));
    yield_now().await;
    // It waits by now.
    gone.abort();
    assert!(gone.await.unwrap_err().is_cancelled());
    assert_eq!(parts(&setup.signed(2).await)[1], "0-1");
}

#[tokio::test]
async fn unknown_keys_get_no_receipt() {
    let setup = setup().await;
    let statement = Statement { key: KeyNumber::new(5), ..setup.statement(1) };
    let error = setup.signer.sign(statement).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("the statement cannot be signed: {} has no key with the number 5", setup.account)
    );
}
