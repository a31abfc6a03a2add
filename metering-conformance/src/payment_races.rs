//! Contracts for concurrent payments: many tasks on real threads, and each payment counts once.

use std::sync::Arc;

use metering_core::payments::{Challenge, NonceHash, Quote, QuoteState};
use metering_core::store::{
    Claim, Claimed, KeyDelivery, PaymentCredit, PaymentCredited, PaymentStore, QuoteOpened, QuotePrecedence,
};

use super::sale::{
    BONUS, Books, SOLD, buyer, challenge, claim, claimed, credit, credited, late_claim, open, payment_by, payment_of,
    quote, state_of, tx, wallet,
};
use super::scene::{BASE, NOON, Verified, accepted, atoms, balance, charge, customer, new_key, racing, totals};

const TASKS: usize = 50;
/// How often to repeat a race of only two or three tasks.
const ROUNDS: u8 = 20;

/// Makes all claims at once, each in its own task. The results are in the order of the claims.
async fn claim_at_once(store: &Arc<dyn PaymentStore>, claims: Vec<Claim>) -> Vec<Claimed> {
    let tasks: Vec<_> = claims
        .into_iter()
        .map(|claim| {
            let store = Arc::clone(store);
            tokio::spawn(async move { store.claim_quote(claim).await.unwrap() })
        })
        .collect();
    let mut results = Vec::new();
    for task in tasks {
        results.push(task.await.unwrap());
    }
    results
}

/// Makes all credits at once, each in its own task. The results are in no particular order.
async fn credit_at_once(store: &Arc<dyn PaymentStore>, credits: Vec<PaymentCredit>) -> Vec<PaymentCredited> {
    racing(store, credits, |store, credit| async move { store.credit_payment(credit).await.unwrap() }).await
}

/// How many results are an account, and how many are `expected`.
fn made_and(results: &[Claimed], expected: &Claimed) -> (usize, usize) {
    let made = results.iter().filter(|result| matches!(result, Claimed::Account(_))).count();
    (made, results.iter().filter(|result| *result == expected).count())
}

fn credited_count(results: &[PaymentCredited]) -> usize {
    results.iter().filter(|result| matches!(result, PaymentCredited::Account(_))).count()
}

/// 50 claims of one quote race with the same payment: one account, credited once, with one key.
pub async fn concurrent_claims_of_a_quote_create_one_account(store: Verified<dyn PaymentStore>) {
    let quote = open(&*store, quote(1)).await;
    let claims: Vec<Claim> = (0..TASKS).map(|_| claim(&quote, tx(1))).collect();
    let keys: Vec<_> = claims.iter().map(|claim| claim.account.key).collect();
    let results = claim_at_once(&store, claims).await;
    assert_eq!(made_and(&results, &Claimed::AlreadyClaimed), (1, TASKS - 1));
    let books = Books::read(&*store).await;
    assert_eq!(books.counts(), (1, 2, 1));
    assert_eq!(books.accounts[0].totals.balance, atoms(SOLD + BONUS));
    assert!(results.contains(&Claimed::Account(books.accounts[0].clone())));
    let live = store.live_keys(&keys, NOON).await.unwrap();
    let winners = results.iter().map(|result| matches!(result, Claimed::Account(_)));
    assert!(live.iter().copied().eq(winners), "the winner's key is the live one");
}

/// 50 claims race for the key of a quote that the watcher claimed: one gets it.
pub async fn awaited_key_is_delivered_once(store: Arc<dyn PaymentStore>) {
    let quote = open(&*store, quote(1)).await;
    let placeholder = late_claim(&quote, tx(1));
    let mut keys = vec![placeholder.account.key];
    claimed(&*store, placeholder).await;
    let claims: Vec<Claim> = (0..TASKS).map(|_| claim(&quote, tx(1))).collect();
    keys.extend(claims.iter().map(|claim| claim.account.key));
    let results = claim_at_once(&store, claims).await;
    assert_eq!(made_and(&results, &Claimed::AlreadyClaimed), (1, TASKS - 1));
    let live = store.live_keys(&keys, NOON).await.unwrap();
    let winners = results.iter().map(|result| matches!(result, Claimed::Account(_)));
    assert!(live.iter().copied().eq(std::iter::once(false).chain(winners)), "the winner's key is the live one");
    assert_eq!(Books::read(&*store).await.counts(), (1, 2, 1));
}

