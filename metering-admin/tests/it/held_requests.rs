//! Held requests, as operators see them.

use std::sync::Arc;

use metering_admin::wire::{AccountDocument, AccountRequestDocument};
use metering_admin::{AdminError, Administration};
use metering_core::charging::HoldId;
use metering_core::wire::RequestState;
use metering_core::{Account, ApiKey, Charge, Credits, Service, SystemRandomness};
use metering_sqlite::SqliteStore;

fn credits(text: &str) -> Credits {
    text.parse().unwrap()
}

/// A service and its operators, with an account of ten credits.
async fn scene() -> (Service, Administration, Account, ApiKey) {
    let store = Arc::new(SqliteStore::in_memory().unwrap());
    let service = Service::with_defaults(store.clone());
    let (account, key) = service.open_account("my-agent", credits("10")).await.unwrap();
    (service, Administration::new(store), account, key)
}

fn charge(key: &ApiKey, most: &str) -> Charge {
    Charge::new(key, credits(most), "POST", "/chat")
}

#[tokio::test]
async fn operators_see_what_an_account_holds_until_it_is_settled() {
    let (service, administration, account, key) = scene().await;
    let (other, other_key) = service.open_account("other", credits("1")).await.unwrap();
    let first = service.hold(charge(&key, "0.5"), Credits::ZERO).await.unwrap();
    let second = service.hold(charge(&key, "2"), Credits::ZERO).await.unwrap();
    let _others = service.hold(charge(&other_key, "1"), Credits::ZERO).await.unwrap();
    let held = async |limit| administration.held_requests(&account.id, limit).await.unwrap().requests;
    let amounts = |requests: &[AccountRequestDocument]| {
        let mut amounts: Vec<_> = requests.iter().map(|of| of.request.held.to_string()).collect();
        amounts.sort();
        amounts
    };
    let requests = held(10).await;
    assert_eq!(amounts(&requests), ["0.5", "2"]);
    let keys = administration.keys(&account.id, None, 10).await.unwrap().data;
    for of in &requests {
        assert_eq!((of.org_id.as_str(), &of.key_id, &of.key_name), (account.id.as_str(), &keys[0].id, &keys[0].name));
        assert_eq!(administration.request(&of.request.id.parse().unwrap()).await.unwrap(), *of);
    }
    assert_eq!(held(1).await.len(), 1);
    let document = AccountDocument::from(&administration.account(&account.id).await.unwrap());
    assert_eq!((document.credit_balance, document.credits_held), (credits("7.5"), credits("2.5")));
    assert_eq!(AccountDocument::from(&administration.account(&other.id).await.unwrap()).credits_held, credits("1"));

    let id = first.receipt().hold.unwrap().id;
    first.capture(credits("0.02")).await.unwrap();
    second.release().await.unwrap();
    assert_eq!(held(10).await, []);
    let settled = administration.request(&id).await.unwrap().request;
    assert_eq!(
        (settled.state, settled.charged, settled.released),
        (RequestState::Captured, credits("0.02"), credits("0.48"))
    );
    let document = AccountDocument::from(&administration.account(&account.id).await.unwrap());
    assert_eq!((document.credit_balance, document.credits_held), (credits("9.98"), Credits::ZERO));
}

#[tokio::test]
async fn unknown_requests_and_accounts_are_named() {
    let (_, administration, _, _) = scene().await;
    let id = HoldId::generate(&SystemRandomness);
    let missing = administration.request(&id).await.unwrap_err();
    assert!(matches!(&missing, AdminError::NotFound(text) if text.contains(&id.to_string())), "{missing}");
    let unknown = "org_00000000000000000000".parse().unwrap();
    let missing = administration.held_requests(&unknown, 10).await.unwrap_err();
    assert!(matches!(&missing, AdminError::NoSuchAccount(found) if *found == unknown), "{missing}");
}

#[test]
fn accounts_of_older_servers_hold_nothing() {
    let account = r#"{"org_id":"org_1","agent_name":"a","email":null,"email_status":null,"email_verified_at":null,
        "email_free_credits":null,"payer_address":null,"status":"active","credit_balance":1,"total_credits_purchased":0,
        "total_credits_granted":1,"total_credits_used":0,
        "rate_limits":{"requests_per_minute":0,"requests_per_day":0},"created_at":"2026-11-21T08:00:00.000Z",
        "revoked_at":null}"#;
    let document: AccountDocument = serde_json::from_str(account).unwrap();
    assert_eq!((document.credit_balance, document.credits_held), (credits("1"), Credits::ZERO));
}
