//! Payments older than the service: made to another store with the same recipient, or before a configured time.

use std::collections::BTreeMap;
use std::time::Duration;

use metering_core::payments::NotBefore;
use metering_core::service::PaymentSettings;
use metering_core::{PaymentStore, Timestamp};

use super::scene::{MAIN, SIDE, Scene, code};
use super::wallet::Wallet;

const HOUR: Duration = Duration::from_secs(3_600);

fn not_before(first: NotBefore) -> PaymentSettings {
    PaymentSettings { not_before: BTreeMap::from([(MAIN, first)]), ..PaymentSettings::default() }
}

#[tokio::test]
async fn newer_store_does_not_credit_payments_to_an_older_one() {
    let first = Scene::new().await;
    let wallet = Wallet::of(1);
    let (key, _) = first.customer(&wallet, MAIN).await;
    let hash = first.pay_price(&wallet, MAIN);
    first.top_up(&key, MAIN, hash, None).await.unwrap();

    first.clock.pass(HOUR);
    let second = first.another(PaymentSettings { require_payer_proof: false, ..PaymentSettings::default() }).await;
    let (second_key, _) = second.account_without_wallet().await;
    let refused = second.top_up(&second_key, MAIN, hash, None).await.unwrap_err();
    assert_eq!((refused.code().as_str(), refused.code().status()), ("payment_predates_service", 400));
    assert!(refused.to_string().contains("predates this service's not_before"), "{refused}");
    assert_eq!(second.balance(&second_key).await, "0");

    // Payments from now on count.
    let next = first.pay_price(&wallet, MAIN);
    second.top_up(&second_key, MAIN, next, None).await.unwrap();
    assert_eq!(second.balance(&second_key).await, "10.5");
}

#[tokio::test]
async fn the_watcher_leaves_older_payments_alone() {
    let first = Scene::new().await;
    let wallet = Wallet::of(1);
    first.pay_price(&wallet, MAIN);
    first.clock.pass(HOUR);
    let second = first.another(PaymentSettings::default()).await;
    let (key, _) = second.customer(&wallet, MAIN).await;
    let watched = second.service.payments().watch(MAIN, Some(0)).await.unwrap();
    assert_eq!((watched.credited, watched.left), (0, 1));
    assert_eq!(second.balance(&key).await, "12.5");
    second.pay_price(&wallet, MAIN);
    assert_eq!(second.service.payments().watch(MAIN, None).await.unwrap().credited, 1);
}

#[tokio::test]
async fn not_before_applies_to_top_ups_claims_and_watcher() {
    let origin = Scene::new().await;
    let wallet = Wallet::of(1);
    let start = Timestamp::from_unix_millis(1_795_262_400_000);
    for first in [NotBefore::Block(1_000_000), NotBefore::Time(start.saturating_add(HOUR * 24))] {
        let scene = origin.another(not_before(first)).await;
        let quote = scene.quote(&wallet, "starter", MAIN).await.unwrap();
        let hash = scene.pay(&wallet, &quote);
        assert_eq!(code(scene.claim(&quote.signup_nonce, hash).await), "payment_predates_service", "{first}");
        let (key, _) = scene.account_without_wallet().await;
        assert_eq!(code(scene.top_up(&key, MAIN, hash, None).await), "payment_predates_service", "{first}");
        let watched = scene.service.payments().watch(MAIN, Some(0)).await.unwrap();
        assert_eq!((watched.claimed, watched.credited), (0, 0), "{first}");
        scene
            .store
            .quote(&metering_core::payments::QuoteNonce::parse(&quote.signup_nonce).unwrap().hash())
            .await
            .unwrap()
            .unwrap();
        // Each chain has its own setting.
        scene.customer(&Wallet::of(2), SIDE).await;
    }
}

#[tokio::test]
async fn not_before_block_zero_accepts_all_payments() {
    let first = Scene::new().await;
    let hash = first.pay_price(&Wallet::of(1), MAIN);
    first.clock.pass(HOUR);
    let settings = PaymentSettings { require_payer_proof: false, ..not_before(NotBefore::Block(0)) };
    let second = first.another(settings).await;
    let (key, _) = second.account_without_wallet().await;
    second.top_up(&key, MAIN, hash, None).await.unwrap();
}
