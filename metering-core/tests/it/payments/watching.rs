//! The watcher: a customer whose client dies after the payment does not lose money.

use std::time::Duration;

use metering_core::chains::{Address, ChainError};
use metering_core::payments::{Plan, UnclaimedPayment};
use metering_core::{Clock, PaymentStore, Store};

use super::chain::FINAL;
use super::scene::{MAIN, RECIPIENT, SIDE, STARTER, Scene, USDC, code, key_of, plan};
use super::wallet::Wallet;

/// Watches until nothing more is settled. Returns the numbers of claimed quotes, credited payments and payments left.
async fn watch(scene: &Scene, chain_id: u64) -> (u32, u32, u32) {
    let mut sum = (0, 0, 0);
    loop {
        let watched = scene.service.payments().watch(chain_id, Some(0)).await.unwrap();
        sum = (sum.0 + watched.claimed, sum.1 + watched.credited, sum.2 + watched.left);
        if watched.up_to_date {
            return sum;
        }
    }
}

#[tokio::test]
async fn a_paid_quote_becomes_an_account_and_the_claim_gives_its_key_out() {
    let scene = Scene::new().await;
    let wallet = Wallet::of(1);
    let quote = scene.quote(&wallet, "starter", MAIN).await.unwrap();
    let hash = scene.pay(&wallet, &quote);
    assert_eq!(watch(&scene, MAIN).await, (1, 0, 0));
    assert_eq!(watch(&scene, MAIN).await, (0, 0, 0));
    let account = scene.store.account_by_payer(&wallet.address).await.unwrap().unwrap();
    assert_eq!(account.totals.balance.to_string(), "12.5");

    let other = scene.main.pay(USDC, wallet.address, RECIPIENT, quote.amount_atomic.parse().unwrap());
    assert_eq!(code(scene.claim(&quote.signup_nonce, other).await), "already_claimed");
    let response = scene.claim(&quote.signup_nonce, hash).await.unwrap();
    assert_eq!(response.org_id, account.id.to_string());
    assert_eq!(scene.balance(&key_of(&response.api_key)).await, "12.5");
    assert_eq!(code(scene.claim(&quote.signup_nonce, hash).await), "already_claimed");
}

#[tokio::test]
async fn the_owner_of_an_unclaimed_account_rotates_instead() {
    let scene = Scene::new().await;
    let wallet = Wallet::of(1);
    let quote = scene.quote(&wallet, "coin", SIDE).await.unwrap();
    let hash = scene.pay(&wallet, &quote);
    assert_eq!(watch(&scene, SIDE).await, (1, 0, 0));
    let rotated = scene.rotate(&wallet).await.unwrap();
    // The nonce is used up: it cannot replace the key again.
    assert_eq!(code(scene.claim(&quote.signup_nonce, hash).await), "already_claimed");
    assert_eq!(scene.balance(&key_of(&rotated.api_key)).await, "6");
}

#[tokio::test]
async fn watcher_credits_payments_of_known_wallets_only() {
    let scene = Scene::new().await;
    let (owner, linked, other_wallet) = (Wallet::of(1), Wallet::of(2), Wallet::of(3));
    let (own_key, _) = scene.customer(&owner, MAIN).await;
    let (key, _) = scene.account_without_wallet().await;
    let first = scene.pay_price(&linked, MAIN);
    let message = scene.top_up(&key, MAIN, first, None).await.unwrap_err().body().message;
    scene.top_up(&key, MAIN, first, Some(linked.sign(&message))).await.unwrap();

    let by_owner = scene.pay_price(&owner, MAIN);
    scene.pay_price(&linked, MAIN);
    scene.pay_price(&other_wallet, MAIN);
    // This is not near any plan's price, so the watcher cannot tell its purpose.
    scene.main.pay(USDC, owner.address, RECIPIENT, 3 * STARTER);
    scene.main.pay(USDC, owner.address, RECIPIENT, STARTER - 1);
    scene.main.grow(10);
    assert_eq!(watch(&scene, MAIN).await, (0, 2, 3));
    assert_eq!(scene.balance(&own_key).await, "23");
    assert_eq!(scene.balance(&key).await, "21");
    // A late top-up learns that the payment is already credited.
    let late = scene.top_up(&own_key, MAIN, by_owner, None).await.unwrap();
    assert_eq!((late.already_credited, late.amount_added.to_string().as_str()), (true, "10.5"));
    assert!(scene.store.verify().await.unwrap().discrepancies.is_empty());
}

