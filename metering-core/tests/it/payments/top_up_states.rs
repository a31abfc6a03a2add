//! Top-up quotes after something went wrong: paid too late, reversed by a reorganisation, dropped by the chain, or left
//! without a plan.

use std::time::Duration;

use metering_core::chains::{Address, ChainError, TokenUnits, TxHash};
use metering_core::payments::{Plan, PlanKey, Quote};
use metering_core::wire::TopUpQuoteDocument;
use metering_core::{ApiKey, PaymentStore, Store};

use super::scene::{MAIN, NATIVE, RECIPIENT, Scene, USDC, code, plan};
use super::wallet::Wallet;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// The confirmations that crediting needs on the main chain.
const CONFIRMATIONS: u64 = 3;
/// A token with three decimals: its prices have two amounts for top-ups.
const COARSE: Address = Address::from_bytes([0x71; 20]);

/// A scene that also sells the plan `coarse`, at 5.000 of a token with three decimals.
async fn coarse_scene() -> Scene {
    let scene = Scene::new().await;
    scene.main.deploy_token(COARSE, 3);
    let coarse = Plan { id: "coarse".to_owned(), token_contract: COARSE, token_decimals: 3, ..plan("starter", MAIN) };
    scene.store.put_plans(vec![coarse]).await.unwrap();
    scene
}

async fn look(scene: &Scene, key: &ApiKey, quote: &TopUpQuoteDocument) -> TopUpQuoteDocument {
    tokio::time::advance(Duration::from_secs(3)).await;
    scene.service.payments().top_up_quote_by_id(Some(key), &quote.quote_id).await.unwrap()
}

async fn status(scene: &Scene, key: &ApiKey, quote: &TopUpQuoteDocument) -> String {
    format!("{:?}", look(scene, key, quote).await.status)
}

fn send(scene: &Scene, wallet: &Wallet, quote: &TopUpQuoteDocument) -> TxHash {
    let token = quote.token_contract.parse().unwrap();
    scene.main.pay(token, wallet.address, RECIPIENT, quote.amount_atomic.parse().unwrap())
}

async fn watch(scene: &Scene) -> (u32, u32) {
    let watched = scene.service.payments().watch(MAIN, Some(0)).await.unwrap();
    (watched.credited, watched.left)
}

async fn settle_until_reversed(scene: &Scene) {
    for _ in 0..CONFIRMATIONS {
        scene.service.payments().settle(MAIN).await.unwrap();
        scene.main.grow(1);
    }
    assert_eq!(scene.service.payments().settle(MAIN).await.unwrap().reversed, 1);
}

/// A quote that was paid and credited, and whose payment a reorganisation then removed.
async fn reversed(scene: &Scene) -> (ApiKey, TopUpQuoteDocument, TxHash) {
    let (key, _) = scene.account_without_wallet().await;
    let quote = scene.top_up_quote(&key, "starter", MAIN).await.unwrap();
    let hash = send(scene, &Wallet::of(1), &quote);
    scene.main.grow(CONFIRMATIONS - 1);
    assert_eq!(status(scene, &key, &quote).await, "Paid");
    scene.main.reorganise(hash);
    settle_until_reversed(scene).await;
    assert_eq!(scene.balance(&key).await, "0");
    (key, quote, hash)
}

/// A customer pays an old quote, days after its amount was last honoured. Others request quotes all the while.
#[tokio::test]
async fn late_payment_is_never_credited_to_another_account() {
    let scene = coarse_scene().await;
    let (late, _) = scene.account_without_wallet().await;
    let first = scene.top_up_quote(&late, "coarse", MAIN).await.unwrap();
    let mut others = Vec::new();
    for wait in [2, 7, 18] {
        scene.clock.pass(DAY * wait);
        let (other, _) = scene.account_without_wallet().await;
        for _ in 0..8 {
            let asked = scene.top_up_quote(&other, "coarse", MAIN).await;
            match &asked {
                Ok(theirs) => assert_ne!(theirs.amount_atomic, first.amount_atomic),
                Err(_) => assert_eq!(code(asked), "quotes_exhausted"),
            }
        }
        others.push(other);
    }
    send(&scene, &Wallet::of(1), &first);
    scene.main.grow(10);
    assert_eq!(watch(&scene).await, (0, 1), "it is left for its payer");
    for key in others.iter().chain([&late]) {
        assert_eq!(scene.balance(key).await, "0");
    }
    // A month after it was last honoured, the amount is free.
    scene.clock.pass(DAY * 5);
    let (last, _) = scene.account_without_wallet().await;
    assert_eq!(scene.top_up_quote(&last, "coarse", MAIN).await.unwrap().amount_atomic, first.amount_atomic);
}

