//! A payment is assigned once, with a record and a ledger entry.

use metering_admin::payments::{Assigned, Assignment, Worth};
use metering_core::Store;
use metering_core::payments::PaymentUse;

use super::scene::{COIN, MAIN, STARTER, Scene};
use super::wallet::Wallet;
use super::{account, assign_main, balance, credits, everything, pay, pay_at_once, scan_main, starter};

#[tokio::test]
async fn assigned_payment_is_credited_and_recorded() {
    let scene = Scene::new().await;
    let id = account(&scene).await;
    let hash = pay(&scene, 1, STARTER + 1);
    let assignment = Assignment { reason: Some("Ticket 311".parse().unwrap()), ..starter(hash, &id) };
    let Assigned::Credited(credited) = assign_main(&scene, &assignment).await.unwrap() else { panic!("not credited") };
    assert_eq!((credited.paid.as_str(), credited.amount.to_string().as_str()), ("5.000001 USDC", "10.5"));
    assert_eq!((credited.plan_id.as_deref(), credited.quote), (Some("starter"), None));
    assert_eq!(credited.account.totals.purchased.to_string(), "10.5");

    let entry = scene.store.account_ledger(&id, None, 9).await.unwrap().items.pop().unwrap();
    assert_eq!(entry.description, "Plan starter, assigned by the operator: Ticket 311");
    let paid = entry.payment.unwrap();
    assert_eq!((paid.tx.hash, paid.plan_id.as_deref()), (hash, Some("starter")));
    assert_eq!(scan_main(&scene, everything()).await.unwrap().found, [], "nothing is left to assign");
    assert_eq!(scene.store.verify().await.unwrap().discrepancies, []);
}

#[tokio::test]
async fn repeated_assignment_credits_nothing() {
    let scene = Scene::new().await;
    let id = account(&scene).await;
    let hash = pay(&scene, 1, STARTER);
    assign_main(&scene, &starter(hash, &id)).await.unwrap();
    for again in [starter(hash, &id), credits(hash, &id, "3")] {
        let Assigned::AlreadyCredited(account, record) = assign_main(&scene, &again).await.unwrap() else {
            panic!("credited again")
        };
        assert_eq!((&account.id, record.used_as), (&id, PaymentUse::Assigned));
        assert_eq!(record.plan_id.as_deref(), Some("starter"), "the plan it was credited for");
    }
    assert_eq!(balance(&scene, &id).await, "10.5");
}

#[tokio::test]
async fn operator_can_set_the_worth_of_a_payment() {
    let scene = Scene::new().await;
    let id = account(&scene).await;
    let (little, coin) = (pay(&scene, 1, STARTER / 2), pay_at_once(&scene.main, 2, &[], COIN));
    let assigned = assign_main(&scene, &credits(little, &id, "4.75")).await.unwrap();
    let Assigned::Credited(credited) = assigned else { panic!("not credited") };
    assert_eq!((credited.paid.as_str(), credited.plan_id), ("2.5 USDC", None));
    assign_main(&scene, &credits(coin, &id, "0.00000001")).await.unwrap();
    assert_eq!(balance(&scene, &id).await, "4.75000001");
    let entry = scene.store.account_ledger(&id, None, 9).await.unwrap().items.pop().unwrap();
    assert_eq!(entry.description, "Payment assigned by the operator");
}

#[tokio::test]
async fn plan_selects_between_two_payments_in_one_transaction() {
    let scene = Scene::new().await;
    let id = account(&scene).await;
    let both = pay_at_once(&scene.main, 1, &[STARTER], COIN);
    let coin = Assignment { worth: Worth::Plan("coin".to_owned()), ..starter(both, &id) };
    let Assigned::Credited(credited) = assign_main(&scene, &coin).await.unwrap() else { panic!("not credited") };
    assert_eq!(credited.paid, "0.0025 ETH");
    // The other one is spent with it: a transaction can be credited only once.
    let again = assign_main(&scene, &starter(both, &id)).await.unwrap();
    assert!(matches!(again, Assigned::AlreadyCredited(..)), "{again:?}");
    assert_eq!(balance(&scene, &id).await, "4");
}

#[tokio::test]
async fn quote_is_set_aside_only_on_purpose() {
    let scene = Scene::new().await;
    let id = account(&scene).await;
    let quote = scene.quote(&Wallet::of(1), "starter", MAIN).await.unwrap();
    let hash = scene.pay(&Wallet::of(1), &quote);
    let error = assign_main(&scene, &starter(hash, &id)).await.unwrap_err();
    let expected = "the quote of agent is waiting for exactly this payment, and its owner can still claim it";
    assert_eq!(error.to_string(), expected);
    assert_eq!(balance(&scene, &id).await, "0");

    let despite = Assignment { despite_quote: true, ..starter(hash, &id) };
    let Assigned::Credited(credited) = assign_main(&scene, &despite).await.unwrap() else { panic!("not credited") };
    assert_eq!(credited.quote.unwrap().agent_name.to_string(), "agent");
    assert_eq!(super::scene::code(scene.claim(&quote.signup_nonce, hash).await), "tx_already_used");
}

#[tokio::test]
async fn top_up_quote_waits_for_its_own_account() {
    let scene = Scene::new().await;
    let other = account(&scene).await;
    let (key, id) = scene.account_without_wallet().await;
    let quote = scene.top_up_quote(&key, "starter", MAIN).await.unwrap();
    let hash = scene.pay_top_up(Wallet::of(1).address, &quote);
    let error = assign_main(&scene, &starter(hash, &other)).await.unwrap_err();
    assert_eq!(error.to_string(), format!("a top-up quote of {id} is waiting for exactly this payment"));

    let own = Assignment { despite_quote: true, ..starter(hash, &id) };
    let Assigned::Credited(credited) = assign_main(&scene, &own).await.unwrap() else { panic!("not credited") };
    assert_eq!(credited.quote, None, "the quote is the account's own");
    assert_eq!(balance(&scene, &id).await, "10.5");
}
