//! Contracts for email addresses: each has at most one live account.

use std::sync::Arc;

use metering_core::store::{Created, NewAccount, Store};

use super::scene::{NOON, adjustment, create, new_account};

fn with_email(email: &str) -> NewAccount {
    NewAccount { email: Some(email.parse().unwrap()), entries: vec![adjustment(1)], ..new_account() }
}

/// Addresses that differ only in case are the same address, beyond ASCII too.
pub async fn email_uniqueness_ignores_case(store: Arc<dyn Store>) {
    create(&*store, with_email("Name@Example.com")).await;
    create(&*store, with_email("jörg@exämple.de")).await;
    for taken in ["Name@Example.com", "name@example.com", "NAME@EXAMPLE.COM", "JÖRG@EXÄMPLE.DE"] {
        let new = with_email(taken);
        assert_eq!(store.create_account(new.clone()).await.unwrap(), Created::EmailTaken, "{taken}");
        assert_eq!(store.account(&new.id).await.unwrap(), None, "{taken}");
        assert_eq!(store.account_by_key(&new.key).await.unwrap(), None, "{taken}");
    }
    assert_eq!(store.accounts(None, 10).await.unwrap().items.len(), 2);
    assert_eq!(store.ledger(None, 10).await.unwrap().items.len(), 2, "no entry was written");
    create(&*store, with_email("jorg@exämple.de")).await;
}

/// After a refusal for a taken email, the same id and key can be used with another email.
pub async fn refused_email_leaves_id_and_key_unused(store: Arc<dyn Store>) {
    create(&*store, with_email("a@example.com")).await;
    let new = with_email("a@example.com");
    assert_eq!(store.create_account(new.clone()).await.unwrap(), Created::EmailTaken);
    let created = create(&*store, NewAccount { email: Some("b@example.com".parse().unwrap()), ..new.clone() }).await;
    assert_eq!(created.id, new.id);
    assert_eq!(store.live_keys(&[new.key], NOON).await.unwrap(), [true]);
}

/// Revoking an account frees its address, again and again.
pub async fn an_email_is_free_again_after_revocation(store: Arc<dyn Store>) {
    for _ in 0..3 {
        let created = create(&*store, with_email("a@example.com")).await;
        assert_eq!(store.create_account(with_email("A@example.com")).await.unwrap(), Created::EmailTaken);
        store.revoke_account(&created.id, NOON).await.unwrap();
    }
    let emails = store.accounts(None, 10).await.unwrap().items;
    assert!(
        emails.iter().all(|account| account.email == Some("a@example.com".parse().unwrap())),
        "records are unchanged"
    );
    assert_eq!(emails.len(), 3);
}

/// Accounts without an email do not collide with each other.
pub async fn accounts_without_email_do_not_collide(store: Arc<dyn Store>) {
    for _ in 0..3 {
        create(&*store, new_account()).await;
    }
    assert_eq!(store.accounts(None, 10).await.unwrap().items.len(), 3);
}