/// The second payment is late too: months of transfers to a saved address and amount.
#[tokio::test]
async fn amount_of_a_paid_quote_is_not_given_to_another_account() {
    let scene = coarse_scene().await;
    let (own, _) = scene.account_without_wallet().await;
    let (other, _) = scene.account_without_wallet().await;
    let first = scene.top_up_quote(&own, "coarse", MAIN).await.unwrap();
    scene.pay_top_up(Wallet::of(1).address, &first);
    assert_eq!(watch(&scene).await, (1, 0));
    scene.clock.pass(DAY * 10);
    let theirs = scene.top_up_quote(&other, "coarse", MAIN).await.unwrap();
    assert_ne!(theirs.amount_atomic, first.amount_atomic);
    scene.pay_top_up(Wallet::of(1).address, &first);
    assert_eq!(watch(&scene).await, (0, 1));
    assert_eq!((scene.balance(&own).await.as_str(), scene.balance(&other).await.as_str()), ("10.5", "0"));
}

/// So an account that opens the page every other day holds one amount, not one for each visit.
#[tokio::test]
async fn account_gets_its_own_amount_again() {
    let scene = Scene::new().await;
    let (key, id) = scene.account_without_wallet().await;
    let first = scene.top_up_quote(&key, "starter", MAIN).await.unwrap();
    for _ in 0..5 {
        scene.clock.pass(DAY * 2);
        let again = scene.top_up_quote(&key, "starter", MAIN).await.unwrap();
        assert_ne!(again.quote_id, first.quote_id);
        assert_eq!(again.amount_atomic, first.amount_atomic);
    }
    // A late payment of the first quote pays the newest one.
    send(&scene, &Wallet::of(1), &first);
    scene.main.grow(10);
    assert_eq!(watch(&scene).await, (1, 0));
    let paid = scene.store.top_up_quotes(&id).await.unwrap();
    let open: Vec<bool> = paid.iter().map(|quote| quote.state.tx().is_none()).collect();
    assert_eq!(open, [true, true, true, true, true, false]);
    assert_eq!(scene.balance(&key).await, "10.5");
}

/// Quotes from before amounts without a zero at the end are still paid, but their amounts are not issued again.
#[tokio::test]
async fn old_amount_that_ends_in_a_zero_is_still_credited() {
    let scene = Scene::new().await;
    let (key, id) = scene.account_without_wallet().await;
    scene.top_up_quote(&key, "starter", MAIN).await.unwrap();
    let template = scene.store.top_up_quotes(&id).await.unwrap().remove(0);
    let nonce = metering_core::payments::NonceHash::from_bytes([7; 32]);
    let created_at = template.created_at.saturating_add(Duration::from_secs(60));
    let old = Quote { nonce, amount: TokenUnits::new(5_003_820), created_at, ..template };
    scene.store.open_quote(old.clone()).await.unwrap();
    scene.clock.pass(Duration::from_secs(120));
    let current = scene.top_up_quote(&key, "starter", MAIN).await.unwrap();
    assert_eq!(current.amount_atomic, "5003820", "it is open, so it is returned");
    send(&scene, &Wallet::of(1), &current);
    scene.main.grow(10);
    assert_eq!(watch(&scene).await, (1, 0));
    scene.clock.pass(DAY * 3);
    let next = scene.top_up_quote(&key, "starter", MAIN).await.unwrap();
    assert_ne!(next.amount_atomic, "5003820");
    assert!(!next.amount_human.unwrap().ends_with('0'));
}

