//! Everything that a store reports through the contract.

use metering_core::operators::AuditQuery;
use metering_core::payments::ProcessorRef;
use metering_core::usage::{Activity, DayRange};
use metering_core::{Account, Day, FullStore, Store, Timestamp};

use super::filling::{quote, tx, wallet};
use super::{NOON, authorizations, events, holds, keys};

const ALWAYS: DayRange = DayRange { first: Day::from_unix_days(-1_000_000), last: Day::from_unix_days(1_000_000) };

/// Every result of every reading method, as text.
pub(crate) async fn snapshot(store: &dyn FullStore) -> Vec<String> {
    let accounts = store.accounts(None, u32::MAX).await.unwrap().items;
    let mut texts: Vec<String> = accounts.iter().map(|account| format!("{account:?}")).collect();
    texts.push(format!("{:?}", store.ledger(None, u32::MAX).await.unwrap().items));
    let mut totals = store.daily_totals(None, u32::MAX).await.unwrap().items;
    // By ascending day; the order within a day depends on the backend.
    totals.sort_by(|a, b| (a.day, &a.account, &a.line, a.key).cmp(&(b.day, &b.account, &b.line, b.key)));
    texts.push(format!("{totals:?}"));
    texts.push(format!("{:?}", store.payments(None, u32::MAX).await.unwrap().items));
    texts.push(format!("{:?}", store.plans().await.unwrap()));
    texts.push(format!("{:?}", store.verify().await.unwrap()));
    for account in &accounts {
        texts.extend(account_snapshot(store, account).await);
    }
    texts.push(format!("{:?}", store.expired_holds(Timestamp::from_unix_millis(i64::MAX), u32::MAX).await.unwrap()));
    for secret in keys::secrets() {
        texts.push(format!("{:?}", store.key_holder(&secret).await.unwrap()));
    }
    for number in 0..60 {
        texts.push(format!("{:?}", store.quote(&quote(number).nonce).await.unwrap()));
        texts.push(format!("{:?}", store.payment(&tx(number)).await.unwrap()));
        texts.push(format!("{:?}", store.account_by_payer(&wallet(number)).await.unwrap()));
        texts.push(format!("{:?}", store.linked_accounts(&wallet(number)).await.unwrap()));
    }
    for chain in [1, 8453, u64::MAX] {
        texts.push(format!("{:?}", store.scan_mark(chain).await.unwrap()));
        texts.push(format!("{:?}", store.unreadable(chain, 0, u32::MAX).await.unwrap()));
    }
    texts.push(format!("{:?}", store.unclaimed(None, u32::MAX).await.unwrap()));
    let processor = ProcessorRef::new("stripe", "pi_1").unwrap();
    texts.push(format!("{:?}", store.processor_reversals(&processor.tx().hash).await.unwrap()));
    for account in &accounts {
        texts.push(format!("{:?}", store.top_up_quotes(&account.id).await.unwrap()));
        texts.push(format!("{:?}", store.issued_receipts(&account.id).await.unwrap()));
        texts.push(format!("{:?}", store.auto_top_up(&account.id).await.unwrap()));
        texts.push(format!("{:?}", store.top_up_charges(&account.id, NOON).await.unwrap()));
        texts.push(format!("{:?}", store.oauth_grants(&account.id).await.unwrap()));
    }
    texts.push(format!("{:?}", store.challenge("nonce").await.unwrap()));
    texts.push(format!("{:?}", store.recipients().await.unwrap()));
    texts.push(format!("{:?}", store.receipt_terms().await.unwrap()));
    texts.push(format!("{:?}", store.refill().await.unwrap()));
    texts.push(format!("{:?}", store.operators().await.unwrap()));
    texts.push(format!("{:?}", store.audit_log(&AuditQuery::default(), u32::MAX).await.unwrap()));
    texts.extend(authorizations::snapshot(store).await);
    texts.extend(events::snapshot(store, accounts.iter().map(|account| &account.id)).await);
    let report = store.operations_report(ALWAYS).await.map_err(|error| error.to_string());
    texts.push(format!("{report:?}"));
    texts
}

pub(crate) async fn account_snapshot(store: &dyn Store, account: &Account) -> [String; 6] {
    // Not every sum fits: the credits added can exceed the range, because more was granted than the balance ever had.
    let report = store.usage_report(&account.id, ALWAYS).await.map_err(|error| error.to_string());
    // As many as every store keeps. The ids differ between stores.
    let activity = store.activity(&account.id, metering_core::usage::ACTIVITY_KEPT).await.unwrap();
    let nameless: Vec<Activity> = activity.into_iter().map(|entry| Activity { id: String::new(), ..entry }).collect();
    let keys = store.keys(&account.id, None, u32::MAX, NOON.day()).await.unwrap().items;
    let labels = store.key_labels(&account.id).await.unwrap();
    let holds = holds::snapshot(store, &account.id).await;
    let volumes = store.volumes(&account.id).await.unwrap();
    [
        format!("{report:?}"),
        format!("{nameless:?}"),
        format!("{keys:?}"),
        format!("{labels:?}"),
        holds,
        format!("{volumes:?}"),
    ]
}
