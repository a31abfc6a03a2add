//! Payments that revert when they are mined, at the service's cost: abandoned immediately, limited, and paused.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use metering_core::chains::{Address, WalletSignature};
use metering_pay::offers::{AuthorizationNonce, RevertLimits, SignedAuthorization};
use tokio::task::JoinSet;

use super::ledger::{CHAIN, domain};
use super::scene::{SMALL, Scene, assert_served, reason, refusal};
use super::wallet::Wallet;

const PAID: (u16, &str) = (200, "");
const REFUSED: (u16, &str) = (402, "payment_refused");
const WAITS: (u16, &str) = (429, "rate_limited");
const PAUSED: (u16, &str) = (503, "settlement_unavailable");

/// Status and error code.
async fn outcome(scene: &Scene, signed: &SignedAuthorization) -> (u16, String) {
    let response = scene.send("/quote", None, Some(signed)).await;
    match response.status().as_u16() {
        200 => (200, String::new()),
        _ => {
            let (status, code, _) = refusal(&response);
            (status, code)
        }
    }
}

#[track_caller]
fn assert_outcome((status, code): &(u16, String), expected: (u16, &str)) {
    assert_eq!((*status, code.as_str()), expected);
}

/// How many transactions of the gas wallet are in the chain, and how many of them reverted.
fn mined(scene: &Scene) -> (u64, usize) {
    let world = scene.node.ledger().world();
    (world.gas_mined, world.receipts.values().filter(|receipt| !receipt.succeeded).count())
}

/// A payment of a contract with money, whose signature it accepts.
fn of_contract(scene: &Scene, number: u8, nonce: u8) -> SignedAuthorization {
    let address = Address::from_bytes([number; 20]);
    let mut authorization = Wallet::of(1).authorization(SMALL, nonce, scene.seconds());
    authorization.from = address;
    authorization.nonce = AuthorizationNonce::from_bytes([nonce; 32]);
    let signature = WalletSignature::parse(&format!("0x{}", "cd".repeat(70))).unwrap();
    let mut ledger = scene.node.ledger();
    ledger.contracts.insert(address);
    ledger.genesis.insert(address, 100 * SMALL);
    ledger.accepted.insert((address, authorization.digest(&domain()), signature.as_bytes().to_vec()));
    SignedAuthorization { signature, ..Wallet::of(1).sign(authorization) }
}

/// Makes a block every two seconds.
fn mine_regularly(scene: &Scene) {
    scene.node.mines.store(false, Ordering::SeqCst);
    let node = Arc::clone(&scene.node);
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(std::time::Duration::from_secs(2)).await;
            node.mine();
        }
    });
}

/// Sends these payments at once, each with its own request.
async fn at_once(scene: &Scene, payments: Vec<SignedAuthorization>) -> Vec<(u16, String)> {
    let mut tasks = JoinSet::new();
    for signed in payments {
        let scene = scene.clone();
        tasks.spawn(async move { outcome(&scene, &signed).await });
    }
    tasks.join_all().await
}

#[tokio::test(start_paused = true)]
async fn a_payment_is_given_up_at_its_first_revert_and_its_payer_waits_an_hour() {
    let scene = Scene::new().await;
    scene.node.ledger().traps.insert(Wallet::of(1).address);
    let signed = scene.signed(1, SMALL, 1);
    let response = scene.send("/quote", None, Some(&signed)).await;
    assert_eq!(refusal(&response), (402, REFUSED.1.to_owned(), true));
    assert_eq!(reason(&response), "invalid_transaction_state");
    assert_eq!(mined(&scene), (1, 1));
    assert_outcome(&outcome(&scene, &signed).await, REFUSED);
    let response = scene.send("/quote", None, Some(&scene.signed(1, SMALL, 2))).await;
    assert_eq!(refusal(&response), (429, WAITS.1.to_owned(), false));
    let seconds: u64 = response.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((3_500..=3_600).contains(&seconds), "{seconds}");
    assert_outcome(&outcome(&scene, &scene.signed(2, SMALL, 1)).await, PAID);
    assert_eq!((mined(&scene), scene.payments.reverted_payments(CHAIN).0), ((2, 1), 1));
    // An hour later, it may pay again.
    scene.node.ledger().traps.clear();
    scene.wait(3_600).await;
    assert_outcome(&outcome(&scene, &scene.signed(1, SMALL, 3)).await, PAID);
    assert_eq!(scene.payments.reverted_payments(CHAIN), (0, None));
}

