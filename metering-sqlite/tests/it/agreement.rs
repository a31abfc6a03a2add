//! Random payments, quotes, challenges and charges: two openers of one file, by turns, answer as a store in memory does.

use std::fmt::Debug;
use std::time::Duration;

use metering_core::{
    Account, AccountId, Credits, Email, KeyDelivery, KeyHash, MemoryStore, NewAccount, NewLedgerEntry, Payer,
    PaymentUse, Quote, QuotePrecedence, Store, StoreError, Timestamp, TokenUnits, TxRef,
};
use metering_sqlite::SqliteStore;
use proptest::prelude::*;
use proptest::test_runner::Config;

use crate::contract::fast_folder;
use crate::scene::{NOON, challenge, charge_of, claim, credit, grant, payment_of, quote, tx, wallet};

/// What an operation is about is a number that counts from the newest that was made, and round and round, so that they
/// meet. A key is new where there is none.
#[derive(Debug, Clone)]
enum Operation {
    Create { email: Option<u8>, payer: Option<u8>, key: Option<u8> },
    Revoke { account: u8 },
    ReplaceKey { account: u8, key: Option<u8> },
    Open { email: Option<u8>, payer: u8, amount: u8, at: Timestamp },
    Claim { quote: u8, tx: TxRef, key: Option<u8>, delivery: KeyDelivery, too_much: bool, at: Timestamp },
    Credit { account: u8, quote: u8, tx: TxRef, assigned: bool, despite_quote: bool, too_much: bool },
    Challenge { account: u8, address: Option<u8>, nonce: u8 },
    Fail { nonce: u8 },
    Rotate { nonce: u8, key: Option<u8>, at: Timestamp },
    Scanned { chain: u8, block: u8 },
    Charge { key: u8 },
    Forget { at: Timestamp },
}

/// Moments at and on both sides of whatever ends: a challenge, a quote, its grace, and how long each is remembered.
fn time() -> impl Strategy<Value = Timestamp> {
    let (minute, day) = (60, 86_400);
    let expiry = 30 * minute;
    let early = [minute, 5 * minute, 6 * minute, expiry, expiry + 1, day + 5 * minute, 2 * day];
    let late = [7 * day + expiry, 8 * day, 97 * day, 97 * day + expiry, 99 * day];
    let at = |seconds| NOON.saturating_add(Duration::from_secs(seconds));
    let one_of = |times: &[u64]| prop::sample::select(times.iter().copied().map(at).collect::<Vec<_>>());
    prop_oneof![2 => Just(NOON), 1 => one_of(&early), 1 => one_of(&late)]
}

fn operation() -> impl Strategy<Value = Operation> {
    use Operation::{
        Challenge, Charge, Claim, Create, Credit, Fail, Forget, Open, ReplaceKey, Revoke, Rotate, Scanned,
    };
    let delivery = || prop_oneof![Just(KeyDelivery::Now), Just(KeyDelivery::Later)];
    let (few, tx) = (|| 0..4_u8, || (0..6_u8).prop_map(tx));
    let some = || prop::option::of(0..4_u8);
    let seldom = || prop::option::weighted(0.1, 0..4_u8);
    let rarely = || prop::bool::weighted(0.1);
    prop_oneof![
        2 => (some(), some(), seldom()).prop_map(|(email, payer, key)| Create { email, payer, key }),
        1 => few().prop_map(|account| Revoke { account }),
        1 => (few(), seldom()).prop_map(|(account, key)| ReplaceKey { account, key }),
        4 => (some(), few(), 0..2_u8, time())
            .prop_map(|(email, payer, amount, at)| Open { email, payer, amount, at }),
        5 => (few(), tx(), seldom(), delivery(), rarely(), time())
            .prop_map(|(quote, tx, key, delivery, too_much, at)| Claim { quote, tx, key, delivery, too_much, at }),
        4 => (few(), few(), tx(), any::<bool>(), any::<bool>(), rarely()).prop_map(
            |(account, quote, tx, assigned, despite_quote, too_much)| Credit {
                account, quote, tx, assigned, despite_quote, too_much,
            }
        ),
        3 => (few(), seldom(), few()).prop_map(|(account, address, nonce)| Challenge { account, address, nonce }),
        2 => few().prop_map(|nonce| Fail { nonce }),
        3 => (few(), seldom(), time()).prop_map(|(nonce, key, at)| Rotate { nonce, key, at }),
        1 => (0..2_u8, any::<u8>()).prop_map(|(chain, block)| Scanned { chain, block }),
        8 => few().prop_map(|key| Charge { key }),
        1 => time().prop_map(|at| Forget { at }),
    ]
}

