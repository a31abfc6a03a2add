//! Top-ups: proof of who paid, and that each payment counts once.

use metering_tests::chain::Chain;
use serde_json::json;

use crate::market::{Kind, Market, STARTER, key_of};

#[test]
fn a_strangers_payment_needs_their_signature_once() {
    for kind in Kind::BOTH {
        let Some(market) = Market::open() else { return };
        let wallet = market.chain.wallet();
        let (key, other) = (market.site.account("1").api_key, market.site.account("1").api_key);
        let sponsor = market.customer();
        let hash = market.pay(kind, &sponsor, kind.price());
        let refused = market.top_up(&key, kind, &hash, None).expect(403).json();
        let message = refused["message"].as_str().unwrap();
        assert!(message.contains(&hash) && message.contains(sponsor.checksummed()), "{message}");
        assert!(refused["hint"].as_str().unwrap().contains("personal_sign"), "{refused}");
        let signature = wallet.sign_message(&sponsor, message);

        // The same signature is invalid for another account.
        assert_eq!(market.top_up(&other, kind, &hash, Some(&signature)).expect(403).error(), "payer_proof_required");
        for (what, bad) in [("not hex", "0xzz"), ("nothing", "0x"), ("no prefix", &signature[2..])] {
            assert_eq!(market.top_up(&key, kind, &hash, Some(bad)).expect(400).error(), "invalid_signature", "{what}");
        }
        assert_eq!(market.balance(&key), "1");
        let credited = market.top_up(&key, kind, &hash, Some(&signature)).expect(200);
        assert_eq!(credited.member("amount_added"), kind.credits());
        let again = market.top_up(&key, kind, &hash, None).expect(200);
        assert_eq!((again.member("already_credited"), again.member("amount_added")), ("true".into(), "0".into()));
        assert_eq!(again.member("credit_balance"), credited.member("credit_balance"));
        assert_eq!(market.top_up(&other, kind, &hash, Some(&signature)).expect(409).error(), "tx_already_used");

        // The wallet is now linked, for top-ups only.
        let next = market.pay(kind, &sponsor, kind.price());
        let _ = market.top_up(&key, kind, &next, None).expect(200);
        let challenge = market.client().post("/api-key/recover/challenge", &json!({"address": sponsor.address()}));
        assert_eq!(challenge.expect(404).error(), "no_linked_wallet");
        market.site.verify();
    }
}

#[test]
fn top_ups_that_do_not_pay_the_plan_are_refused() {
    let Some(market) = Market::open() else { return };
    let customer = market.customer();
    let key = market.signed_up(Kind::Token, &customer);
    let before = market.balance(&key);
    let wallet = market.chain.wallet();
    let poor = wallet.new_account();
    let (token, to) = (market.token.as_str(), market.recipient.address());
    let forger = wallet.deploy_forger();
    let good = market.pay(Kind::Token, &customer, STARTER);
    let table = [
        ("too little", Kind::Token, market.pay(Kind::Token, &customer, STARTER - 1), "payment_mismatch"),
        ("another plan's payment", Kind::Native, good.clone(), "payment_mismatch"),
        (
            "somebody else paid",
            Kind::Token,
            market.pay_to(Kind::Token, &customer, &wallet.account(8).address(), STARTER),
            "payment_mismatch",
        ),
        (
            "forged",
            Kind::Token,
            wallet.forge(&customer, &forger, &customer.address(), &to, STARTER),
            "payment_mismatch",
        ),
        ("reverted", Kind::Token, wallet.transfer_untried(&poor, token, &to, STARTER), "tx_reverted"),
        (
            "with call data",
            Kind::Native,
            wallet.send_native_with_data(&customer, &to, Kind::Native.price(), "0x00"),
            "payment_mismatch",
        ),
        ("not a hash", Kind::Token, "0x12".to_owned(), "invalid_tx_hash"),
    ];
    for (what, kind, hash, code) in table {
        assert_eq!(market.top_up(&key, kind, &hash, None).expect(400).error(), code, "{what}");
    }
    let incomplete = market.server.client_with(&key).post("/credits/topup", &json!({"plan_id": "starter"})).expect(400);
    assert_eq!(incomplete.error(), "validation_failed");
    assert!(incomplete.json()["plans_url"].as_str().unwrap().ends_with("/credits/plans"), "{}", incomplete.text());
    assert_eq!(market.client().post("/credits/topup", &json!({})).expect(401).error(), "unauthorized");
    assert_eq!(market.balance(&key), before);
    // A payment above the price also buys the plan.
    let generous = market.pay(Kind::Token, &customer, 2 * STARTER);
    assert_eq!(market.top_up(&key, Kind::Token, &generous, None).expect(200).member("amount_added"), "10.5");
    let _ = market.top_up(&key, Kind::Token, &good, None).expect(200);
}

#[test]
fn without_proof_a_quotes_payment_is_still_the_quotes() {
    let Some(market) = Market::with(Chain::setup(), "1", "[topup]\nrequire_payer_proof = false") else { return };
    let thief = market.site.account("1").api_key;
    let victim = market.customer();
    let quote = market.quote(Kind::Token, &victim.address());
    let hash = market.pay(Kind::Token, &victim, quote.units);
    assert_eq!(market.top_up(&thief, Kind::Token, &hash, None).expect(409).error(), "payment_reserved");
    let _ = market.claim(&quote, &hash).expect(200);
    let unquoted = market.pay(Kind::Token, &market.customer(), STARTER);
    let _ = market.top_up(&thief, Kind::Token, &unquoted, None).expect(200);
}

#[test]
fn a_second_payment_of_a_new_customer_is_topped_up() {
    let Some(market) = Market::open() else { return };
    let customer = market.customer();
    let (first, second) =
        (market.quote(Kind::Token, &customer.address()), market.quote(Kind::Token, &customer.address()));
    let (paid_first, paid_second) =
        (market.pay(Kind::Token, &customer, first.units), market.pay(Kind::Token, &customer, second.units));
    let key = key_of(&market.claim(&first, &paid_first).expect(200));
    assert_eq!(market.claim(&second, &paid_second).expect(409).error(), "payer_already_registered");
    let topped = market.top_up(&key, Kind::Token, &paid_second, None).expect(200);
    assert_eq!(topped.member("total_credits_purchased"), "21");
    market.site.verify();
}

#[test]
fn a_contract_wallet_signs_by_its_owner() {
    let Some(market) = Market::open() else { return };
    let wallet = market.chain.wallet();
    let (owner, stranger) = (market.customer(), market.customer());
    let contract = wallet.deploy_contract_wallet(&owner);
    wallet.mint(&market.token, &contract, 10 * STARTER);
    let key = market.site.account("1").api_key;
    let hash = wallet.transfer_by_contract(&owner, &contract, &market.token, &market.recipient.address(), STARTER);
    let message =
        market.top_up(&key, Kind::Token, &hash, None).expect(403).json()["message"].as_str().unwrap().to_owned();
    let wrong = wallet.sign_message(&stranger, &message);
    assert_eq!(market.top_up(&key, Kind::Token, &hash, Some(&wrong)).expect(403).error(), "payer_proof_required");
    let right = wallet.sign_message(&owner, &message);
    let _ = market.top_up(&key, Kind::Token, &hash, Some(&right)).expect(200);
}