#[tokio::test]
async fn a_second_quote_of_a_wallet_that_has_an_account_is_credited_to_it() {
    let scene = Scene::new().await;
    let wallet = Wallet::of(1);
    let quotes =
        [scene.quote(&wallet, "starter", MAIN).await.unwrap(), scene.quote(&wallet, "starter", MAIN).await.unwrap()];
    for quote in &quotes {
        scene.pay(&wallet, quote);
    }
    assert_eq!(watch(&scene, MAIN).await, (1, 1, 0));
    let account = scene.store.account_by_payer(&wallet.address).await.unwrap().unwrap();
    assert_eq!(account.totals.balance.to_string(), "23");
}

#[tokio::test]
async fn unconfirmed_payments_wait_and_errors_lose_none() {
    let scene = Scene::new().await;
    let wallet = Wallet::of(1);
    let quote = scene.quote(&wallet, "starter", MAIN).await.unwrap();
    scene.main.grow(5);
    scene.main.pay(USDC, wallet.address, RECIPIENT, quote.amount_atomic.parse().unwrap());
    assert_eq!(watch(&scene, MAIN).await, (0, 0, 0));
    scene.main.grow(2);
    scene.main.trouble(Some(ChainError::Unavailable("down".into())));
    assert_eq!(code(scene.service.payments().watch(MAIN, Some(0)).await), "rpc_error");
    scene.main.trouble(None);
    assert_eq!(watch(&scene, MAIN).await, (1, 0, 0));
}

#[tokio::test]
async fn long_gap_is_scanned_in_chunks() {
    let scene = Scene::new().await;
    let wallet = Wallet::of(1);
    let quote = scene.quote(&wallet, "starter", MAIN).await.unwrap();
    scene.main.grow(1_700);
    scene.pay(&wallet, &quote);
    let first = scene.service.payments().watch(MAIN, Some(0)).await.unwrap();
    assert_eq!((first.scanned_to, first.up_to_date), (Some(499), false));
    assert_eq!(scene.store.scan_mark(MAIN).await.unwrap(), Some(499));
    assert_eq!(watch(&scene, MAIN).await, (1, 0, 0));
}

/// A quote is settled as quoted, even after its plan was changed or removed.
#[tokio::test]
async fn a_quote_is_settled_after_its_plan_was_changed_or_removed() {
    let scene = Scene::new().await;
    let (first, second) = (Wallet::of(1), Wallet::of(2));
    let tokens = scene.quote(&first, "starter", MAIN).await.unwrap();
    let coins = scene.quote(&second, "coin", MAIN).await.unwrap();
    let moved = Plan { recipient: Some(Wallet::of(9).address), ..plan("starter", MAIN) };
    scene.store.put_plans(vec![moved]).await.unwrap();
    assert!(scene.store.remove_plan(&plan("coin", MAIN).key()).await.unwrap());
    scene.pay(&first, &tokens);
    scene.pay(&second, &coins);
    assert_eq!(watch(&scene, MAIN).await, (2, 0, 0));
    for wallet in [first, second] {
        scene.rotate(&wallet).await.unwrap();
    }
    // The watcher also sees payments that match no quote, and leaves them for the operator.
    scene.pay_price(&Wallet::of(3), MAIN);
    assert_eq!(watch(&scene, MAIN).await, (0, 0, 1));
}