#[tokio::test(start_paused = true)]
async fn status_says_that_a_payment_was_reversed_and_is_back() {
    let scene = Scene::new().await;
    let (key, quote, hash) = reversed(&scene).await;
    let seen = look(&scene, &key, &quote).await;
    assert_eq!((format!("{:?}", seen.status).as_str(), seen.tx_hash), ("Reversed", Some(hash.to_string())));
    assert!(seen.notice.contains("A reorganisation of the chain removed the payment"), "{}", seen.notice);
    assert!(seen.receipt_number.is_some(), "the receipt exists, and is unchanged");
    // The same transaction is mined again: seen, then credited once, by the first that looks.
    scene.main.mine_again(hash);
    let back = look(&scene, &key, &quote).await;
    assert_eq!((format!("{:?}", back.status).as_str(), back.confirmations), ("Seen", Some(1)));
    assert_eq!(scene.balance(&key).await, "0");
    scene.main.grow(CONFIRMATIONS - 1);
    assert_eq!(status(&scene, &key, &quote).await, "Paid");
    assert_eq!(scene.balance(&key).await, "10.5");
    scene.service.payments().settle(MAIN).await.unwrap();
    watch(&scene).await;
    assert!(scene.top_up(&key, MAIN, hash, None).await.unwrap().already_credited);
    assert_eq!(scene.balance(&key).await, "10.5");
    assert!(scene.store.verify().await.unwrap().discrepancies.is_empty());
}

#[tokio::test(start_paused = true)]
async fn reversed_payment_is_restored_by_the_watcher_alone() {
    let scene = Scene::new().await;
    let (key, quote, hash) = reversed(&scene).await;
    scene.main.mine_again(hash);
    scene.main.grow(CONFIRMATIONS - 1);
    assert_eq!(scene.service.payments().settle(MAIN).await.unwrap().restored, 1);
    assert_eq!(status(&scene, &key, &quote).await, "Paid");
    assert_eq!(scene.balance(&key).await, "10.5");
}

