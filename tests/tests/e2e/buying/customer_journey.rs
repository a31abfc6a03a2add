//! A customer's whole path: plans, quote, payment, claim, calls, top-up, rotation. An independent wallet library makes
//! the transactions and signatures.

use std::time::{Duration, Instant};

use crate::support::shop::{Kind, Shop, key_of};

#[test]
fn customer_pays_calls_tops_up_and_rotates() {
    for kind in Kind::BOTH {
        let Some(shop) = Shop::open() else { return };
        let plans = shop.client().get("/credits/plans").expect(200).json();
        assert_eq!(plans["plans"].as_array().unwrap().len(), 2, "{plans}");
        assert_eq!(plans["chains"][0]["rpc_url"], "", "the operator's own RPC URL is not published");

        let customer = shop.customer();
        let quote = shop.quote(kind, customer.checksummed());
        assert!(quote.units > kind.price());
        let hash = shop.pay(kind, &customer, quote.units);
        let claimed = shop.claim(&quote, &hash).expect(200);
        let old_key = key_of(&claimed);
        assert_eq!(claimed.json()["plan_id"], kind.plan());
        assert_eq!(claimed.json()["chain_id"], shop.chain.chain_id());
        assert_eq!(claimed.json()["tx_hash"], hash);

        let client = shop.server.client_with(&old_key);
        let _ = client.get("/mpp/ethPrice").expect(200);
        let balance = client.get("/credits/balance").expect(200);
        assert_eq!(balance.json()["payer_address"], customer.address());
        assert_eq!(balance.member("total_credits_purchased"), kind.credits());
        assert_eq!(balance.member("total_credits_granted"), "2");
        let activity = client.get("/credits/usage").expect(200).json();
        let purchase = activity["transactions"].as_array().unwrap().iter().find(|e| e["type"] == "purchase_pay_signup");
        let purchase = purchase.unwrap_or_else(|| panic!("no purchase in {activity}"));
        assert_eq!((&purchase["tx_hash"], &purchase["plan_id"]), (&hash.clone().into(), &kind.plan().into()));

        let topped = shop.top_up(&old_key, kind, &shop.pay(kind, &customer, kind.price()), None).expect(200);
        assert_eq!(
            (topped.member("amount_added"), topped.member("already_credited")),
            (kind.credits().into(), "false".into())
        );

        let stream = client.open("/mpp/stream/allTrades");
        assert_eq!(stream.status, 200);
        let (nonce, message) = shop.challenge(&customer.address());
        let signature = shop.chain.wallet().sign_message(&customer, &message);
        let rotated = shop.verify(customer.checksummed(), &nonce, &signature).expect(200);
        let new_key = key_of(&rotated);
        assert_eq!(client.get("/mpp/ethPrice").status, 401);
        assert_eq!(shop.server.client_with(&new_key).get("/mpp/ethPrice").expect(200).status, 200);
        let started = Instant::now();
        let _ = stream.finish().expect("the stream ends properly");
        assert!(started.elapsed() < Duration::from_secs(50), "the old key's stream continued");
        shop.site.verify();
    }
}