/// They are in the store, so every node has them, also after a restart.
#[tokio::test]
async fn payment_is_unclaimed_until_an_account_has_it_or_a_reorganisation_removes_it() {
    let scene = Scene::new().await;
    let wallet = Wallet::of(2);
    let unclaimed = async || {
        let (payments, count) = scene.store.unclaimed(None, 10).await.unwrap();
        let seen = |payment: UnclaimedPayment| (payment.arrival.tx.hash, payment.seen_at);
        (payments.items.into_iter().map(seen).collect::<Vec<_>>(), count)
    };
    let pay = || scene.main.pay(USDC, wallet.address, RECIPIENT, STARTER);
    let (gone, kept) = (pay(), pay());
    scene.main.grow(10);
    let seen_at = scene.clock.now();
    assert_eq!(watch(&scene, MAIN).await, (0, 0, 2));
    assert_eq!(unclaimed().await, (vec![(kept, seen_at), (gone, seen_at)], 2));
    scene.clock.pass(Duration::from_secs(60));
    scene.main.reorganise(gone);
    watch(&scene, MAIN).await;
    assert_eq!(unclaimed().await, (vec![(kept, seen_at)], 1));
    let (key, _) = scene.account_without_wallet().await;
    let message = scene.top_up(&key, MAIN, kept, None).await.unwrap_err().body().message;
    scene.top_up(&key, MAIN, kept, Some(wallet.sign(&message))).await.unwrap();
    assert_eq!(unclaimed().await, (vec![], 0));
}

/// A source may omit a payment that it had before, and another process may look for other recipients and tokens.
#[tokio::test]
async fn payment_that_a_scan_no_longer_finds_in_its_block_stays_unclaimed() {
    let scene = Scene::new().await;
    let pay = || scene.main.pay(USDC, Wallet::of(2).address, RECIPIENT, STARTER);
    let (kept, gone) = (pay(), pay());
    scene.main.grow(10);
    assert_eq!(watch(&scene, MAIN).await, (0, 0, 2));
    assert!(scene.store.remove_plan(&plan("starter", MAIN).key()).await.unwrap());
    // The block of the first is not replaced, but scanned again.
    scene.main.reorganise(gone);
    watch(&scene, MAIN).await;
    let (unclaimed, count) = scene.store.unclaimed(None, 10).await.unwrap();
    assert_eq!((unclaimed.items[0].arrival.tx.hash, count), (kept, 1));
}

/// The tags of a native coin are small compared to its price, whatever a hundredth of the coin is worth.
#[tokio::test]
async fn amount_between_two_plan_prices_is_left_for_its_payer() {
    let scene = Scene::new().await;
    let owner = Wallet::of(1);
    scene.customer(&owner, MAIN).await;
    let price = 2_500_000_000_000_000;
    // amount, whether it can be for the plan
    let table =
        [(price, true), (price + 2_500_000_000_000, true), (price + 12_500_000_000_000, false), (5 * price, false)];
    for (amount, credited) in table {
        scene.main.pay(Address::ZERO, owner.address, RECIPIENT, amount);
        scene.main.grow(10);
        assert_eq!(watch(&scene, MAIN).await, (0, u32::from(credited), u32::from(!credited)), "{amount}");
    }
}

fn too_large() -> ChainError {
    ChainError::Unreadable("node: the response is larger than 16777216 bytes".to_owned())
}

#[tokio::test]
async fn one_arrival_that_cannot_be_read_does_not_stop_the_rest() {
    let scene = Scene::new().await;
    let (spammer, wallet) = (Wallet::of(1), Wallet::of(2));
    let spam = scene.main.pay(USDC, spammer.address, RECIPIENT, 1);
    scene.main.spoil(spam, Some(too_large()));
    let quote = scene.quote(&wallet, "starter", MAIN).await.unwrap();
    scene.pay(&wallet, &quote);

    // Its block is final, so the scan mark must move past it.
    scene.main.grow(FINAL);
    let watched = scene.service.payments().watch(MAIN, Some(0)).await.unwrap();
    assert_eq!((watched.claimed, watched.unreadable, watched.held, watched.up_to_date), (1, 1, false, true));
    assert!(scene.store.scan_mark(MAIN).await.unwrap() > Some(1));
    let [recorded] = &*scene.store.unreadable(MAIN, 0, 10).await.unwrap() else { panic!("one arrival is recorded") };
    assert_eq!((recorded.location.hash, recorded.location.block_number, recorded.attempts), (Some(spam), 1, 1));
    assert!(recorded.reason.contains("larger than"), "{recorded:?}");

    // It is retried a few more times with backoff, then abandoned; the scan mark does not change.
    let looks = |scene: &Scene| scene.main.looked_at();
    let before = looks(&scene);
    assert_eq!(scene.service.payments().watch(MAIN, None).await.unwrap().unreadable, 0);
    assert_eq!(looks(&scene), before, "it is not due yet");
    for wait in [30, 120, 480, 1_920] {
        scene.clock.pass(Duration::from_secs(wait));
        scene.service.payments().watch(MAIN, None).await.unwrap();
    }
    let [given_up] = &*scene.store.unreadable(MAIN, 0, 10).await.unwrap() else { panic!("the arrival stays recorded") };
    assert_eq!((given_up.attempts, given_up.next_attempt_at), (5, None));
    let before = looks(&scene);
    scene.clock.pass(Duration::from_secs(1_000_000));
    scene.service.payments().watch(MAIN, None).await.unwrap();
    assert_eq!(looks(&scene), before);
}

