//! Payments credited before they are final: watched until they are final, and reversed or restored after
//! reorganisations.

use std::time::Duration;

use metering_core::chains::{ChainError, TokenUnits, TxHash, TxRef};
use metering_core::money::LedgerKind;
use metering_core::payments::PaymentSettlement;
use metering_core::service::SettlementReport;
use metering_core::{ApiKey, PaymentStore, Store};

use super::chain::FINAL;
use super::scene::{MAIN, Scene, code, key_of};
use super::wallet::Wallet;

/// The confirmations that crediting needs on the main chain.
const CONFIRMATIONS: u64 = 3;

async fn settle(scene: &Scene) -> SettlementReport {
    scene.service.payments().settle(MAIN).await.unwrap()
}

async fn settlement(scene: &Scene, hash: TxHash) -> PaymentSettlement {
    scene.store.payment(&TxRef { chain_id: MAIN, hash }).await.unwrap().expect("the payment is recorded").settlement
}

async fn kinds(scene: &Scene) -> Vec<LedgerKind> {
    scene.store.ledger(None, 100).await.unwrap().items.into_iter().map(|entry| entry.kind).collect()
}

/// Checks the chain as often as a reversal needs, with new blocks in between.
async fn settle_until_reversed(scene: &Scene) {
    assert_eq!(settle(scene).await.newly_reversed, 0, "missing for the first time");
    scene.main.grow(CONFIRMATIONS - 2);
    assert_eq!(settle(scene).await.newly_reversed, 0, "not missing for long enough");
    scene.main.grow(1);
    assert_eq!(settle(scene).await.newly_reversed, 1);
    assert!(scene.store.verify().await.unwrap().discrepancies.is_empty());
}

/// A claim with just enough confirmations.
async fn claimed(scene: &Scene, wallet: &Wallet) -> (ApiKey, TxHash) {
    let quote = scene.quote(wallet, "starter", MAIN).await.unwrap();
    let units = quote.amount_atomic.parse().unwrap();
    let hash = scene.main.pay(super::scene::USDC, wallet.address, super::scene::RECIPIENT, units);
    scene.main.grow(CONFIRMATIONS - 1);
    let response = scene.claim(&quote.signup_nonce, hash).await.unwrap();
    (key_of(&response.api_key), hash)
}

/// A top-up with just enough confirmations.
async fn topped_up(scene: &Scene, key: &ApiKey, wallet: &Wallet) -> TxHash {
    let hash = scene.main.pay(super::scene::USDC, wallet.address, super::scene::RECIPIENT, super::scene::STARTER);
    scene.main.grow(CONFIRMATIONS - 1);
    scene.top_up(key, MAIN, hash, None).await.unwrap();
    hash
}

#[tokio::test]
async fn a_payment_is_credited_early_and_final_later() {
    let scene = Scene::new().await;
    let (_, hash) = claimed(&scene, &Wallet::of(1)).await;
    let unsettled = SettlementReport { unsettled: 1, ..SettlementReport::default() };
    assert_eq!(settle(&scene).await, unsettled);
    scene.main.grow(FINAL - CONFIRMATIONS - 1);
    assert_eq!(settle(&scene).await, unsettled);
    scene.main.grow(1);
    assert_eq!(settle(&scene).await, SettlementReport { finalized: 1, ..SettlementReport::default() });
    assert_eq!(settlement(&scene, hash).await, PaymentSettlement::Final);
    // A final payment is no longer checked, even if it disappears.
    scene.main.reorganise(hash);
    scene.main.grow(10);
    assert_eq!(settle(&scene).await, SettlementReport::default());
}

#[tokio::test]
async fn an_invented_payment_does_not_become_final_and_is_reported() {
    let scene = Scene::new().await;
    let (key, invented) = claimed(&scene, &Wallet::of(1)).await;
    let (_, real) = claimed(&scene, &Wallet::of(2)).await;
    scene.main.disown(invented);
    // Its block is still there, so nothing is seen before it is final.
    let unsettled = SettlementReport { unsettled: 2, ..SettlementReport::default() };
    assert_eq!(settle(&scene).await, unsettled);
    scene.main.grow(FINAL);
    let expected = SettlementReport { unsettled: 1, doubtful: 1, ..SettlementReport::default() };
    assert_eq!(settle(&scene).await, SettlementReport { finalized: 1, ..expected });
    for _ in 0..3 {
        scene.main.grow(CONFIRMATIONS);
        assert_eq!(settle(&scene).await, expected, "it is not reversed: a source may have forgotten it");
    }
    assert_eq!(settlement(&scene, invented).await, PaymentSettlement::Unsettled);
    assert_eq!(settlement(&scene, real).await, PaymentSettlement::Final);
    assert_eq!(scene.balance(&key).await, "12.5");
    // While it cannot be read, nothing is known.
    scene.main.spoil(invented, Some(ChainError::Unavailable("down".to_owned())));
    assert_eq!(settle(&scene).await, SettlementReport { unsettled: 1, ..SettlementReport::default() });
    assert!(scene.store.verify().await.unwrap().discrepancies.is_empty());
}

