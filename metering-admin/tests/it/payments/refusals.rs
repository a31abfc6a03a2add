//! A payment is not assigned when it is unclear, not confirmed, not enough, or another customer's.

use std::mem::discriminant;

use metering_admin::AdminError;
use metering_admin::payments::{AssignError, Assignment, Worth};
use metering_core::access::Account;
use metering_core::chains::{NativeTransfer, PendingTransaction, TokenUnits, TxHash};
use metering_core::{AccountId, Clock, PaymentStore, Store};

use super::scene::{COIN, MAIN, RECIPIENT, STARTER, Scene, USDC};
use super::wallet::Wallet;
use super::{account, assign_main, balance, credits, pay, pay_at_once, starter, wallet};

fn conflict() -> AdminError {
    AdminError::Conflict(String::new())
}

fn invalid() -> AdminError {
    AdminError::Invalid(String::new())
}

fn not_found() -> AdminError {
    AdminError::NotFound(String::new())
}

/// Asserts that an assignment is refused with this kind of error, whose text contains `expected`.
async fn assert_refused(scene: &Scene, assignment: &Assignment, kind: &AdminError, expected: &str) {
    let error = AdminError::from(assign_main(scene, assignment).await.unwrap_err());
    assert_eq!(discriminant(&error), discriminant(kind), "{error:?}");
    let text = error.to_string();
    assert!(text.contains(expected), "{text}");
    assert!(!text.contains("--") && !text.contains('`'), "no options of a command: {text}");
}

#[tokio::test]
async fn unclear_payment_is_not_assigned() {
    let scene = Scene::new().await;
    let id = account(&scene).await;
    let coin = |tx: TxHash| Assignment { worth: Worth::Plan("coin".to_owned()), ..starter(tx, &id) };
    let some = |tx: TxHash| credits(tx, &id, "1");
    let (twice, both) =
        (pay_at_once(&scene.main, 1, &[STARTER, STARTER], 0), pay_at_once(&scene.main, 2, &[STARTER], COIN));
    let call =
        |to, has_input| NativeTransfer { from: wallet(3), to: Some(to), value: TokenUnits::new(COIN), has_input };
    let with_input = scene.main.mine(true, call(RECIPIENT, true), Vec::new());
    let reverted = scene.main.mine(false, call(RECIPIENT, false), Vec::new());
    let elsewhere = scene.main.pay(USDC, wallet(4), wallet(5), STARTER);
    let little = pay(&scene, 6, STARTER - 250_000);
    // assignment, kind, what the message contains
    let table = [
        (starter(twice, &id), invalid(), "does not pay plan starter on chain 1: The transaction has 2 transfers"),
        (some(twice), invalid(), "Nothing was assigned; to credit it anyway, grant the account credits"),
        (coin(with_input), invalid(), "carries call data"),
        (some(with_input), invalid(), "it is not clear what the transaction pays"),
        (some(both), invalid(), "several payments: 0.0025 ETH, 5 USDC; name the plan to choose one"),
        (starter(little, &id), invalid(), "costs 5 USDC, but only 4.75 USDC was paid; say how many credits"),
        (starter(reverted, &id), invalid(), "was reverted"),
        (some(reverted), invalid(), "was reverted"),
        (starter(elsewhere, &id), invalid(), "no transfer of token"),
        (some(elsewhere), invalid(), "no transfer to a recipient of the chain's plans"),
        (some(TxHash::from_bytes([0xff; 32])), not_found(), "chain main has no transaction 0xffff"),
    ];
    for (assignment, kind, expected) in table {
        assert_refused(&scene, &assignment, &kind, expected).await;
    }
    assert_eq!(balance(&scene, &id).await, "0");
    assert_eq!(scene.store.payments(None, 9).await.unwrap().items, []);
}

#[tokio::test]
async fn payment_needs_its_confirmations() {
    let scene = Scene::new().await;
    let id = account(&scene).await;
    let hash = scene.main.pay(USDC, wallet(1), RECIPIENT, STARTER);
    scene.main.grow(1);
    for assignment in [starter(hash, &id), credits(hash, &id, "1")] {
        assert_refused(&scene, &assignment, &conflict(), "has 2 of 3 confirmations; try again later").await;
    }
    let native =
        NativeTransfer { from: wallet(1), to: Some(RECIPIENT), value: TokenUnits::new(COIN), has_input: false };
    let pending = scene.main.send(PendingTransaction { native, transfer: None });
    assert_refused(&scene, &starter(pending, &id), &conflict(), "has 0 of 3 confirmations").await;
    scene.main.grow(1);
    assign_main(&scene, &starter(hash, &id)).await.unwrap();
}

#[tokio::test]
async fn payment_of_another_account_stays_there() {
    let scene = Scene::new().await;
    let (first, second) = (account(&scene).await, account(&scene).await);
    let hash = pay(&scene, 1, STARTER);
    assign_main(&scene, &starter(hash, &first)).await.unwrap();
    let expected = format!("was used before: assigned to {first}, plan starter; nothing was assigned");
    assert_refused(&scene, &starter(hash, &second), &conflict(), &expected).await;

    let (_, owner) = scene.customer(&Wallet::of(1), MAIN).await;
    let (owner, hash): (AccountId, _) = (owner.org_id.parse().unwrap(), owner.tx_hash.parse().unwrap());
    let expected = format!("was used before: signup of {owner}");
    assert_refused(&scene, &starter(hash, &owner), &conflict(), &expected).await;
    assert_eq!((balance(&scene, &second).await, balance(&scene, &owner).await), ("0".to_owned(), "12.5".to_owned()));
}

#[tokio::test]
async fn account_and_plan_must_exist() {
    let scene = Scene::new().await;
    let id = account(&scene).await;
    let hash = pay(&scene, 1, STARTER);
    let nonesuch: AccountId = "org_0123456789abcdefghij".parse().unwrap();
    assert_refused(&scene, &starter(hash, &nonesuch), &not_found(), "no account org_0123456789abcdefghij").await;
    let plan = Assignment { worth: Worth::Plan("nonesuch".to_owned()), ..starter(hash, &id) };
    assert_refused(&scene, &plan, &not_found(), "no plan nonesuch on chain 1").await;
    let Account { id, .. } = scene.store.revoke_account(&id, scene.clock.now()).await.unwrap().unwrap();
    assert_refused(&scene, &starter(hash, &id), &conflict(), "was revoked at").await;
}

#[tokio::test]
async fn credits_must_be_positive_and_fit_into_the_balance() {
    let scene = Scene::new().await;
    let id = account(&scene).await;
    let (first, second) = (pay(&scene, 1, STARTER), pay(&scene, 1, STARTER));
    for amount in ["0", "-1"] {
        assert_refused(&scene, &credits(first, &id, amount), &invalid(), "must be above zero").await;
    }
    let most = Assignment { worth: Worth::Credits(metering_core::Credits::MAX), ..starter(first, &id) };
    assign_main(&scene, &most).await.unwrap();
    assert_refused(&scene, &credits(second, &id, "1"), &conflict(), "out of range; nothing was assigned").await;
}

#[tokio::test]
async fn chain_without_plans_has_no_payments() {
    let scene = Scene::new().await;
    let id = account(&scene).await;
    let hash = pay(&scene, 1, STARTER);
    for plan in scene.store.plans().await.unwrap() {
        scene.store.remove_plan(&plan.key()).await.unwrap();
    }
    let error = assign_main(&scene, &credits(hash, &id, "1")).await.unwrap_err();
    assert!(matches!(error, AssignError::NothingPaidHere), "{error:?}");
    assert!(error.to_string().starts_with("no plan is paid on this chain"));
}
