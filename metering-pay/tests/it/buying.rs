//! Credits alone, bought with a payment; and the limit on new payments.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use http::{HeaderMap, HeaderValue, Request};
use metering_core::access::{Caller, ClientAddress};
use metering_core::chains::WalletSignature;
use metering_core::wire::ErrorCode;
use metering_core::{ApiKey, Error};
use metering_pay::offers::{
    PayRefusal, PaymentAttempt, PaymentLimit, PaymentSource, SignedAuthorization, TooManyPayments,
};
use metering_pay::{Bought, OfferSettings, SignedPayments};

use super::scene::{LARGE, SMALL, Scene, accepted, assert_served, payment, reason, refusal};
use super::wallet::Wallet;

impl Scene {
    async fn buy(&self, key: Option<&ApiKey>, signed: Option<&SignedAuthorization>) -> Result<Bought, Error> {
        let mut headers = HeaderMap::new();
        if let Some(signed) = signed {
            headers.insert("payment-signature", payment(&accepted(signed), signed).parse().unwrap());
        }
        let presented = self.service.offers().read(|name| headers.get_all(name).iter().map(HeaderValue::as_bytes))?;
        self.payments.buy(&self.service, Caller::from(key), presented.as_deref()).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_payment_buys_credits_once_and_its_repeat_gets_the_same() {
    let scene = Scene::new().await;
    let signed = scene.signed(1, SMALL, 1);
    let first = scene.buy(Some(&scene.key), Some(&signed)).await.unwrap();
    assert_eq!(
        (first.document.credited.to_string(), first.document.balance.to_string()),
        ("0.05".into(), "0.05".into())
    );
    let tx = scene.record(&signed).await.unwrap().tx.unwrap();
    let paid = first.document.transaction.clone().unwrap();
    assert_eq!((paid.chain, paid.hash), (tx.chain_id, tx.hash.to_string()));
    let again = scene.buy(Some(&scene.key), Some(&signed)).await.unwrap();
    assert_eq!(serde_json::to_value(&again.document).unwrap(), serde_json::to_value(&first.document).unwrap());
    assert_eq!((&again.receipt, again.receipt.as_ref().unwrap().0), (&first.receipt, "payment-response"));
    assert_eq!(scene.received(), SMALL);
    // A later repetition reports the balance at that time.
    assert_served(&scene.send("/quote", Some(&scene.key), None).await);
    let later = scene.buy(Some(&scene.key), Some(&signed)).await.unwrap().document;
    assert_eq!((later.credited.to_string(), later.balance.to_string()), ("0.05".into(), "0.03".into()));
    scene.assert_credited_what_was_received().await;
}

#[tokio::test(start_paused = true)]
async fn credits_are_offered_to_a_key_without_a_payment() {
    let scene = Scene::new().await;
    let offered = scene.buy(Some(&scene.key), None).await.unwrap_err();
    assert_eq!(offered.code(), ErrorCode::PaymentRequired);
    let notice =
        scene.service.offers().notice(&offered, scene.service.offers().resource("/credits/pay", None, None), None);
    let amounts = serde_json::to_value(notice.offers.unwrap()).unwrap();
    let amounts: Vec<_> =
        amounts["accepts"].as_array().unwrap().iter().map(|o| o["maxAmountRequired"].clone()).collect();
    assert_eq!(amounts, ["50000", "500000"], "all, cheapest first");
    let listed = scene.payments.offers_document(&scene.service).await.unwrap();
    let listed: Vec<_> = listed.offers.iter().map(|o| (o.token_amount.as_str(), o.credits.to_string())).collect();
    assert_eq!(listed, [("0.05", "0.05".to_owned()), ("0.5", "0.5".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn nobody_else_gets_the_credits_of_a_payment() {
    let scene = Scene::new().await;
    let signed = scene.signed(1, SMALL, 1);
    assert_eq!(scene.buy(None, Some(&signed)).await.unwrap_err().code(), ErrorCode::Unauthorized);
    assert_eq!((scene.received(), scene.record(&signed).await), (0, None));
    let _ = scene.buy(Some(&scene.key), Some(&signed)).await.unwrap();
    let (other, account) = scene.another_customer().await;
    let refused = scene.buy(Some(&other), Some(&signed)).await.unwrap_err();
    assert_eq!(PayRefusal::of(&refused), Some(&PayRefusal::AlreadyCredited));
    assert_eq!((refused.code(), scene.balance(&account).await), (ErrorCode::PaymentCredited, "0".to_owned()));
    assert_eq!(scene.buy(None, Some(&signed)).await.unwrap_err().code(), ErrorCode::Unauthorized);
    scene.assert_credited_what_was_received().await;
}

#[tokio::test(start_paused = true)]
async fn any_offer_may_be_taken_at_a_negative_balance() {
    let scene = Scene::new().await;
    let _ = scene.buy(Some(&scene.key), Some(&scene.signed(1, SMALL, 1))).await.unwrap();
    assert_served(&scene.send("/dear", Some(&scene.key), None).await);
    assert_eq!(scene.balance(&scene.account).await, "-0.35");
    let bought = scene.buy(Some(&scene.key), Some(&scene.signed(1, SMALL, 2))).await.unwrap();
    assert_eq!(bought.document.balance.to_string(), "-0.3");
}

#[tokio::test(start_paused = true)]
async fn a_service_without_offers_says_so() {
    let scene = Scene::new().await;
    let service = metering_core::Service::with_defaults(Arc::clone(&scene.store) as _);
    let payments = SignedPayments::new(scene.store.clone(), scene.clock.clone(), "", OfferSettings::default());
    let caller = Caller::from(&scene.key);
    let refused = payments.buy(&service, caller, None).await.unwrap_err();
    assert!(matches!(refused, Error::OffersNotMade) && refused.code() == ErrorCode::NotFound, "{refused}");
    assert!(payments.offers_document(&service).await.unwrap().offers.is_empty());
}

/// Lets some new payments pass, and remembers all.
#[derive(Debug)]
struct Turnstile {
    left: AtomicU64,
    seen: Mutex<Vec<PaymentAttempt>>,
}

impl Turnstile {
    fn of(left: u64) -> Arc<Self> {
        Arc::new(Self { left: left.into(), seen: Mutex::default() })
    }

    fn seen(&self) -> Vec<PaymentAttempt> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }
}

impl PaymentLimit for Turnstile {
    fn count(&self, attempt: &PaymentAttempt) -> Result<(), TooManyPayments> {
        self.seen.lock().unwrap().push(*attempt);
        let passed = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        let refused = TooManyPayments { source_of: PaymentSource::Client, retry_after_seconds: 7 };
        passed.map(|_| ()).map_err(|_| refused)
    }
}

#[tokio::test(start_paused = true)]
async fn only_new_payments_count_towards_their_limit() {
    let limit = Turnstile::of(9);
    let scene = Scene::new().await.limited(Arc::clone(&limit) as _);
    let address: IpAddr = "203.0.113.7".parse().unwrap();
    let signed = scene.signed(1, SMALL, 1);
    let paid = || {
        Request::get("/quote")
            .header("authorization", format!("Bearer {}", scene.key.expose()))
            .header("payment-signature", payment(&accepted(&signed), &signed))
            .extension(ClientAddress(address))
            .body(String::new())
            .unwrap()
    };
    let payer = Wallet::of(1).address;
    for counted in [vec![PaymentAttempt { client: Some(address), payer, is_signed: true }], vec![], vec![]] {
        assert_served(&scene.ask(paid()).await);
        assert_eq!(limit.seen(), counted);
    }
    // A signature that is not the payer's: anyone may have made it up.
    let mut forged = scene.signed(1, LARGE, 2);
    forged.signature = WalletSignature::parse(&format!("0x{}", "11".repeat(65))).unwrap();
    assert_eq!(refusal(&scene.send("/quote", Some(&scene.key), Some(&forged)).await).1, "payment_refused");
    assert_eq!(limit.seen(), [PaymentAttempt { client: None, payer, is_signed: false }]);
    // Payments that need no read of the chain are not limited.
    let mut elsewhere = scene.signed(1, SMALL, 3);
    elsewhere.authorization.to = payer;
    assert_eq!(refusal(&scene.send("/quote", Some(&scene.key), Some(&elsewhere)).await).1, "payment_refused");
    assert_eq!(limit.seen(), []);
}

#[tokio::test(start_paused = true)]
async fn a_payment_above_the_limit_is_not_checked_and_gets_no_offers() {
    let limit = Turnstile::of(1);
    let scene = Scene::new().await.limited(Arc::clone(&limit) as _);
    let (known, new) = (scene.signed(1, SMALL, 1), scene.signed(1, SMALL, 2));
    let _ = scene.buy(Some(&scene.key), Some(&known)).await.unwrap();
    // If the chain were read, the refusal would be another one.
    scene.node.is_down.store(true, Ordering::SeqCst);
    let refused = scene.send("/quote", Some(&scene.key), Some(&new)).await;
    assert_eq!(refusal(&refused), (429, "rate_limited".to_owned(), false));
    assert_eq!(refused.headers()["retry-after"], "7");
    assert!(refused.body().contains("Too many payments from your network address; nothing was taken."), "{refused:?}");
    let _ = reason(&refused);
    assert_eq!(scene.record(&new).await, None);
    let _ = scene.buy(Some(&scene.key), Some(&known)).await.unwrap();
    scene.assert_credited_what_was_received().await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_payment_that_is_tried_again_counts_again() {
    let limit = Turnstile::of(9);
    let scene = Scene::new().await.limited(Arc::clone(&limit) as _);
    let signed = scene.signed(1, SMALL, 1);
    scene.node.loses_sent.store(true, Ordering::SeqCst);
    let pending = scene.buy(Some(&scene.key), Some(&signed)).await.unwrap_err();
    assert_eq!(pending.code(), ErrorCode::SettlementPending);
    assert_eq!(limit.seen().len(), 1);
    // It expires, and its place is used up.
    scene.wait(400).await;
    scene.node.loses_sent.store(false, Ordering::SeqCst);
    scene.wait(400).await;
    for _ in 0..2 {
        let failed = scene.buy(Some(&scene.key), Some(&signed)).await.unwrap_err();
        assert_eq!((failed.code(), limit.seen().len()), (ErrorCode::PaymentRefused, 1), "{failed}");
    }
    assert_eq!(scene.received(), 0);
}