#[tokio::test]
async fn claim_lost_to_a_reorganisation_is_reversed_with_reason() {
    let scene = Scene::new().await;
    let (key, hash) = claimed(&scene, &Wallet::of(1)).await;
    assert_eq!(scene.balance(&key).await, "12.5");
    scene.main.reorganise(hash);
    settle_until_reversed(&scene).await;
    assert_eq!(scene.balance(&key).await, "2", "the free credits of a new account are kept");
    let account = scene.service.access().authenticate(Some(&key)).await.unwrap();
    assert_eq!(account.totals.purchased.to_string(), "0");
    let entry = scene.store.activity(&account.id, 1).await.unwrap().remove(0);
    assert_eq!(entry.kind.as_str(), "payment_reversed");
    assert!(entry.description.is_some_and(|text| text.contains(&hash.to_string())));
    assert!(matches!(settlement(&scene, hash).await, PaymentSettlement::Reversed { .. }));
    assert_eq!(settle(&scene).await, SettlementReport { reversed: 1, ..SettlementReport::default() });
}

#[tokio::test]
async fn receipt_says_whether_its_payment_is_reversed() {
    let scene = Scene::new().await;
    let (key, hash) = claimed(&scene, &Wallet::of(1)).await;
    let statuses = async || {
        let list = scene.service.payments().receipts(Some(&key), None, 10).await.unwrap();
        let receipt = list.receipts.into_iter().next().unwrap();
        let cancelled: Vec<bool> = receipt.credit_notes.iter().map(|note| note.cancelled_at.is_some()).collect();
        (receipt.status, receipt.credits.to_string(), cancelled)
    };
    let expected = |status: &str, cancelled: &[bool]| (status.to_owned(), "10.5".to_owned(), cancelled.to_vec());
    assert_eq!(statuses().await, expected("paid", &[]));
    scene.main.reorganise(hash);
    settle_until_reversed(&scene).await;
    assert_eq!(statuses().await, expected("reversed", &[false]), "the same receipt, and a credit note");
    scene.main.mine_again(hash);
    scene.main.grow(CONFIRMATIONS - 1);
    assert_eq!(settle(&scene).await.restored, 1);
    assert_eq!(statuses().await, expected("paid", &[true]), "the credit note is kept");
}

#[tokio::test]
async fn spent_credits_leave_the_balance_below_zero_until_the_payment_is_back() {
    let scene = Scene::new().await;
    let wallet = Wallet::of(1);
    let (key, _) = claimed(&scene, &wallet).await;
    scene.main.grow(FINAL);
    settle(&scene).await;
    let hash = topped_up(&scene, &key, &wallet).await;
    assert_eq!(scene.balance(&key).await, "23");
    let account = scene.service.access().authenticate(Some(&key)).await.unwrap();
    let spent = metering_core::Credits::from_whole(-20).unwrap();
    let entry = metering_core::money::NewLedgerEntry::new(LedgerKind::Adjustment, spent, "Spent");
    scene.store.post_entry(&account.id, entry, account.created_at).await.unwrap();
    scene.main.reorganise(hash);
    settle_until_reversed(&scene).await;
    assert_eq!(scene.balance(&key).await, "-7.5");

    scene.main.mine_again(hash);
    assert_eq!(settle(&scene).await.restored, 0, "it needs confirmations like every payment");
    scene.main.grow(CONFIRMATIONS - 1);
    assert_eq!(settle(&scene).await.restored, 1);
    assert_eq!(scene.balance(&key).await, "3");
    assert_eq!(settlement(&scene, hash).await, PaymentSettlement::Unsettled);
    scene.main.grow(FINAL);
    assert_eq!(settle(&scene).await.finalized, 1);
    assert_eq!(kinds(&scene).await.last(), Some(&LedgerKind::PaymentRestored));
    assert!(scene.store.verify().await.unwrap().discrepancies.is_empty());
}

#[tokio::test]
async fn a_payment_that_is_mined_again_soon_moves_and_stays_credited() {
    let scene = Scene::new().await;
    let (key, hash) = claimed(&scene, &Wallet::of(1)).await;
    for _ in 0..3 {
        scene.main.reorganise(hash);
        assert_eq!(settle(&scene).await.unsettled, 1);
        scene.main.mine_again(hash);
        assert_eq!(settle(&scene).await.unsettled, 1);
        scene.main.grow(2 * CONFIRMATIONS);
        assert_eq!(settle(&scene).await.unsettled, 1);
    }
    assert_eq!(scene.balance(&key).await, "12.5");
    let record = scene.store.payment(&TxRef { chain_id: MAIN, hash }).await.unwrap().unwrap();
    assert_eq!(record.payment.block_number, scene.main.head() - 2 * CONFIRMATIONS);
    assert!(!kinds(&scene).await.contains(&LedgerKind::PaymentReversed));
    scene.main.grow(FINAL);
    assert_eq!(settle(&scene).await.finalized, 1);
}