/// What was made or tried so far.
#[derive(Debug, Default)]
struct Made {
    accounts: Vec<Account>,
    quotes: Vec<Quote>,
    keys: Vec<KeyHash>,
    operations: u8,
}

fn from_newest<T: Clone>(made: &[T], number: u8) -> Option<T> {
    made.iter().rev().cycle().nth(number.into()).cloned()
}

fn nonce(number: u8) -> String {
    format!("nonce-{number}")
}

fn email(number: u8) -> Email {
    format!("user{number}@example.com").parse().unwrap()
}

fn payer(number: u8) -> Payer {
    Payer { address: wallet(number), chain_id: tx(0).chain_id }
}

impl Made {
    fn account(&self, number: u8) -> AccountId {
        let unknown = || "org_xxxxxxxxxxxxxxxxxxxx".parse().unwrap();
        from_newest(&self.accounts, number).map_or_else(unknown, |account| account.id)
    }

    fn quote(&self, number: u8) -> Quote {
        from_newest(&self.quotes, number).unwrap_or_else(|| quote(0xff))
    }

    fn new_id(&self) -> AccountId {
        format!("org_{:020}", self.operations).parse().unwrap()
    }

    fn key(&self, number: Option<u8>) -> KeyHash {
        number.and_then(|number| from_newest(&self.keys, number)).unwrap_or(KeyHash::from_bytes([self.operations; 32]))
    }

    /// Makes room for what an operation may make.
    fn prepare(&mut self, operation: &Operation) {
        self.operations += 1;
        if let Operation::Open { email: address, payer, amount, at } = operation {
            let (amount, email) = (TokenUnits::new(u128::from(*amount)), address.map(email));
            let expires_at = at.saturating_add(Duration::from_secs(1_800));
            let (payer, created_at) = (wallet(*payer), *at);
            self.quotes.push(Quote { amount, email, payer, created_at, expires_at, ..quote(self.operations) });
        }
    }

    fn remember(&mut self, operation: &Operation, accounts: Vec<Account>) {
        use Operation::{Claim, Create, ReplaceKey, Rotate};
        self.accounts = accounts;
        if let Create { key, .. } | ReplaceKey { key, .. } | Claim { key, .. } | Rotate { key, .. } = operation {
            self.keys.push(self.key(*key));
        }
    }
}

/// An answer as text, in which one error is like any other.
fn shown<T: Debug>(answer: Result<T, StoreError>) -> String {
    answer.map_or_else(|_| "an error".to_owned(), |answer| format!("{answer:?}"))
}

