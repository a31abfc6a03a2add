//! Contracts for several steps in one transaction: all or nothing, and exact about what they name.

use std::sync::Arc;

use metering_core::access::{Account, AccountId};
use metering_core::charging::Posting;
use metering_core::clock::Timestamp;
use metering_core::money::NewLedgerEntry;
use metering_core::operators::{Actor, AuditEntry, AuditOutcome, AuditQuery, AuditResult, NewAuditEntry};
use metering_core::store::{Created, FullStore, KeyChange, KeyChanged, NewAccount, Posted, StoreError, in_transaction};

use super::scene::{
    NOON, Verified, accepted, account, adjustment, balance, charge, customer, new_account, new_key, racing,
};

const TASKS: usize = 16;

fn entry(account: &Account) -> NewAuditEntry {
    NewAuditEntry {
        at: NOON,
        actor: Actor::Operator("jo".parse().unwrap()),
        action: "account.grant".to_owned(),
        subject: account.id.to_string(),
        reason: "an apology".to_owned(),
        request: "{}".to_owned(),
        before: Some(account.totals.balance.atoms().to_string()),
    }
}

fn outcome(account: &Account) -> AuditOutcome {
    let after = Some(account.totals.balance.atoms().to_string());
    AuditOutcome { at: NOON, result: AuditResult::Done, detail: String::new(), after }
}

type Grant = (AccountId, NewLedgerEntry, Timestamp);

/// Posts an entry, and logs it with the balance before and after it.
async fn granted(store: &dyn FullStore, (id, grant, now): &Grant) -> Result<Account, StoreError> {
    let before = store.lock_account(id).await?.expect("the account exists");
    let Posted::Account(after) = store.post_entry(id, grant.clone(), *now).await? else { panic!("not posted") };
    assert_eq!(store.account(id).await?.as_ref(), Some(&after), "a step sees what earlier ones wrote");
    store.log_action(entry(&before), outcome(&after)).await?;
    Ok(after)
}

/// The writes of steps are visible to others after the commit, and to later steps before it.
pub async fn steps_of_a_transaction_are_committed_together(store: Verified<dyn FullStore>) {
    let id = customer(&*store, 2).await.id;
    let args = (id.clone(), adjustment(3), NOON);
    let after = in_transaction(&*store, args, |store, args| Box::pin(granted(store, args))).await.unwrap();
    assert_eq!((after.totals.balance.atoms(), account(&*store, &id).await), (5, after));
    let log = store.audit_log(&AuditQuery::default(), 10).await.unwrap();
    let texts = |entry: &AuditEntry| {
        (entry.entry.before.clone(), entry.outcome.as_ref().and_then(|outcome| outcome.after.clone()))
    };
    assert_eq!(log.iter().map(texts).collect::<Vec<_>>(), [(Some("2".to_owned()), Some("5".to_owned()))]);
}

/// If steps fail, nothing that they wrote stays, and their error is returned unchanged.
pub async fn a_transaction_that_fails_leaves_nothing(store: Verified<dyn FullStore>) {
    let id = customer(&*store, 2).await.id;
    let before = account(&*store, &id).await;
    let args = (id.clone(), adjustment(3), NOON);
    let failed = in_transaction(&*store, args, |store, args| {
        Box::pin(async move {
            granted(store, args).await?;
            Err::<(), _>(StoreError::Unavailable("changed my mind".into()))
        })
    })
    .await;
    let is_ours = matches!(&failed, Err(StoreError::Unavailable(cause)) if cause.to_string() == "changed my mind");
    assert!(is_ours, "{failed:?}");
    assert_eq!(account(&*store, &id).await, before);
    assert_eq!(store.audit_log(&AuditQuery::default(), 10).await.unwrap(), []);
    assert_eq!(store.account_ledger(&id, None, 10).await.unwrap().items.len(), 1);
}

/// A failed step undoes the others, even if they continue.
pub async fn a_failed_step_fails_its_transaction(store: Arc<dyn FullStore>) {
    let customer = customer(&*store, 2).await;
    let repeated = NewAccount { id: customer.id.clone(), ..new_account() };
    let args = ((customer.id.clone(), adjustment(3), NOON), repeated);
    let failed = in_transaction(&*store, args, |store, (grant, repeated)| {
        Box::pin(async move {
            granted(store, grant).await?;
            assert!(store.create_account(repeated.clone()).await.is_err(), "the id is in use");
            Ok(())
        })
    })
    .await;
    assert!(failed.is_err());
    assert_eq!(balance(&*store, &customer.id).await, 2);
    assert_eq!(store.audit_log(&AuditQuery::default(), 10).await.unwrap(), []);
}

/// Operations that cannot be part of a transaction fail in one, and have no effect.
pub async fn a_transaction_does_not_charge(store: Arc<dyn FullStore>) {
    let customer = customer(&*store, 2).await;
    let failed = in_transaction(&*store, customer.key, |store, key| {
        Box::pin(async move { store.commit(vec![Posting::Charge(charge(*key, 1))], NOON).await })
    });
    assert!(failed.await.is_err(), "a charge in a transaction");
    assert_eq!(balance(&*store, &customer.id).await, 2);
}

/// Charges are decided with the keys that a transaction creates or changes as soon as it is committed.
pub async fn a_transaction_changes_accounts_for_the_next_charge(store: Arc<dyn FullStore>) {
    let (secret, new) = (new_key(), new_account());
    let args = (NewAccount { entries: vec![adjustment(5)], ..new }, secret);
    let id = in_transaction(&*store, args, |store, (new, secret)| {
        Box::pin(async move {
            let Created::Account(account) = store.create_account(new.clone()).await? else { panic!("not created") };
            let first = store.keys(&account.id, None, 1, NOON.day()).await?.items.remove(0).key.id;
            let rotate = KeyChange::Rotate { secret: *secret, old_until: None };
            let rotated = store.change_key(&account.id, &first, None, rotate, NOON).await?;
            assert!(matches!(rotated, KeyChanged::Key(_)), "{rotated:?}");
            Ok(account.id)
        })
    })
    .await
    .unwrap();
    accepted(&*store, charge(secret, 1), NOON).await;
    assert_eq!(balance(&*store, &id).await, 4);
}

/// Concurrent transactions on one account each report the exact balance before and after, no matter which charges come
/// between.
pub async fn concurrent_transactions_name_exact_balances(store: Verified<dyn FullStore>) {
    let customer = customer(&*store, 1_000).await;
    racing(&store, 0..TASKS, |store, task| {
        let customer = customer.clone();
        async move {
            let args = (customer.id, adjustment(1_000), NOON);
            if task % 2 == 0 {
                in_transaction(&*store, args, |store, args| Box::pin(granted(store, args))).await.unwrap();
            } else {
                accepted(&*store, charge(customer.key, 1), NOON).await;
            }
        }
    })
    .await;
    let log = store.audit_log(&AuditQuery::default(), u32::MAX).await.unwrap();
    assert_eq!(log.len(), TASKS / 2);
    let mut last = 1_000;
    for entry in log.iter().rev() {
        let number = |text: &Option<String>| text.as_ref().unwrap().parse::<i64>().unwrap();
        let (before, after) = (number(&entry.entry.before), number(&entry.outcome.as_ref().unwrap().after));
        assert_eq!(after - before, 1_000, "{entry:?}");
        assert!(before <= last && last - before <= 8, "only charges come between: {last}, then {before}");
        last = after;
    }
}
