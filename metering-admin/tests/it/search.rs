//! One search for everything, and the lists newest first.

use std::sync::Arc;

use metering_admin::wire::{RevokedPaymentDocument, SearchDocument};
use metering_admin::{AdminError, Administration};
use metering_core::charging::HoldId;
use metering_core::clock::{Clock, SystemClock};
use metering_core::operators::AccountFilter;
use metering_core::prices::NewPriceVersion;
use metering_core::service::PaymentSettings;
use metering_core::store::PriceStore;
use metering_core::wire::ProcessorPaymentRequest;
use metering_core::{Account, Charge, Credits, Service, Store, SystemRandomness};
use metering_sqlite::SqliteStore;

fn scene() -> (Service, Administration) {
    let store = Arc::new(SqliteStore::in_memory().unwrap());
    (Service::with_defaults(store.clone()), Administration::new(store))
}

fn credits(text: &str) -> Credits {
    text.parse().unwrap()
}

fn names(found: &SearchDocument) -> Vec<&str> {
    found.accounts.iter().map(|account| account.agent_name.as_str()).collect()
}

#[tokio::test]
async fn accounts_and_keys_are_found_by_what_identifies_them() {
    let (service, administration) = scene();
    let (account, _) = service.open_account("my-agent", credits("1")).await.unwrap();
    service.open_account("My-other", credits("1")).await.unwrap();
    service.open_account("third", credits("1")).await.unwrap();
    let key = administration.keys(&account.id, None, 1).await.unwrap().data.remove(0);
    // text, kind, names
    let table: [(&str, &str, &[&str]); 10] = [
        (account.id.as_str(), "account", &["my-agent"]),
        (&key.id, "key", &["my-agent"]),
        ("my-", "name", &["My-other", "my-agent"]),
        ("agent", "name", &[]),
        ("nobody@example.com", "email", &[]),
        ("R-1-ABABABABABABABAB", "receipt", &[]),
        ("C-1-ABABABABABABABAB-1", "receipt", &[]),
        ("INV.2026-00001", "name", &[]),
        ("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "wallet", &[]),
        ("0x9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "transaction", &[]),
    ];
    for (text, kind, expected) in table {
        let found = administration.search(text, None).await.unwrap();
        assert_eq!((found.kind.as_str(), names(&found)), (kind, expected.to_vec()), "{text}");
        assert_eq!(found.next, None, "{text}");
    }
    let found = administration.search(&key.id, None).await.unwrap();
    assert_eq!((found.keys[0].key_id.as_str(), found.keys[0].org_id.as_str()), (key.id.as_str(), account.id.as_str()));
}

#[tokio::test]
async fn a_search_by_name_is_paged() {
    let (service, administration) = scene();
    for number in 0..25 {
        service.open_account(&format!("agent-{number}"), credits("1")).await.unwrap();
    }
    let first = administration.search("agent-", None).await.unwrap();
    assert_eq!((first.accounts.len(), names(&first)[0]), (20, "agent-24"));
    let after = first.next.map(metering_core::store::Cursor::new);
    let rest = administration.search("agent-", after.as_ref()).await.unwrap();
    assert_eq!(names(&rest), ["agent-4", "agent-3", "agent-2", "agent-1", "agent-0"]);
    assert_eq!(rest.next, None);
}

#[tokio::test]
async fn a_secret_is_not_searched() {
    let (service, administration) = scene();
    let (_, key) = service.open_account("my-agent", credits("1")).await.unwrap();
    let error = administration.search(key.expose(), None).await.unwrap_err();
    assert!(matches!(error, AdminError::Request(_)), "{error:?}");
    assert!(!error.to_string().contains(key.expose()), "{error}");
}

#[tokio::test]
async fn a_request_is_found_with_what_explains_its_charge() {
    let (service, administration) = scene();
    let (account, key): (Account, _) = service.open_account("my-agent", credits("10")).await.unwrap();
    let hold = service.hold(Charge::new(&key, credits("2"), "POST", "/chat"), Credits::ZERO).await.unwrap();
    let id = hold.receipt().hold.unwrap().id;
    let open = administration.search(&id.to_string(), None).await.unwrap();
    assert_eq!((open.kind.as_str(), open.requests[0].balance_after), ("request", None));
    hold.capture(credits("0.5")).await.unwrap();
    let found = administration.search(&id.to_string(), None).await.unwrap();
    let request = &found.requests[0];
    assert_eq!((names(&found), request.request.org_id.as_str()), (vec!["my-agent"], account.id.as_str()));
    assert_eq!(request.request.request.charged, credits("0.5"));
    assert_eq!(request.request.request.released, credits("1.5"));
    assert_eq!((request.balance_after, request.price_version), (Some(credits("9.5")), None));
    let unknown = HoldId::generate(&SystemRandomness).to_string();
    assert!(administration.search(&unknown, None).await.unwrap().requests.is_empty());
}

#[tokio::test]
async fn a_request_that_held_nothing_is_explained() {
    let store = Arc::new(SqliteStore::in_memory().unwrap());
    let (service, administration) = (Service::with_defaults(store.clone()), Administration::new(store.clone()));
    let (account, key) = service.open_account("my-agent", credits("10")).await.unwrap();
    let catalogue = r#"{"market": "M", "version": 1, "endpoints": [{"path": "/report", "method": "GET", "metered": true,
        "credit_weight": 72, "params": [{"name": "seconds", "in": "query", "type": "integer", "required": true}],
        "billing_modifier": {"type": "lookback_multiplier", "param": "seconds",
            "tiers": [{"max_seconds": 600, "multiplier": 1}], "overflow_multiplier": 2.5}}]}"#;
    let now = SystemClock.now();
    let new = NewPriceVersion { catalogue: catalogue.into(), since: now, recorded_at: now, applied_by: None };
    store.record_prices(new).await.unwrap();
    let receipt = service.charge(Charge::new(&key, credits("0.025"), "GET", "/report")).await.unwrap();
    let request = HoldId::at(now, &SystemRandomness);
    let id = request.of_charge(&key.hash(), "/report", receipt.rate.at, true);
    service.charge(Charge::new(&key, credits("1"), "GET", "/other")).await.unwrap();

    let found = administration.search(&id.to_string(), None).await.unwrap();
    assert_eq!((names(&found), &found.note), (vec!["my-agent"], &None));
    let charged = &found.requests[0];
    assert_eq!((charged.request.org_id.as_str(), charged.price_version), (account.id.as_str(), Some(1)));
    let words = charged.request.request.explanation.as_deref().unwrap();
    assert!(words.starts_with("GET /report was charged 0.025 credits to the key "), "{words}");
    assert!(words.ends_with("; its look-back makes it 2.5 times 0.01 credits."), "{words}");
    assert_eq!(administration.request(&id).await.unwrap(), charged.request);

    // Nothing was charged under this id.
    let found = administration.search(&request.to_string(), None).await.unwrap();
    assert!(found.requests.is_empty() && found.note.as_deref().unwrap().contains("nothing was charged under this id"));
    let missing = administration.request(&request).await.unwrap_err();
    assert!(matches!(&missing, AdminError::NotFound(text) if text.contains("nothing was charged")), "{missing}");
}