/// Watcher and owner claim a quote at once: in either order, the owner has the live key and the credits are added once.
pub async fn watcher_and_owner_create_one_account(store: Verified<dyn PaymentStore>) {
    for number in 0..ROUNDS {
        let quote = open(&*store, quote(number)).await;
        let (owners, watchers) = (claim(&quote, tx(number)), late_claim(&quote, tx(number)));
        let keys = [owners.account.key, watchers.account.key];
        let claims = if number % 2 == 0 { vec![owners, watchers] } else { vec![watchers, owners] };
        let mut results = claim_at_once(&store, claims).await;
        let owners = results.remove(usize::from(number % 2));
        let Claimed::Account(account) = owners else { panic!("the owner got no key: {owners:?}") };
        match results.remove(0) {
            Claimed::AlreadyClaimed => {}
            Claimed::Account(made) => assert_eq!(made.id, account.id, "the same account"),
            other => panic!("{other:?}"),
        }
        assert_eq!(store.live_keys(&keys, NOON).await.unwrap(), [true, false]);
        assert_eq!(balance(&*store, &account.id).await, SOLD + BONUS);
        assert_eq!(state_of(&*store, &quote).await, QuoteState::Claimed { account: account.id, tx: tx(number) });
    }
    let rounds = usize::from(ROUNDS);
    assert_eq!(Books::read(&*store).await.counts(), (rounds, 2 * rounds, rounds));
}

/// 50 quotes are claimed with one transaction: it pays for one of them, the others stay open.
pub async fn a_transaction_claims_one_quote(store: Arc<dyn PaymentStore>) {
    let mut quotes = Vec::new();
    for number in 1..=u8::try_from(TASKS).unwrap() {
        quotes.push(open(&*store, quote(number)).await);
    }
    let results = claim_at_once(&store, quotes.iter().map(|quote| claim(quote, tx(1))).collect()).await;
    assert_eq!(made_and(&results, &Claimed::TxUsed), (1, TASKS - 1));
    assert_eq!(Books::read(&*store).await.counts(), (1, 2, 1));
    for (quote, result) in quotes.iter().zip(results) {
        let is_open = store.quote(&quote.nonce).await.unwrap().as_ref() == Some(quote);
        assert_eq!(is_open, result == Claimed::TxUsed, "{result:?}");
    }
}

/// A wallet claims two quotes at once, with two payments: it gets one account, and the other payment stays unused.
pub async fn a_wallet_gets_one_account(store: Verified<dyn PaymentStore>) {
    for number in 0..ROUNDS {
        let payer = wallet(number);
        let first = open(&*store, Quote { payer, ..quote(number) }).await;
        let second = open(&*store, Quote { payer, ..quote(number + 100) }).await;
        let claims = vec![claim(&first, tx(number)), claim(&second, tx(number + 100))];
        assert_eq!(made_and(&claim_at_once(&store, claims).await, &Claimed::PayerTaken), (1, 1));
        let used = [store.payment(&tx(number)).await.unwrap(), store.payment(&tx(number + 100)).await.unwrap()];
        assert_eq!(used.iter().flatten().count(), 1);
    }
    assert_eq!(Books::read(&*store).await.accounts.len(), usize::from(ROUNDS));
}

/// 50 quotes with one email address are claimed at once: all accounts are created, one of them with the address.
pub async fn concurrent_claims_share_no_email(store: Arc<dyn PaymentStore>) {
    let mut claims = Vec::new();
    for number in 1..=u8::try_from(TASKS).unwrap() {
        let email = Some("name@example.com".parse().unwrap());
        let quote = open(&*store, Quote { email, ..quote(number) }).await;
        claims.push(claim(&quote, tx(number)));
    }
    let results = claim_at_once(&store, claims).await;
    assert_eq!(made_and(&results, &Claimed::TxUsed), (TASKS, 0));
    let accounts = Books::read(&*store).await.accounts;
    assert_eq!(accounts.iter().filter(|account| account.email.is_some()).count(), 1);
}

