//! Quotes: their contents, and when they are refused.

use metering_core::chains::{Address, TokenUnits};
use metering_core::payments::{NonceHash, Plan, Quote, QuoteNonce};
use metering_core::store::QuoteOpened;
use metering_core::wire::{ChainIdInput, QuoteRequest};
use metering_core::{Error, PaymentStore};

use super::scene::{COIN, MAIN, NATIVE, RECIPIENT, SIDE, STARTER, Scene, code, plan, quote_request};
use super::wallet::Wallet;

#[tokio::test]
async fn a_quote_says_all_that_is_needed_to_pay() {
    let scene = Scene::new().await;
    let quote = scene.quote(&Wallet::of(1), "starter", MAIN).await.unwrap();
    let units: u128 = quote.amount_atomic.parse().unwrap();
    assert!((STARTER + 1..STARTER + 10_000).contains(&units), "{units}");
    assert_eq!(quote.amount_human, format!("5.{:06}", units - STARTER).trim_end_matches('0'));
    assert_eq!(quote.recipient, RECIPIENT.to_checksummed());
    assert_eq!((quote.chain_id, quote.token_decimals, quote.token_symbol.as_str()), (MAIN, 6, "USDC"));
    assert_eq!(quote.rpc_hint, None);
    assert_eq!(quote.expires_at, "2026-11-21T12:30:00.000Z");
    assert!(quote.notice.contains(&quote.amount_human) && quote.notice.contains("claim"), "{}", quote.notice);
    let coin = scene.quote(&Wallet::of(1), "coin", MAIN).await.unwrap();
    assert!(coin.amount_atomic.parse::<u128>().unwrap() > COIN);
    assert_eq!(coin.token_contract, NATIVE.to_string());
}

#[tokio::test]
async fn all_missing_fields_are_named_together() {
    let scene = Scene::new().await;
    let Err(Error::ValidationFailed(fields)) = scene.service.payments().quote(&QuoteRequest::default()).await else {
        panic!("a quote without any field was accepted");
    };
    let names: Vec<_> = fields.keys().map(String::as_str).collect();
    assert_eq!(names, ["agent_name", "chain_id", "payer_address", "plan_id", "token_symbol"]);
}

#[tokio::test]
async fn invalid_requests_are_refused_with_their_code() {
    let scene = Scene::new().await;
    type Change = fn(&mut QuoteRequest);
    // case, change, code
    let table: [(&str, Change, &str); 9] = [
        ("a name with a space", |r| r.agent_name = Some("a b".into()), "validation_failed"),
        ("a broken address", |r| r.payer_address = Some("0x12".into()), "validation_failed"),
        (
            "a bad checksum",
            |r| r.payer_address = Some("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD".into()),
            "validation_failed",
        ),
        ("the zero address", |r| r.payer_address = Some(NATIVE.to_string()), "validation_failed"),
        ("a broken email", |r| r.email = Some("nobody".into()), "validation_failed"),
        ("another chain", |r| r.chain_id = Some(ChainIdInput(5)), "unsupported_chain"),
        ("another plan", |r| r.plan_id = Some("none".into()), "unknown_plan"),
        ("a plan in upper case", |r| r.plan_id = Some("STARTER".into()), "unknown_plan"),
        ("another token", |r| r.token_symbol = Some("DAI".into()), "unsupported_token"),
    ];
    for (what, change, expected) in table {
        let mut request = quote_request(&Wallet::of(1), "starter", MAIN);
        change(&mut request);
        assert_eq!(code(scene.service.payments().quote(&request).await), expected, "{what}");
    }
}

#[tokio::test]
async fn a_plan_whose_token_is_another_is_not_sold() {
    let scene = Scene::new().await;
    scene.main.deploy_token(plan("starter", MAIN).token_contract, 18);
    assert_eq!(code(scene.quote(&Wallet::of(1), "starter", MAIN).await), "payment_not_configured");
    let unknown = Plan { token_contract: RECIPIENT, ..plan("starter", MAIN) };
    scene.store.put_plans(vec![unknown]).await.unwrap();
    assert_eq!(code(scene.quote(&Wallet::of(1), "starter", MAIN).await), "payment_not_configured");
}