#[tokio::test]
async fn a_payment_that_fails_or_pays_less_in_its_new_block_is_gone() {
    for fails in [true, false] {
        let scene = Scene::new().await;
        let (key, hash) = claimed(&scene, &Wallet::of(1)).await;
        scene.main.reorganise(hash);
        scene.main.alter_pending(hash, |evidence| {
            if fails {
                evidence.succeeded = false;
            } else {
                evidence.transfers[0].value = TokenUnits::new(1);
            }
        });
        scene.main.mine_again(hash);
        settle_until_reversed(&scene).await;
        assert_eq!(scene.balance(&key).await, "2");
        scene.main.grow(FINAL);
        assert_eq!(settle(&scene).await.restored, 0, "it does not pay the original amount");
    }
}

#[tokio::test]
async fn chain_errors_reverse_nothing() {
    let scene = Scene::new().await;
    let (key, hash) = claimed(&scene, &Wallet::of(1)).await;
    scene.main.reorganise(hash);
    settle(&scene).await;
    scene.main.trouble(Some(ChainError::Unavailable("down".into())));
    scene.main.grow(10);
    for _ in 0..3 {
        assert_eq!(code(scene.service.payments().settle(MAIN).await), "rpc_error");
    }
    assert_eq!(scene.balance(&key).await, "12.5");
    // A chain whose head is below the payment's block gives no evidence about the payment.
    scene.main.trouble(None);
    scene.main.cut(0);
    for _ in 0..3 {
        assert_eq!(settle(&scene).await.newly_reversed, 0);
    }
    scene.main.mine_again(hash);
    scene.main.grow(10);
    assert_eq!(settle(&scene).await, SettlementReport { unsettled: 1, ..SettlementReport::default() });
    assert_eq!(scene.balance(&key).await, "12.5");
}

#[tokio::test]
async fn reversed_payment_is_watched_a_week_and_can_be_registered_later() {
    let scene = Scene::new().await;
    let wallet = Wallet::of(1);
    let (key, _) = claimed(&scene, &wallet).await;
    let hash = topped_up(&scene, &key, &wallet).await;
    scene.main.reorganise(hash);
    settle_until_reversed(&scene).await;
    assert_eq!(scene.balance(&key).await, "12.5");
    scene.clock.pass(Duration::from_secs(8 * 24 * 60 * 60));
    scene.main.mine_again(hash);
    scene.main.grow(CONFIRMATIONS);
    let later = settle(&scene).await;
    assert_eq!((later.restored, later.reversed), (0, 1), "it is no longer watched");
    let response = scene.top_up(&key, MAIN, hash, None).await.unwrap();
    assert!(response.already_credited, "only the original credits are given again");
    assert_eq!(response.credit_balance.to_string(), "23");
    assert_eq!(scene.balance(&key).await, "23");
    assert!(scene.top_up(&key, MAIN, hash, None).await.unwrap().already_credited);
    assert_eq!(scene.balance(&key).await, "23");
}

#[tokio::test]
async fn watcher_rescans_after_a_reorganisation() {
    let scene = Scene::new().await;
    let (first, second) = (Wallet::of(1), Wallet::of(2));
    let quotes =
        [scene.quote(&first, "starter", MAIN).await.unwrap(), scene.quote(&second, "starter", MAIN).await.unwrap()];
    scene.main.grow(30);
    let watched = scene.service.payments().watch(MAIN, Some(0)).await.unwrap();
    assert_eq!(watched.scanned_to, Some(30 + 1 - CONFIRMATIONS));
    // One payment is mined in a block at a scanned height, and one in a block after it.
    scene.main.cut(22);
    scene.pay(&first, &quotes[0]);
    scene.pay(&second, &quotes[1]);
    let watched = scene.service.payments().watch(MAIN, Some(0)).await.unwrap();
    assert_eq!((watched.claimed, watched.left), (2, 0));
    // Without a reorganisation, each block is scanned once.
    scene.main.grow(1);
    let watched = scene.service.payments().watch(MAIN, Some(0)).await.unwrap();
    assert_eq!((watched.claimed, watched.credited, watched.left), (0, 0, 0));
    assert_eq!(
        scene.store.scan_mark(MAIN).await.unwrap(),
        Some(scene.main.head() + 1 - FINAL),
        "the mark covers final blocks only"
    );
}

#[tokio::test]
async fn first_scan_begins_at_the_newest_confirmed_block() {
    let scene = Scene::new().await;
    let wallet = Wallet::of(1);
    let quote = scene.quote(&wallet, "starter", MAIN).await.unwrap();
    scene.main.grow(10);
    let watched = scene.service.payments().watch(MAIN, None).await.unwrap();
    assert_eq!(watched.scanned_to, Some(8));
    assert_eq!(
        scene.store.scan_mark(MAIN).await.unwrap(),
        Some(7),
        "a restart begins there, whether or not it is final"
    );
    scene.pay(&wallet, &quote);
    assert_eq!(scene.service.payments().watch(MAIN, None).await.unwrap().claimed, 1);
}
