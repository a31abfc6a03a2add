//! Top-up quotes: an exact amount that any wallet may pay, credited to the account that requested it and to no other.

use std::collections::BTreeSet;
use std::time::Duration;

use metering_core::PaymentStore;
use metering_core::chains::Address;
use metering_core::payments::Quote;
use metering_core::wire::TopUpQuoteStatus;

use super::scene::{COIN, MAIN, NATIVE, RECIPIENT, SIDE, STARTER, Scene, USDC, code};
use super::wallet::Wallet;

const HALF_HOUR: Duration = Duration::from_secs(30 * 60);

async fn credited_by_the_watcher(scene: &Scene, chain_id: u64) -> (u32, u32, u32) {
    let watched = scene.service.payments().watch(chain_id, Some(0)).await.unwrap();
    assert!(watched.up_to_date);
    (watched.claimed, watched.credited, watched.left)
}

#[tokio::test]
async fn payment_from_an_unknown_wallet_is_credited_by_the_watcher() {
    let scene = Scene::new().await;
    let (key, _) = scene.account_without_wallet().await;
    for (plan, chain_id, price, balance) in [("starter", MAIN, STARTER, "10.5"), ("coin", SIDE, COIN, "14.5")] {
        let quote = scene.top_up_quote(&key, plan, chain_id).await.unwrap();
        let amount: u128 = quote.amount_atomic.parse().unwrap();
        assert!(amount > price && amount < price + price / 500, "{amount}");
        assert_eq!(quote.status, TopUpQuoteStatus::Open);
        let hash = scene.pay_top_up(Wallet::of(9).address, &quote);
        assert_eq!(credited_by_the_watcher(&scene, chain_id).await, (0, 1, 0));
        assert_eq!(scene.balance(&key).await, balance);
        let paid = scene.service.payments().top_up_quote_by_id(Some(&key), &quote.quote_id).await.unwrap();
        assert_eq!((paid.status, paid.tx_hash), (TopUpQuoteStatus::Paid, Some(hash.to_string())));
        let receipt = scene.service.payments().receipt(Some(&key), &paid.receipt_number.unwrap()).await.unwrap();
        assert_eq!(receipt.payment.payer, Wallet::of(9).address.to_checksummed());
    }
    assert_eq!(code(scene.rotate(&Wallet::of(9)).await), "no_linked_wallet", "paying links no wallet");
}

#[tokio::test]
async fn own_payment_is_registered_without_a_signature() {
    let scene = Scene::new().await;
    let (key, _) = scene.account_without_wallet().await;
    let quote = scene.top_up_quote(&key, "starter", MAIN).await.unwrap();
    let contract = Address::from_bytes([0x99; 20]);
    scene.main.deploy_contract(contract);
    let hash = scene.pay_top_up(contract, &quote);
    assert_eq!(scene.top_up(&key, MAIN, hash, None).await.unwrap().amount_added.to_string(), "10.5");
    assert!(scene.top_up(&key, MAIN, hash, None).await.unwrap().already_credited);
    assert_eq!(credited_by_the_watcher(&scene, MAIN).await, (0, 0, 0));
    assert_eq!(scene.balance(&key).await, "10.5");
}

/// An exchange pays for many people from one wallet. One of them has an account that this wallet paid for.
#[tokio::test]
async fn account_of_a_shared_wallet_cannot_take_the_payment() {
    let scene = Scene::new().await;
    let exchange = Wallet::of(1);
    let (thief, _) = scene.customer(&exchange, MAIN).await;
    let (victim, _) = scene.account_without_wallet().await;
    let quote = scene.top_up_quote(&victim, "starter", MAIN).await.unwrap();
    let hash = scene.pay_top_up(exchange.address, &quote);
    assert_eq!(code(scene.top_up(&thief, MAIN, hash, None).await), "payment_reserved");
    credited_by_the_watcher(&scene, MAIN).await;
    assert_eq!((scene.balance(&victim).await.as_str(), scene.balance(&thief).await.as_str()), ("10.5", "12.5"));
    assert_eq!(code(scene.top_up(&thief, MAIN, hash, None).await), "tx_already_used");
}

