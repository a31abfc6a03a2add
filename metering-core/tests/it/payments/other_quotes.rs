//! Claims with the wrong one of a wallet's quotes.

use super::scene::{MAIN, Scene, claim_request, code};
use super::wallet::Wallet;

#[tokio::test]
async fn the_first_of_two_quotes_is_claimed_with_the_wallets_signature() {
    for plan in ["starter", "coin"] {
        let scene = Scene::new().await;
        let (wallet, thief) = (Wallet::of(1), Wallet::of(2));
        let first = scene.quote(&wallet, plan, MAIN).await.unwrap();
        let hash = scene.pay(&wallet, &first);
        let second = scene.quote(&wallet, "starter", MAIN).await.unwrap();
        let mut request = claim_request(&second.signup_nonce, hash);
        let body = scene.service.payments().claim(&request).await.unwrap_err().body();
        assert_eq!(body.error.as_str(), "payment_mismatch");
        assert!(body.message.contains("Another open quote of this wallet"), "{}", body.message);
        let text = body.proof_message.unwrap();
        request.signature = Some(thief.sign(&text));
        let body = scene.service.payments().claim(&request).await.unwrap_err().body();
        assert!(body.message.contains("not by that wallet") && body.proof_message.as_ref() == Some(&text));
        request.signature = Some(wallet.sign(&text));
        let claimed = scene.service.payments().claim(&request).await.unwrap();
        assert_eq!((claimed.plan_id.as_str(), claimed.tx_hash), (plan, hash.to_string()));
        // Once, even for another holder of the signature.
        assert_eq!(code(scene.service.payments().claim(&request).await), "tx_already_used");
        // A wallet that requests a quote in the name of another learns nothing.
        let stranger = scene.quote(&thief, "starter", MAIN).await.unwrap();
        let other = scene.quote(&Wallet::of(3), "starter", MAIN).await.unwrap();
        let paid = scene.pay(&Wallet::of(3), &other);
        let refused =
            scene.service.payments().claim(&claim_request(&stranger.signup_nonce, paid)).await.unwrap_err().body();
        assert!(refused.proof_message.is_none());
    }
}

#[tokio::test]
async fn a_payment_that_the_watcher_used_for_another_quote_leads_to_the_wallets_key() {
    let scene = Scene::new().await;
    let wallet = Wallet::of(1);
    let first = scene.quote(&wallet, "starter", MAIN).await.unwrap();
    let second = scene.quote(&wallet, "starter", MAIN).await.unwrap();
    let hash = scene.pay(&wallet, &first);
    scene.main.grow(10);
    scene.service.payments().watch(MAIN, Some(0)).await.unwrap();
    let body = scene.claim(&second.signup_nonce, hash).await.unwrap_err().body();
    assert_eq!(body.error.as_str(), "tx_already_used");
    assert!(body.message.contains("/api-key/recover/challenge"), "{}", body.message);
}
