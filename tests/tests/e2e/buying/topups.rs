//! Top-ups: proof of who paid, and that each payment counts once.

use metering_core::{Clock, SystemClock};
use metering_tests::chain::Chain;
use serde_json::json;

use crate::support::shop::{Kind, STARTER, Shop};

#[test]
fn payment_from_an_unlinked_wallet_needs_its_signature_once() {
    for kind in Kind::BOTH {
        let Some(shop) = Shop::open() else { return };
        let wallet = shop.chain.wallet();
        let (key, other) = (shop.site.account("1").api_key, shop.site.account("1").api_key);
        let sponsor = shop.customer();
        let hash = shop.pay(kind, &sponsor, kind.price());
        let refused = shop.top_up(&key, kind, &hash, None).expect(403).json();
        let message = refused["message"].as_str().unwrap();
        assert!(message.contains(&hash) && message.contains(sponsor.checksummed()), "{message}");
        assert!(refused["hint"].as_str().unwrap().contains("personal_sign"), "{refused}");
        let signature = wallet.sign_message(&sponsor, message);

        // The same signature is invalid for another account.
        assert_eq!(shop.top_up(&other, kind, &hash, Some(&signature)).expect(403).error(), "payer_proof_required");
        for (what, bad) in [("not hex", "0xzz"), ("nothing", "0x"), ("no prefix", &signature[2..])] {
            assert_eq!(shop.top_up(&key, kind, &hash, Some(bad)).expect(400).error(), "invalid_signature", "{what}");
        }
        assert_eq!(shop.balance(&key), "1");
        let credited = shop.top_up(&key, kind, &hash, Some(&signature)).expect(200);
        assert_eq!(credited.member("amount_added"), kind.credits());
        let again = shop.top_up(&key, kind, &hash, None).expect(200);
        assert_eq!(
            (again.member("already_credited"), again.member("amount_added")),
            ("true".into(), kind.credits().into())
        );
        assert_eq!(again.member("credit_balance"), credited.member("credit_balance"));
        assert_eq!(shop.top_up(&other, kind, &hash, Some(&signature)).expect(409).error(), "tx_already_used");

        // The wallet is now linked, for top-ups only.
        let next = shop.pay(kind, &sponsor, kind.price());
        let _ = shop.top_up(&key, kind, &next, None).expect(200);
        let challenge = shop.client().post("/api-key/recover/challenge", &json!({"address": sponsor.address()}));
        assert_eq!(challenge.expect(404).error(), "no_linked_wallet");
        shop.site.verify();
    }
}

#[test]
fn new_store_for_the_same_recipient_credits_no_earlier_payment() {
    let now = u64::try_from(SystemClock.now().unix_millis()).unwrap() / 1_000;
    let Some(shop) = Shop::with(Chain::setup().genesis_time(now - 3_600), "1", "not_before = 0") else { return };
    let wallet = shop.chain.wallet();
    let customer = shop.customer();
    let key = shop.site.account("1").api_key;
    let paid = shop.pay(Kind::Token, &customer, STARTER);
    let refused = shop.top_up(&key, Kind::Token, &paid, None).expect(403);
    let signature = wallet.sign_message(&customer, refused.json()["message"].as_str().unwrap());
    let _ = shop.top_up(&key, Kind::Token, &paid, Some(&signature)).expect(200);
    assert_eq!(shop.balance(&key), "11.5");

    let shop = shop.on_a_new_store("1");
    let key = shop.site.account("1").api_key;
    let refused = shop.top_up(&key, Kind::Token, &paid, Some(&signature)).expect(400);
    assert_eq!(refused.error(), "payment_predates_service");
    assert!(refused.member("message").contains("predates"), "{refused:?}");
    let quote = shop.quote(Kind::Token, &customer.address());
    assert_eq!(shop.claim(&quote, &paid).expect(400).error(), "payment_mismatch");
    assert_eq!((shop.balance(&key), shop.accounts()), ("1".to_owned(), 1));
    shop.site.verify();
}

#[test]
fn top_ups_that_do_not_pay_the_plan_are_refused() {
    let Some(shop) = Shop::open() else { return };
    let customer = shop.customer();
    let key = shop.signed_up(Kind::Token, &customer);
    let before = shop.balance(&key);
    let wallet = shop.chain.wallet();
    let poor = wallet.new_account();
    let (token, to) = (shop.token.as_str(), shop.recipient.address());
    let forger = wallet.deploy_forger();
    let paid = shop.pay(Kind::Token, &customer, STARTER);
    let table = [
        ("too little", Kind::Token, shop.pay(Kind::Token, &customer, STARTER - 1), "payment_mismatch"),
        ("another plan's payment", Kind::Native, paid.clone(), "payment_mismatch"),
        (
            "somebody else paid",
            Kind::Token,
            shop.pay_to(Kind::Token, &customer, &wallet.account(8).address(), STARTER),
            "payment_mismatch",
        ),
        (
            "forged",
            Kind::Token,
            wallet.forge(&customer, &forger, &customer.address(), &to, STARTER),
            "payment_mismatch",
        ),
        ("reverted", Kind::Token, wallet.transfer_unsimulated(&poor, token, &to, STARTER), "tx_reverted"),
        (
            "with call data",
            Kind::Native,
            wallet.send_native_with_data(&customer, &to, Kind::Native.price(), "0x00"),
            "payment_mismatch",
        ),
        ("not a hash", Kind::Token, "0x12".to_owned(), "invalid_tx_hash"),
    ];
    for (what, kind, hash, code) in table {
        assert_eq!(shop.top_up(&key, kind, &hash, None).expect(400).error(), code, "{what}");
    }
    let incomplete = shop.server.client_with(&key).post("/credits/topup", &json!({"plan_id": "starter"})).expect(501);
    assert_eq!(incomplete.error(), "checkout_not_available");
    assert!(incomplete.json()["plans_url"].as_str().unwrap().ends_with("/credits/plans"), "{}", incomplete.text());
    assert_eq!(shop.client().post("/credits/topup", &json!({})).expect(401).error(), "unauthorized");
    assert_eq!(shop.balance(&key), before);
    // A payment above the price also buys the plan.
    let generous = shop.pay(Kind::Token, &customer, 2 * STARTER);
    assert_eq!(shop.top_up(&key, Kind::Token, &generous, None).expect(200).member("amount_added"), "10.5");
    let _ = shop.top_up(&key, Kind::Token, &paid, None).expect(200);
}