#[tokio::test]
async fn linked_account_cannot_take_the_payment_but_the_payers_signature_can() {
    let scene = Scene::new().await;
    let sponsor = Wallet::of(1);
    let (linked, _) = scene.account_without_wallet().await;
    let first = scene.pay_price(&sponsor, MAIN);
    let message = scene.top_up(&linked, MAIN, first, None).await.unwrap_err().body().message;
    scene.top_up(&linked, MAIN, first, Some(sponsor.sign(&message))).await.unwrap();

    let (other, _) = scene.account_without_wallet().await;
    let quote = scene.top_up_quote(&other, "starter", MAIN).await.unwrap();
    let hash = scene.pay_top_up(sponsor.address, &quote);
    assert_eq!(code(scene.top_up(&linked, MAIN, hash, None).await), "payment_reserved");
    let (third, _) = scene.account_without_wallet().await;
    let message = scene.top_up(&third, MAIN, hash, None).await.unwrap_err().body().message;
    let stolen = Wallet::of(2).sign(&message);
    assert_eq!(code(scene.top_up(&third, MAIN, hash, Some(stolen)).await), "payer_proof_required");
    scene.top_up(&third, MAIN, hash, Some(sponsor.sign(&message))).await.unwrap();
    assert_eq!(credited_by_the_watcher(&scene, MAIN).await, (0, 0, 0));
    assert_eq!(scene.balance(&other).await, "0");
}

/// Signup quotes may be requested in anyone's name. However many there are, none takes the payment of a top-up.
#[tokio::test]
async fn signup_quotes_in_the_payers_name_never_match() {
    let scene = Scene::new().await;
    let (key, _) = scene.account_without_wallet().await;
    let victim = Wallet::of(1);
    for _ in 0..300 {
        let quote = scene.quote(&victim, "starter", MAIN).await.unwrap();
        assert_ne!(quote.amount_atomic.parse::<u128>().unwrap() % 4, 0);
    }
    let quote = scene.top_up_quote(&key, "starter", MAIN).await.unwrap();
    assert_eq!(quote.amount_atomic.parse::<u128>().unwrap() % 4, 0);
    scene.pay_top_up(victim.address, &quote);
    assert_eq!(credited_by_the_watcher(&scene, MAIN).await, (0, 1, 0));
    assert_eq!(scene.balance(&key).await, "10.5");
}

#[tokio::test]
async fn second_payment_of_the_amount_is_left_for_its_payer() {
    let scene = Scene::new().await;
    let (key, _) = scene.account_without_wallet().await;
    let (wallet, other) = (Wallet::of(1), Wallet::of(2));
    let quote = scene.top_up_quote(&key, "starter", MAIN).await.unwrap();
    scene.pay_top_up(wallet.address, &quote);
    let second = scene.pay_top_up(other.address, &quote);
    assert_eq!(credited_by_the_watcher(&scene, MAIN).await, (0, 1, 1));
    let message = scene.top_up(&key, MAIN, second, None).await.unwrap_err().body().message;
    scene.top_up(&key, MAIN, second, Some(other.sign(&message))).await.unwrap();
    assert_eq!(scene.balance(&key).await, "21");
}

#[tokio::test]
async fn quote_is_returned_again_while_it_lasts_and_honoured_for_a_day() {
    let scene = Scene::new().await;
    let (key, id) = scene.account_without_wallet().await;
    let first = scene.top_up_quote(&key, "starter", MAIN).await.unwrap();
    let amount = |quote: &metering_core::wire::TopUpQuoteDocument| quote.amount_atomic.clone();
    scene.clock.pass(HALF_HOUR / 2);
    let again = scene.top_up_quote(&key, "starter", MAIN).await.unwrap();
    assert_eq!((again.quote_id.as_str(), amount(&again)), (first.quote_id.as_str(), amount(&first)));
    assert_ne!(scene.top_up_quote(&key, "coin", MAIN).await.unwrap().quote_id, first.quote_id);
    scene.clock.pass(HALF_HOUR / 2);
    let second = scene.top_up_quote(&key, "starter", MAIN).await.unwrap();
    assert_ne!(amount(&second), amount(&first), "an expired amount is still reserved");

    scene.clock.pass(Quote::TOP_UP_GRACE - HALF_HOUR);
    scene.pay_top_up(Wallet::of(1).address, &first);
    assert_eq!(credited_by_the_watcher(&scene, MAIN).await, (0, 1, 0));
    scene.clock.pass(HALF_HOUR * 2 + Duration::from_secs(1));
    scene.pay_top_up(Wallet::of(1).address, &second);
    assert_eq!(credited_by_the_watcher(&scene, MAIN).await, (0, 0, 1), "a day after its expiry");
    let left = scene.store.top_up_quotes(&id).await.unwrap();
    assert_eq!(left.len(), 3);
}