#[tokio::test(start_paused = true)]
async fn payments_at_once_from_a_wallet_with_money_for_one_take_one_and_revert_none() {
    let scene = Scene::new().await;
    scene.node.ledger().genesis.insert(Wallet::of(1).address, SMALL);
    mine_regularly(&scene);
    let payments = (0..30).map(|nonce| scene.signed(1, SMALL, nonce)).collect();
    let outcomes = at_once(&scene, payments).await;
    let count = |expected: (u16, &str)| outcomes.iter().filter(|(status, _)| *status == expected.0).count();
    assert_eq!((count(PAID), count(PAID) + count(REFUSED)), (1, 30), "{outcomes:?}");
    assert_eq!((mined(&scene), scene.received()), ((1, 0), SMALL));
    scene.assert_credited_what_was_received().await;
}

#[tokio::test(start_paused = true)]
async fn payments_at_once_from_a_wallet_with_money_for_all_are_executed_one_after_another() {
    let scene = Scene::new().await;
    mine_regularly(&scene);
    let outcomes = at_once(&scene, (0..5).map(|nonce| scene.signed(1, SMALL, nonce)).collect()).await;
    assert!(outcomes.iter().all(|(status, _)| *status == 200), "{outcomes:?}");
    assert_eq!((mined(&scene), scene.received()), ((5, 0), 5 * SMALL));
    scene.assert_credited_what_was_received().await;
}

#[tokio::test(start_paused = true)]
async fn wallets_with_code_pay_only_if_the_operator_allows_it() {
    let scene = Scene::new().await;
    let strict = scene.without_contract_wallets();
    let signed = of_contract(&scene, 0x41, 1);
    assert_outcome(&outcome(&strict, &signed).await, REFUSED);
    // An account with a delegation (EIP-7702) signs with its key, and the token calls its code.
    scene.node.ledger().contracts.insert(Wallet::of(1).address);
    let delegated = scene.signed(1, SMALL, 1);
    assert_outcome(&outcome(&strict, &delegated).await, REFUSED);
    assert_eq!((mined(&scene), scene.record(&signed).await, scene.record(&delegated).await), ((0, 0), None, None));
    // Executed payments are credited.
    scene.node.by_stranger(vec![super::ledger::Call::Execute(delegated.clone())]);
    assert_served(&strict.send("/quote", None, Some(&delegated)).await);
    assert_outcome(&outcome(&scene, &signed).await, PAID);
}

#[tokio::test(start_paused = true)]
async fn wallets_with_the_same_code_revert_three_times_however_many_pay_at_once() {
    let scene = Scene::new().await;
    let payments: Vec<_> = (0x41..0x55).map(|number| of_contract(&scene, number, 1)).collect();
    scene.node.ledger().traps = payments.iter().map(|signed| signed.authorization.from).collect();
    mine_regularly(&scene);
    let outcomes = at_once(&scene, payments).await;
    assert!(outcomes.iter().all(|(status, _)| *status == 402), "{outcomes:?}");
    assert_eq!(mined(&scene), (3, 3));
    assert_outcome(&outcome(&scene, &of_contract(&scene, 0x61, 1)).await, WAITS);
    assert_outcome(&outcome(&scene, &scene.signed(1, SMALL, 1)).await, PAID);
}

#[tokio::test(start_paused = true)]
async fn too_many_reverts_pause_everybody_for_an_hour() {
    let scene = Scene::new().await.with_reverts(RevertLimits { per_chain: 2, ..RevertLimits::default() });
    scene.node.ledger().traps.extend((1..=4).map(|number| Wallet::of(number).address));
    mine_regularly(&scene);
    let outcomes = at_once(&scene, (1..=4).map(|number| scene.signed(number, SMALL, 1)).collect()).await;
    assert!(outcomes.iter().all(|(status, _)| *status == 402), "{outcomes:?}");
    assert_eq!(mined(&scene), (2, 2));
    let (reverts, until) = scene.payments.reverted_payments(CHAIN);
    assert!(reverts == 2 && until.is_some());
    let honest = scene.signed(5, SMALL, 1);
    assert_outcome(&outcome(&scene, &honest).await, PAUSED);
    assert_eq!(scene.record(&honest).await, None);
    scene.wait(3_600).await;
    assert_outcome(&outcome(&scene, &scene.signed(5, SMALL, 2)).await, PAID);
    assert_eq!(mined(&scene).1, 2);
}