async fn run(store: &dyn Store, made: &Made, operation: Operation) -> String {
    let most = Credits::from_atoms(i64::MAX);
    match operation {
        Operation::Create { email: address, payer: wallet, key } => {
            let new = NewAccount::new(made.new_id(), "agent".parse().unwrap(), made.key(key), NOON);
            let (email, payer) = (address.map(email), wallet.map(payer));
            shown(store.create_account(NewAccount { email, payer, ..new }).await)
        }
        Operation::Revoke { account } => shown(store.revoke_account(&made.account(account), NOON).await),
        Operation::ReplaceKey { account, key } => {
            shown(store.replace_key(&made.account(account), made.key(key), NOON).await)
        }
        Operation::Open { .. } => shown(store.open_quote(made.quote(0)).await),
        Operation::Claim { quote, tx, key, delivery, too_much, at } => {
            let (mut claim, _) = claim(&made.quote(quote), tx, delivery);
            (claim.account.id, claim.account.key, claim.now) = (made.new_id(), made.key(key), at);
            if too_much {
                claim.account.entries.push(NewLedgerEntry { amount: most, ..grant(1) });
            }
            shown(store.claim_quote(claim).await)
        }
        Operation::Credit { account, quote, tx, assigned, despite_quote, too_much } => {
            let mut credit = credit(&made.account(account), 0, tx);
            credit.payment = payment_of(&made.quote(quote), tx);
            if assigned {
                (credit.used_as, credit.link_payer) = (PaymentUse::Assigned, false);
            }
            if despite_quote {
                credit.quotes = QuotePrecedence::Account;
            }
            if too_much {
                credit.entry.amount = most;
            }
            shown(store.credit_payment(credit).await)
        }
        Operation::Challenge { account, address, nonce: number } => {
            let own = from_newest(&made.accounts, account).and_then(|account| account.payer);
            let address = address.map(wallet).or(own.map(|payer| payer.address)).unwrap_or(wallet(0));
            shown(store.open_challenge(challenge(&made.account(account), address, &nonce(number))).await)
        }
        Operation::Fail { nonce: number } => shown(store.fail_challenge(&nonce(number)).await),
        Operation::Rotate { nonce: number, key, at } => {
            shown(store.rotate_key(&nonce(number), made.key(key), at).await)
        }
        Operation::Scanned { chain, block } => shown(store.set_scan_mark(chain.into(), block.into()).await),
        Operation::Charge { key } => shown(store.commit(vec![charge_of(made.key(Some(key)))], NOON).await),
        Operation::Forget { at } => shown(store.forget_expired(at).await),
    }
}

/// All that a store tells, in an order of its own.
async fn told(store: &dyn Store, made: &Made) -> Result<Vec<String>, StoreError> {
    let mut told = vec![
        format!("{:?}", store.accounts(None, 1_000).await?.items),
        format!("{:?}", store.ledger(None, 1_000).await?.items),
        format!("{:?}", store.payments(None, 1_000).await?.items),
        format!("{:?}", store.live_keys(&made.keys).await?),
        format!("{:?}", store.verify().await?),
    ];
    for quote in &made.quotes {
        told.push(format!("{:?}", store.quote(&quote.nonce).await?));
        for at in [NOON, quote.created_at, quote.honoured_until()] {
            let mut payment = payment_of(quote, tx(9));
            payment.mined_at = at;
            told.push(format!("{:?}", store.quote_paid_by(&payment).await?));
        }
    }
    for number in 0..5 {
        told.push(format!("{:?}", store.payment(&tx(number)).await?));
        told.push(format!("{:?}", store.account_by_payer(&wallet(number)).await?));
        told.push(format!("{:?}", store.linked_accounts(&wallet(number)).await?));
        told.push(format!("{:?}", store.challenge(&nonce(number)).await?));
        told.push(format!("{:?}", store.scan_mark(number.into()).await?));
    }
    Ok(told)
}

async fn agree(operations: Vec<Operation>) {
    let folder = fast_folder();
    let file = folder.path().join("metering.db");
    let openers = [SqliteStore::open(&file).unwrap(), SqliteStore::open(&file).unwrap()];
    let memory = MemoryStore::new();
    let mut made = Made::default();
    for (number, operation) in operations.into_iter().enumerate() {
        made.prepare(&operation);
        let expected = run(&memory, &made, operation.clone()).await;
        let answer = run(&openers[number % 2], &made, operation.clone()).await;
        assert_eq!(answer, expected, "{number}: {operation:?}");
        made.remember(&operation, memory.accounts(None, 1_000).await.unwrap().items);
    }
    assert_eq!(told(&openers[0], &made).await.unwrap(), told(&memory, &made).await.unwrap());
}

proptest! {
    #![proptest_config(Config { cases: 128, failure_persistence: None, ..Config::default() })]

    #[test]
    fn random_payments_agree_with_the_store_in_memory(operations in prop::collection::vec(operation(), 1..100)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(agree(operations));
    }
}