/// The wallet sent the payment again with a higher fee, or the customer did: another transaction with the same amount.
#[tokio::test(start_paused = true)]
async fn another_payment_of_a_reversed_quote_is_credited_once() {
    for by_watcher in [true, false] {
        let scene = Scene::new().await;
        let (key, quote, first) = reversed(&scene).await;
        let second = send(&scene, &Wallet::of(2), &quote);
        assert_eq!(status(&scene, &key, &quote).await, "Seen");
        scene.main.grow(CONFIRMATIONS - 1);
        if by_watcher {
            assert_eq!(watch(&scene).await, (1, 0));
        }
        let paid = look(&scene, &key, &quote).await;
        assert_eq!((format!("{:?}", paid.status).as_str(), paid.tx_hash), ("Paid", Some(second.to_string())));
        assert_eq!(scene.balance(&key).await, "10.5");
        assert_eq!(watch(&scene).await.0, 0);
        assert!(scene.top_up(&key, MAIN, second, None).await.unwrap().already_credited);
        assert_eq!(scene.balance(&key).await, "10.5", "by the watcher: {by_watcher}");
        // A third payment finds the quote used up, as usual.
        send(&scene, &Wallet::of(3), &quote);
        scene.main.grow(CONFIRMATIONS);
        assert_eq!(watch(&scene).await, (0, 1));
        // If the first payment is mined after all, two payments have arrived, and each counts once.
        scene.main.mine_again(first);
        scene.main.grow(CONFIRMATIONS);
        assert_eq!(scene.service.payments().settle(MAIN).await.unwrap().restored, 1);
        assert_eq!(scene.balance(&key).await, "21");
        assert_eq!(look(&scene, &key, &quote).await.tx_hash, Some(second.to_string()));
        assert!(scene.store.verify().await.unwrap().discrepancies.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_else_gets_the_payment_that_a_reversed_quote_waits_for() {
    let scene = Scene::new().await;
    let exchange = Wallet::of(5);
    let (thief, _) = scene.customer(&exchange, MAIN).await;
    let (key, quote, _) = reversed(&scene).await;
    let hash = send(&scene, &exchange, &quote);
    scene.main.grow(CONFIRMATIONS - 1);
    assert_eq!(code(scene.top_up(&thief, MAIN, hash, None).await), "payment_reserved");
    assert_eq!(scene.top_up(&key, MAIN, hash, None).await.unwrap().amount_added.to_string(), "10.5");
}

/// The payer replaced the payment before it was confirmed: it never comes back, and nothing is credited.
#[tokio::test(start_paused = true)]
async fn dropped_payment_leaves_the_quote_waiting_and_credits_nothing() {
    let scene = Scene::new().await;
    let (key, _) = scene.account_without_wallet().await;
    let quote = scene.top_up_quote(&key, "starter", MAIN).await.unwrap();
    let dropped = send(&scene, &Wallet::of(1), &quote);
    scene.main.grow(CONFIRMATIONS - 2);
    let seen = look(&scene, &key, &quote).await;
    assert_eq!((format!("{:?}", seen.status).as_str(), seen.confirmations), ("Seen", Some(2)));
    scene.main.reorganise(dropped);
    scene.main.grow(20);
    let waiting = look(&scene, &key, &quote).await;
    assert_eq!(format!("{:?}", waiting.status), "Open");
    assert_eq!((waiting.tx_hash, waiting.confirmations, waiting.receipt_number), (None, None, None));
    assert_eq!(watch(&scene).await, (0, 0));
    assert_eq!(scene.service.payments().settle(MAIN).await.unwrap().reversed, 0);
    assert_eq!(scene.balance(&key).await, "0");
    assert_eq!(scene.store.ledger(None, 10).await.unwrap().items.len(), 0);
    // The payment that replaced it pays the same quote, once.
    let second = send(&scene, &Wallet::of(1), &quote);
    scene.main.grow(CONFIRMATIONS - 1);
    let paid = look(&scene, &key, &quote).await;
    assert_eq!((format!("{:?}", paid.status).as_str(), paid.tx_hash), ("Paid", Some(second.to_string())));
    assert_eq!(watch(&scene).await, (0, 0));
    assert_eq!(scene.balance(&key).await, "10.5");
}

#[tokio::test(start_paused = true)]
async fn status_needs_no_plan() {
    let scene = Scene::new().await;
    let (key, _) = scene.account_without_wallet().await;
    let mut quotes = Vec::new();
    for id in ["starter", "coin"] {
        quotes.push(scene.top_up_quote(&key, id, MAIN).await.unwrap());
    }
    for (id, chain_id) in scene.store.plans().await.unwrap().into_iter().map(|plan| (plan.id, plan.chain_id)) {
        assert!(scene.store.remove_plan(&PlanKey { chain_id, id }).await.unwrap());
    }
    for (quote, token, decimals) in [(&quotes[0], USDC, 6), (&quotes[1], NATIVE, 18)] {
        let seen = look(&scene, &key, quote).await;
        assert_eq!(format!("{:?}", seen.status), "Open");
        assert_eq!((&seen.recipient, &seen.amount_atomic), (&quote.recipient, &quote.amount_atomic));
        assert_eq!((&seen.payment_uri, seen.payment_kind), (&quote.payment_uri, quote.payment_kind));
        assert_eq!((seen.token_contract, seen.token_symbol), (token.to_string(), None));
        assert_eq!((seen.token_decimals, &seen.amount_human), (Some(decimals), &quote.amount_human), "from the chain");
    }
    // It can still be paid, and its status shows that. The sold credits are stored with the payment.
    send(&scene, &Wallet::of(1), &quotes[0]);
    scene.main.grow(CONFIRMATIONS - 1);
    assert_eq!(status(&scene, &key, &quotes[0]).await, "Paid");
    assert_eq!(scene.balance(&key).await, "10.5");
    scene.main.trouble(Some(ChainError::Unavailable("down".to_owned())));
    let seen = look(&scene, &key, &quotes[1]).await;
    assert_eq!((seen.token_decimals, seen.amount_human), (Some(18), quotes[1].amount_human.clone()), "a coin has 18");
}