#[tokio::test]
async fn a_list_newest_first_may_be_searched() {
    let (service, administration) = scene();
    for name in ["one", "two", "another-one"] {
        service.open_account(name, credits("1")).await.unwrap();
    }
    let page = administration.newest_accounts(Some("ONE"), &AccountFilter::default(), None, 10).await.unwrap();
    let found: Vec<_> = page.items.iter().map(|account| account.agent_name.as_str()).collect();
    assert_eq!((found, page.next), (vec!["another-one", "one"], None));
}

/// A shop with a customer who paid ten euros at two processors.
async fn shop() -> (Arc<SqliteStore>, Service, Administration, Account) {
    let store = Arc::new(SqliteStore::in_memory().unwrap());
    let service = Service::with_defaults(store.clone());
    let service = service.with_payments(store.clone(), Default::default(), PaymentSettings::default());
    let administration = Administration::new(store.clone());
    let (account, _) = service.open_account("my-agent", credits("1")).await.unwrap();
    for processor in ["stripe", "paddle"] {
        service.payments().credit_from_processor(&paid(&account, processor, "pi_1")).await.unwrap();
    }
    (store, service, administration, account)
}

fn paid(account: &Account, processor: &str, id: &str) -> ProcessorPaymentRequest {
    serde_json::from_value(serde_json::json!({
        "processor": processor, "id": id, "org_id": account.id.as_str(),
        "amount": "10.00", "currency": "EUR", "credits": 100,
    }))
    .unwrap()
}

#[tokio::test]
async fn payments_for_revoked_accounts_are_to_be_refunded() {
    let (store, service, administration, _) = shop().await;
    let (gone, _) = service.open_account("gone", credits("1")).await.unwrap();
    store.revoke_account(&gone.id, gone.created_at).await.unwrap();
    assert!(administration.payments_to_refund(10).await.unwrap().is_empty());
    let credited = service.payments().credit_from_processor(&paid(&gone, "paddle", "pi_2")).await.unwrap();
    assert!(credited.account_revoked);
    let listed = administration.payments_to_refund(10).await.unwrap();
    let [RevokedPaymentDocument { org_id, processor, processor_id, paid: amount, .. }] = &listed[..] else {
        panic!("{listed:?}")
    };
    assert_eq!([org_id, processor, processor_id, amount], [gone.id.as_str(), "paddle", "pi_2", "10 EUR"]);
}

#[tokio::test]
async fn a_processors_payment_is_found_by_its_id() {
    let (_, _, administration, _) = shop().await;
    for (text, processor) in [("stripe:pi_1", "stripe"), ("paddle:pi_1", "paddle"), ("pi_1", "stripe")] {
        let found = administration.search(text, None).await.unwrap();
        let processors: Vec<_> = found.payments.iter().map(|payment| payment.processor.as_deref()).collect();
        assert_eq!((processors, names(&found)), (vec![Some(processor)], vec!["my-agent"]), "{text}");
    }
    assert!(administration.search("paddle:pi_2", None).await.unwrap().payments.is_empty());
}