#[tokio::test]
async fn arrival_read_on_the_second_attempt_is_credited() {
    let scene = Scene::new().await;
    let wallet = Wallet::of(1);
    let quote = scene.quote(&wallet, "starter", MAIN).await.unwrap();
    let hash = scene.pay(&wallet, &quote);
    scene.main.spoil(hash, Some(too_large()));
    assert_eq!(scene.service.payments().watch(MAIN, Some(0)).await.unwrap().unreadable, 1);
    assert_eq!(code(scene.claim(&quote.signup_nonce, hash).await), "rpc_error");
    scene.main.spoil(hash, None);
    scene.clock.pass(Duration::from_secs(30));
    let watched = scene.service.payments().watch(MAIN, None).await.unwrap();
    assert_eq!((watched.claimed, watched.unreadable), (1, 0));
    assert_eq!(scene.store.unreadable(MAIN, 0, 10).await.unwrap(), []);
}

#[tokio::test]
async fn transient_errors_hold_the_scan_for_a_limited_time() {
    let scene = Scene::new().await;
    let (first, second) = (Wallet::of(1), Wallet::of(2));
    let quotes =
        [scene.quote(&first, "starter", MAIN).await.unwrap(), scene.quote(&second, "starter", MAIN).await.unwrap()];
    let slow = scene.pay(&first, &quotes[0]);
    scene.pay(&second, &quotes[1]);
    scene.main.spoil(slow, Some(ChainError::Unavailable("timed out".to_owned())));
    for round in 0..2 {
        let watched = scene.service.payments().watch(MAIN, Some(0)).await.unwrap();
        assert!(watched.held && !watched.up_to_date, "{watched:?}");
        assert_eq!(watched.claimed, u32::from(round == 0), "the other payment is credited meanwhile");
        assert_eq!(scene.store.scan_mark(MAIN).await.unwrap(), None);
    }
    let watched = scene.service.payments().watch(MAIN, Some(0)).await.unwrap();
    assert_eq!((watched.held, watched.unreadable), (false, 1));
    assert!(scene.store.scan_mark(MAIN).await.unwrap().is_some());
    scene.main.spoil(slow, None);
    scene.clock.pass(Duration::from_secs(30));
    assert_eq!(scene.service.payments().watch(MAIN, None).await.unwrap().claimed, 1);
}

#[tokio::test]
async fn unreadable_chain_holds_the_scan_and_records_nothing() {
    let scene = Scene::new().await;
    let wallet = Wallet::of(1);
    let quote = scene.quote(&wallet, "starter", MAIN).await.unwrap();
    let hash = scene.pay(&wallet, &quote);
    scene.main.spoil(hash, Some(too_large()));
    scene.service.payments().watch(MAIN, Some(0)).await.unwrap();
    scene.pay_price(&Wallet::of(2), MAIN);
    let mark = scene.store.scan_mark(MAIN).await.unwrap();
    scene.main.trouble(Some(ChainError::Unavailable("down".to_owned())));
    scene.clock.pass(Duration::from_secs(3_600));
    for _ in 0..10 {
        assert_eq!(code(scene.service.payments().watch(MAIN, None).await), "rpc_error");
    }
    assert_eq!(scene.store.scan_mark(MAIN).await.unwrap(), mark);
    let [recorded] = &*scene.store.unreadable(MAIN, 0, 10).await.unwrap() else { panic!("one arrival is recorded") };
    assert_eq!(recorded.attempts, 1, "an outage does not count as an attempt");
}
