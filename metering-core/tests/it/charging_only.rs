//! A backend that implements only [`Store`] is enough for a service without plans and signups.

use std::sync::Arc;

use metering_core::money::{LedgerKind, NewLedgerEntry};
use metering_core::service::{AdmissionKind, RequestHead};
use metering_core::wire::{ChainIdInput, ErrorCode, InitiateRequest, QuoteRequest};
use metering_core::{
    AccountId, ApiKey, Catalogue, ClientSource, Clock, Credits, NewAccount, Service, ServiceConfig, Store, SystemClock,
    SystemRandomness,
};
use tokio::sync::Semaphore;

use crate::meter::gated::Gated;

const CATALOGUE: &str =
    r#"{"market": "M", "version": 1, "endpoints": [{"path": "/price", "method": "GET", "metered": true}]}"#;

/// A store for charging alone, whose gate is open.
fn charging_only() -> Arc<Gated> {
    Arc::new(Gated::passing(Semaphore::MAX_PERMITS))
}

#[tokio::test]
async fn a_service_charges_and_refunds_on_a_store_for_charging_alone() {
    let store = charging_only();
    let key = ApiKey::generate(&SystemRandomness);
    let id = AccountId::generate(&SystemRandomness);
    let mut account = NewAccount::new(id, "agent".parse().unwrap(), key.hash(), SystemClock.now());
    let free = Credits::from_whole(1).unwrap();
    account.entries = vec![NewLedgerEntry::new(LedgerKind::SignupBonus, free, "Free credits")];
    store.create_account(account).await.unwrap();
    let catalogue = Catalogue::from_json(CATALOGUE).unwrap();
    let service = Service::start(store, catalogue, ServiceConfig::default());
    let (key, source) = (Some(&key), ClientSource::Direct);
    let (method, path, address) = ("GET", "/price", None);
    let head = RequestHead {
        key,
        address,
        method,
        path,
        query: None,
        source,
        idempotency_key: None,
        body: None,
        payment: None,
    };
    let AdmissionKind::Charged(receipt) = service.admit(head).await.unwrap().kind else { panic!("not charged") };
    assert_eq!(service.usage().balance(key).await.unwrap().credit_balance, receipt.balance);
    service.refund(receipt).await.unwrap();
    assert_eq!(service.usage().balance(key).await.unwrap().credit_balance, free);
}

#[tokio::test]
async fn a_service_without_payments_and_signups_refuses_them() {
    let service = Service::start(charging_only(), Catalogue::from_json(CATALOGUE).unwrap(), ServiceConfig::default());
    service.payments().register_recipients().await.unwrap();
    assert!(service.payments().plans().await.unwrap().plans.is_empty());
    let quote = QuoteRequest {
        agent_name: Some("agent".to_owned()),
        plan_id: Some("starter".to_owned()),
        chain_id: Some(ChainIdInput(1)),
        token_symbol: Some("USDC".to_owned()),
        payer_address: Some(format!("0x{}", "1".repeat(40))),
        email: None,
    };
    assert_eq!(service.payments().quote(&quote).await.unwrap_err().code(), ErrorCode::PaymentNotConfigured);
    let signup = InitiateRequest { email: Some("a@b.example".to_owned()), agent_name: Some("agent".to_owned()) };
    assert_eq!(service.signups().initiate(&signup).await.unwrap_err().code(), ErrorCode::NotFound);
}
