//! The values of payments in a currency: set when they are credited, and never computed again.

use std::sync::Arc;
use std::time::Duration;

use metering_core::payments::{ExchangeRates, RateList};
use metering_core::service::PaymentSettings;
use metering_core::wire::{ProcessorPaymentRequest, ValueDocument};
use metering_core::{ApiKey, PaymentStore};

use super::scene::{MAIN, Scene};
use super::wallet::Wallet;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn list(as_of: &str, usdc: &str) -> RateList {
    RateList::new(as_of, [("USDC", usdc.parse().unwrap())]).unwrap()
}

/// The amounts on the account's receipts, newest first; all in euros.
async fn amounts(scene: &Scene, key: &ApiKey) -> Vec<Option<String>> {
    let list = scene.service.payments().receipts(Some(key), None, 10).await.unwrap();
    let value = |value: Option<ValueDocument>| {
        let value = value.expect("every receipt has the currency");
        assert_eq!(value.currency, "EUR");
        value.amount
    };
    list.receipts.into_iter().map(|receipt| value(receipt.payment.value)).collect()
}

#[tokio::test]
async fn a_value_stays_what_it_was_at_the_credit() {
    let rates = Arc::new(ExchangeRates::new("EUR".parse().unwrap(), "ECB", Some(DAY)));
    let scene = Scene::with(PaymentSettings { rates: Some(Arc::clone(&rates)), ..PaymentSettings::default() }).await;
    let wallet = Wallet::of(1);
    let (key, _) = scene.customer(&wallet, MAIN).await;
    assert_eq!(
        amounts(&scene, &key).await,
        [None::<String>],
        "no rate is known yet, and the purchase is credited all the same"
    );

    rates.set(list("2026-11-21T06:00:00Z", "0.8612"));
    let first = scene.pay_price(&wallet, MAIN);
    scene.top_up(&key, MAIN, first, None).await.unwrap();
    let some = |amount: &str| Some(amount.to_owned());
    assert_eq!(amounts(&scene, &key).await, [some("4.31"), None]);

    rates.set(list("2026-11-21T07:00:00Z", "1"));
    let repeated = scene.top_up(&key, MAIN, first, None).await.unwrap();
    assert!(repeated.already_credited);
    // The watcher credits unclaimed payments.
    scene.pay_price(&wallet, MAIN);
    assert_eq!(scene.service.payments().watch(MAIN, Some(1)).await.unwrap().credited, 1);
    assert_eq!(amounts(&scene, &key).await, [some("5.00"), some("4.31"), None]);

    scene.clock.pass(DAY);
    let late = scene.pay_price(&wallet, MAIN);
    let credited = scene.top_up(&key, MAIN, late, None).await.unwrap();
    assert_eq!(credited.amount_added.to_string(), "10.5");
    assert_eq!(amounts(&scene, &key).await, [None, some("5.00"), some("4.31"), None], "the rates are too old");
    let receipt = scene.service.payments().receipts(Some(&key), None, 10).await.unwrap().receipts.remove(2);
    let words = receipt.payment.value.unwrap().in_words(receipt.payment.token_symbol.as_deref());
    assert_eq!(words, "4.31 EUR at 0.8612 EUR per USDC (ECB, 2026-11-21 06:00 UTC)");
}

#[tokio::test]
async fn receipts_have_no_value_without_a_currency() {
    let scene = Scene::new().await;
    let (key, _) = scene.customer(&Wallet::of(1), MAIN).await;
    let receipt = scene.service.payments().receipts(Some(&key), None, 10).await.unwrap().receipts.remove(0);
    assert_eq!(receipt.payment.value, None);
    assert_eq!(scene.store.payments(None, 10).await.unwrap().items[0].value, None);
}

#[tokio::test]
async fn a_processors_payment_has_no_value_beside_its_amount() {
    let rates = Arc::new(ExchangeRates::new("EUR".parse().unwrap(), "ECB", None));
    let scene = Scene::with(PaymentSettings { rates: Some(rates), ..PaymentSettings::default() }).await;
    let (key, account) = scene.account_without_wallet().await;
    let paid = ProcessorPaymentRequest {
        processor: Some("paddle".to_owned()),
        id: Some("txn_1".to_owned()),
        org_id: Some(account.to_string()),
        amount: Some("10.00".to_owned()),
        currency: Some("USD".to_owned()),
        credits: "100".parse().ok(),
        ..ProcessorPaymentRequest::default()
    };
    scene.service.payments().credit_from_processor(&paid).await.unwrap();
    let payment = scene.service.payments().receipts(Some(&key), None, 10).await.unwrap().receipts.remove(0).payment;
    assert_eq!((payment.token_amount.as_deref(), payment.token_symbol.as_deref()), (Some("10"), Some("USD")));
    assert_eq!(payment.value, None);
}
