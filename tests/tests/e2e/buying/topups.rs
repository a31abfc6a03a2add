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
}