#[tokio::test]
async fn a_plan_off_sale_is_not_sold_but_its_quotes_are_honoured() {
    let scene = Scene::new().await;
    let wallet = Wallet::of(1);
    let quote = scene.quote(&wallet, "starter", MAIN).await.unwrap();
    scene.store.remove_plan(&plan("starter", MAIN).key()).await.unwrap();
    assert_eq!(code(scene.quote(&wallet, "starter", MAIN).await), "unknown_plan");
    let hash = scene.pay(&wallet, &quote);
    let response = scene.claim(&quote.signup_nonce, hash).await.unwrap();
    assert_eq!(response.credit_balance.to_string(), "12.5");
}

#[tokio::test]
async fn wallet_with_an_account_is_told_to_top_up() {
    let scene = Scene::new().await;
    let wallet = Wallet::of(1);
    scene.customer(&wallet, MAIN).await;
    assert_eq!(code(scene.quote(&wallet, "starter", MAIN).await), "payer_already_registered");
}

#[tokio::test]
async fn an_email_in_use_is_refused() {
    let scene = Scene::new().await;
    let with_email = |wallet: &Wallet| QuoteRequest {
        email: Some("Someone@Example.com".to_owned()),
        ..quote_request(wallet, "starter", MAIN)
    };
    let wallet = Wallet::of(1);
    let quote = scene.service.payments().quote(&with_email(&wallet)).await.unwrap();
    let hash = scene.pay(&wallet, &quote);
    scene.claim(&quote.signup_nonce, hash).await.unwrap();
    assert_eq!(code(scene.service.payments().quote(&with_email(&Wallet::of(2))).await), "email_already_registered");
}

#[tokio::test]
async fn amounts_of_a_wallets_open_quotes_differ() {
    let scene = Scene::new().await;
    let (wallet, mut amounts) = (Wallet::of(1), std::collections::HashSet::new());
    for _ in 0..200 {
        let quote = scene.quote(&wallet, "starter", MAIN).await.unwrap();
        assert!(amounts.insert(quote.amount_atomic), "two quotes have the same amount");
    }
}

/// Sales continue even if every tag of a price is in use by other wallets' unpaid quotes.
#[tokio::test]
async fn unpaid_quotes_of_others_cannot_stop_sales() {
    let scene = Scene::new().await;
    let first = scene.quote(&Wallet::of(2), "starter", MAIN).await.unwrap();
    let nonce = QuoteNonce::parse(&first.signup_nonce).unwrap().hash();
    let template = scene.store.quote(&nonce).await.unwrap().unwrap();
    for tag in 1..10_000_u128 {
        let (mut nonce, mut payer) = ([0; 32], [1; 20]);
        nonce[..16].copy_from_slice(&tag.to_be_bytes());
        payer[..16].copy_from_slice(&tag.to_be_bytes());
        let quote = Quote {
            nonce: NonceHash::from_bytes(nonce),
            payer: Address::from_bytes(payer),
            amount: TokenUnits::new(STARTER + tag),
            ..template.clone()
        };
        assert_eq!(scene.store.open_quote(quote).await.unwrap(), QuoteOpened::Opened, "{tag}");
    }
    for number in 3..=20 {
        let wallet = Wallet::of(number);
        let quote = scene.quote(&wallet, "starter", MAIN).await.unwrap();
        let hash = scene.pay(&wallet, &quote);
        assert_eq!(scene.claim(&quote.signup_nonce, hash).await.unwrap().credit_balance.to_string(), "12.5");
    }
}

#[tokio::test]
async fn contracts_are_not_sold_native_plans_and_may_pay_in_tokens() {
    let scene = Scene::new().await;
    let contract = Wallet::of(9);
    scene.main.deploy_contract(contract.address);
    let refused = scene.quote(&contract, "coin", MAIN).await.unwrap_err();
    assert_eq!(refused.code().as_str(), "payer_is_contract");
    assert!(refused.to_string().contains("Do not pay"), "{refused}");
    scene.quote(&contract, "starter", MAIN).await.unwrap();
    // On other chains it is an ordinary address.
    scene.quote(&contract, "coin", SIDE).await.unwrap();
    scene.main.trouble(Some(metering_core::chains::ChainError::Unavailable("down".to_owned())));
    assert_eq!(
        code(scene.quote(&Wallet::of(1), "coin", MAIN).await),
        "rpc_error",
        "it is unknown whether the payer is a contract"
    );
}