/// An account registers one payment 50 times at once: it is credited once, and the other results report that.
pub async fn a_payment_is_credited_once(store: Verified<dyn PaymentStore>) {
    let customer = customer(&*store, BASE).await;
    let one = PaymentCredit { link_payer: true, ..credit(&customer.id, payment_by(1, tx(1))) };
    let results = credit_at_once(&store, vec![one; TASKS]).await;
    let repeated = results.iter().filter(|result| matches!(result, PaymentCredited::Repeated(..))).count();
    assert_eq!((credited_count(&results), repeated), (1, TASKS - 1));
    assert_eq!(balance(&*store, &customer.id).await, SOLD + BASE);
    assert_eq!(Books::read(&*store).await.counts(), (1, 2, 1));
    assert_eq!(store.linked_accounts(&wallet(1)).await.unwrap(), [customer.id]);
}

/// 50 accounts register one payment at once: one of them gets it.
pub async fn concurrent_credits_of_a_payment_credit_one_account(store: Verified<dyn PaymentStore>) {
    let mut credits = Vec::new();
    for _ in 0..TASKS {
        credits.push(credit(&customer(&*store, BASE).await.id, payment_by(1, tx(1))));
    }
    let results = credit_at_once(&store, credits).await;
    let used = results.iter().filter(|result| **result == PaymentCredited::TxUsed).count();
    assert_eq!((credited_count(&results), used), (1, TASKS - 1));
    let books = Books::read(&*store).await;
    assert_eq!(books.counts(), (TASKS, TASKS + 1, 1));
    let richer = books.accounts.iter().filter(|account| account.totals.balance == atoms(SOLD + BASE)).count();
    assert_eq!(richer, 1);
}

/// A claim and a top-up race for one transaction: exactly one of them gets it. A top-up that gives way to quotes never
/// does.
pub async fn a_claim_and_a_credit_share_no_transaction(store: Verified<dyn PaymentStore>) {
    let customer = customer(&*store, BASE).await;
    let mut made = 0;
    let mut topped_up = 0;
    for number in 0..ROUNDS {
        let quote = open(&*store, quote(number)).await;
        let quotes = if number % 4 == 3 { QuotePrecedence::Quote } else { QuotePrecedence::Account };
        let credit = PaymentCredit { quotes, ..credit(&customer.id, payment_of(&quote, tx(number))) };
        let claim = Claim {
            delivery: if number % 2 == 0 { KeyDelivery::Now } else { KeyDelivery::Later },
            ..claim(&quote, tx(number))
        };
        // Vary which of the two starts first.
        let (claims, credits) = if number % 3 == 0 {
            let (credits, claims) =
                tokio::join!(credit_at_once(&store, vec![credit]), claim_at_once(&store, vec![claim]));
            (claims, credits)
        } else {
            tokio::join!(claim_at_once(&store, vec![claim]), credit_at_once(&store, vec![credit]))
        };
        match (&claims[0], &credits[0], quotes) {
            (Claimed::Account(_), PaymentCredited::TxUsed, _)
            | (Claimed::Account(_), PaymentCredited::BelongsToQuote, QuotePrecedence::Quote) => made += 1,
            (Claimed::TxUsed, PaymentCredited::Account(_), QuotePrecedence::Account) => topped_up += 1,
            other => panic!("both or neither got the transaction: {other:?}"),
        }
    }
    let books = Books::read(&*store).await;
    assert_eq!(books.counts(), (1 + made, 1 + 2 * made + topped_up, usize::from(ROUNDS)));
    let purchased = totals(&*store, &customer.id).await.purchased;
    assert_eq!(purchased, atoms(SOLD * i64::try_from(topped_up).unwrap()));
}