#[tokio::test]
async fn account_has_a_bounded_number_of_unpaid_quotes() {
    let scene = Scene::new().await;
    let (key, _) = scene.account_without_wallet().await;
    let mut amounts = BTreeSet::new();
    for _ in 0..Quote::MAX_TOP_UPS {
        let quote = scene.top_up_quote(&key, "starter", MAIN).await.unwrap();
        assert!(amounts.insert(quote.amount_atomic), "every amount is another one");
        scene.clock.pass(HALF_HOUR);
    }
    let refused = scene.top_up_quote(&key, "starter", MAIN).await.unwrap_err().body();
    assert!(refused.message.starts_with("This account has 16 unpaid top-up quotes"), "{}", refused.message);
    let (other, _) = scene.account_without_wallet().await;
    scene.top_up_quote(&other, "starter", MAIN).await.unwrap();
    // The retry time is the oldest quote's, and one amount is free then.
    let wait = Duration::from_secs(refused.retry_after_sec.unwrap());
    assert!(wait < Duration::from_secs(24 * 60 * 60), "{wait:?}");
    scene.clock.pass(wait - Duration::from_secs(1));
    assert_eq!(code(scene.top_up_quote(&key, "starter", MAIN).await), "quotes_exhausted");
    scene.clock.pass(Duration::from_secs(1));
    scene.top_up_quote(&key, "starter", MAIN).await.unwrap();
    assert_eq!(code(scene.top_up_quote(&key, "coin", MAIN).await), "quotes_exhausted");
}

#[tokio::test]
async fn only_the_account_sees_its_quote_and_its_confirmations() {
    let scene = Scene::new().await;
    let (key, _) = scene.account_without_wallet().await;
    let (other, _) = scene.account_without_wallet().await;
    let quote = scene.top_up_quote(&key, "coin", MAIN).await.unwrap();
    for id in [quote.quote_id.as_str(), "tuq_00", "", "sqn_x"] {
        assert_eq!(code(scene.service.payments().top_up_quote_by_id(Some(&other), id).await), "not_found", "{id}");
    }
    assert_eq!(code(scene.service.payments().top_up_quote_by_id(None, &quote.quote_id).await), "unauthorized");
    let hash = scene.main.pay(NATIVE, Wallet::of(1).address, RECIPIENT, quote.amount_atomic.parse().unwrap());
    let seen = scene.service.payments().top_up_quote_by_id(Some(&key), &quote.quote_id).await.unwrap();
    assert_eq!(seen.status, TopUpQuoteStatus::Seen);
    assert_eq!((seen.confirmations, seen.required, seen.tx_hash), (Some(1), 3, Some(hash.to_string())));
    assert_eq!(scene.balance(&key).await, "0", "seeing a payment credits nothing");
}

#[tokio::test]
async fn quote_keeps_its_terms_when_the_plan_changes() {
    let scene = Scene::new().await;
    let (key, _) = scene.account_without_wallet().await;
    let quote = scene.top_up_quote(&key, "starter", MAIN).await.unwrap();
    let mut plans = scene.store.plans().await.unwrap();
    plans.retain(|plan| plan.token_contract == USDC);
    for plan in &mut plans {
        (plan.credits, plan.active) = ("1".parse().unwrap(), false);
    }
    scene.store.put_plans(plans).await.unwrap();
    scene.pay_top_up(Wallet::of(1).address, &quote);
    assert_eq!(credited_by_the_watcher(&scene, MAIN).await, (0, 1, 0));
    assert_eq!(scene.balance(&key).await, "10.5");
}