/// Payments and charges of one account race: the totals are exact.
pub async fn payments_and_charges_add_up(store: Verified<dyn PaymentStore>) {
    let customer = customer(&*store, 1_000 * BASE).await;
    racing(&store, 0..u8::try_from(TASKS).unwrap(), |store, number| {
        let customer = customer.clone();
        async move {
            if number % 2 == 0 {
                let credit = credit(&customer.id, payment_by(number, tx(number)));
                credited(&*store, credit).await;
            } else {
                accepted(&*store, charge(customer.key, 3 * BASE), NOON).await;
            }
        }
    })
    .await;
    let totals = totals(&*store, &customer.id).await;
    assert_eq!((totals.purchased, totals.used), (atoms(25 * SOLD), atoms(25 * 3 * BASE)));
    assert_eq!(Books::read(&*store).await.payments.len(), 25);
}

/// 20 rotations with one challenge race: one of them succeeds.
pub async fn a_challenge_rotates_once(store: Arc<dyn PaymentStore>) {
    let owner = buyer(&*store, 1).await;
    store.open_challenge(challenge(&owner.id, wallet(1), "asked")).await.unwrap();
    let keys: Vec<_> = (0..20).map(|_| new_key()).collect();
    let results =
        racing(
            &store,
            keys.clone(),
            |store, key| async move { (key, store.rotate_key("asked", key, NOON).await.unwrap()) },
        )
        .await;
    let winners: Vec<_> = results.iter().filter(|(_, result)| result.is_some()).map(|(key, _)| *key).collect();
    assert_eq!(winners.len(), 1);
    let live = store.live_keys(&keys, NOON).await.unwrap();
    assert!(keys.iter().zip(live).all(|(key, live)| live == winners.contains(key)));
    assert_eq!(store.challenge("asked").await.unwrap(), None);
}

/// Failures race: each is counted, and the last allowed one uses the challenge up.
pub async fn every_failure_is_counted(store: Arc<dyn PaymentStore>) {
    let owner = buyer(&*store, 1).await;
    for (nonce, wrong) in [("four", Challenge::MAX_FAILURES - 1), ("five", Challenge::MAX_FAILURES), ("many", 50)] {
        store.open_challenge(challenge(&owner.id, wallet(1), nonce)).await.unwrap();
        racing(&store, 0..wrong, |store, _| async move { store.fail_challenge(nonce).await.unwrap() }).await;
        let left = store.challenge(nonce).await.unwrap().map(|challenge| challenge.failures);
        assert_eq!(left, (wrong < Challenge::MAX_FAILURES).then_some(wrong), "{nonce}");
    }
}

/// A wallet opens 50 quotes of one amount at once: one of them succeeds.
pub async fn concurrent_quotes_share_no_amount(store: Arc<dyn PaymentStore>) {
    let amount = quote(1).amount;
    let results = racing(&store, 1..=u8::try_from(TASKS).unwrap(), |store, number| {
        let quote = Quote { amount, payer: quote(1).payer, ..quote(number) };
        async move { (quote.nonce, store.open_quote(quote).await.unwrap()) }
    })
    .await;
    let with = |wanted| results.iter().filter(move |(_, result)| *result == wanted).map(|(nonce, _)| *nonce);
    let opened: Vec<NonceHash> = with(QuoteOpened::Opened).collect();
    assert_eq!((opened.len(), with(QuoteOpened::AmountTaken).count()), (1, TASKS - 1));
    for (nonce, _) in &results {
        assert_eq!(store.quote(nonce).await.unwrap().is_some(), opened.contains(nonce));
    }
}

/// Scans are recorded in any order: the mark is the furthest of them.
pub async fn highest_scanned_block_is_the_mark(store: Arc<dyn PaymentStore>) {
    racing(&store, 1..=u64::try_from(TASKS).unwrap(), |store, block| async move {
        store.set_scan_mark(8453, block * 7 % 51).await.unwrap()
    })
    .await;
    assert_eq!(store.scan_mark(8453).await.unwrap(), Some(50));
}