#[tokio::test]
async fn own_quote_is_credited_on_request_without_watcher_and_plan() {
    let scene = Scene::new().await;
    let (key, _) = scene.account_without_wallet().await;
    let [first, second, other] = [("starter", MAIN), ("coin", MAIN), ("coin", SIDE)];
    let mut quotes = Vec::new();
    for (plan, chain_id) in [first, second, other] {
        quotes.push(scene.top_up_quote(&key, plan, chain_id).await.unwrap());
    }
    for plan in scene.store.plans().await.unwrap() {
        let changed = metering_core::payments::Plan { active: false, credits: "1".parse().unwrap(), ..plan };
        scene.store.put_plans(vec![changed]).await.unwrap();
    }
    // Registered by its hash, with a plan that is off sale.
    let hash = scene.pay_top_up(Wallet::of(1).address, &quotes[0]);
    assert_eq!(scene.top_up(&key, MAIN, hash, None).await.unwrap().amount_added.to_string(), "10.5");
    // Seen while it has enough confirmations.
    let hash = scene.main.pay(NATIVE, Wallet::of(2).address, RECIPIENT, quotes[1].amount_atomic.parse().unwrap());
    scene.main.grow(4);
    let paid = scene.service.payments().top_up_quote_by_id(Some(&key), &quotes[1].quote_id).await.unwrap();
    assert_eq!((paid.status, paid.tx_hash), (TopUpQuoteStatus::Paid, Some(hash.to_string())));
    assert_eq!(scene.balance(&key).await, "14.5");
    assert_eq!(credited_by_the_watcher(&scene, MAIN).await, (0, 0, 0));
    // A payment that no quote expects still needs a plan on sale.
    let plain = scene.pay_price(&Wallet::of(1), SIDE);
    assert_eq!(code(scene.top_up(&key, SIDE, plain, None).await), "unknown_plan");
}

#[tokio::test]
async fn amount_that_was_seen_paid_is_not_given_again() {
    let scene = Scene::new().await;
    let (key, _) = scene.account_without_wallet().await;
    let first = scene.top_up_quote(&key, "starter", MAIN).await.unwrap();
    scene.main.pay(USDC, Wallet::of(1).address, RECIPIENT, first.amount_atomic.parse().unwrap());
    let second = scene.top_up_quote(&key, "starter", MAIN).await.unwrap();
    assert_ne!(second.amount_atomic, first.amount_atomic);
    scene.pay_top_up(Wallet::of(1).address, &second);
    assert_eq!(credited_by_the_watcher(&scene, MAIN).await, (0, 2, 0));
    assert_eq!(scene.balance(&key).await, "21");
}

/// The clock that the searches use is paused, so each step of it allows one search.
#[tokio::test(start_paused = true)]
async fn seen_payment_stays_seen_until_the_chain_says_otherwise() {
    let scene = Scene::new().await;
    let (key, _) = scene.account_without_wallet().await;
    let quote = scene.top_up_quote(&key, "starter", MAIN).await.unwrap();
    let look = async || {
        tokio::time::advance(Duration::from_secs(3)).await;
        scene.service.payments().top_up_quote_by_id(Some(&key), &quote.quote_id).await.unwrap().status
    };
    let hash = scene.main.pay(USDC, Wallet::of(1).address, RECIPIENT, quote.amount_atomic.parse().unwrap());
    assert_eq!(look().await, TopUpQuoteStatus::Seen);
    let down = || metering_core::chains::ChainError::Unavailable("down".to_owned());
    scene.main.trouble(Some(down()));
    assert_eq!(look().await, TopUpQuoteStatus::Seen, "the chain cannot be read");
    scene.main.trouble(None);
    scene.main.spoil(hash, Some(down()));
    assert_eq!(look().await, TopUpQuoteStatus::Seen, "the transaction cannot be read");
    scene.main.spoil(hash, None);
    scene.main.reorganise(hash);
    assert_eq!(look().await, TopUpQuoteStatus::Open, "the chain has another block in its place");
    scene.main.mine_again(hash);
    assert_eq!(look().await, TopUpQuoteStatus::Seen);
    scene.main.grow(3);
    assert_eq!(look().await, TopUpQuoteStatus::Paid);
    assert_eq!(scene.balance(&key).await, "10.5");
}
