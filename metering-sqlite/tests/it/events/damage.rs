//! Damaged rows: errors name the column, and never the value, which may be secret.

use metering_core::store::EventStore;
use metering_core::{Store, StoreError};
use metering_sql::transfer;
use metering_sqlite::SqliteStore;

use super::{claim, send, webhook};
use crate::contract::fast_folder;
use crate::scene::{NOON, account, charge, execute};

/// Reads everything of the account.
async fn read(store: &SqliteStore, id: &metering_core::AccountId) -> Result<(), StoreError> {
    let _ = store.account(id).await?;
    let _ = store.webhooks(Some(id)).await?;
    let _ = store.events(id, None, 10).await?;
    let _ = store.deliveries(Some(id), Default::default(), None, 10).await?;
    let sections = [transfer::Section::Webhooks, transfer::Section::Events, transfer::Section::Deliveries];
    for section in sections {
        let _ = transfer::Export::export(store, section, None, 10).await?;
    }
    Ok(())
}

#[tokio::test]
async fn damaged_rows_name_their_column() {
    // damage, column
    let table = [
        ("UPDATE webhook SET public_id = x'00'", "webhook.public_id: "),
        ("UPDATE webhook SET url = 'topsecret'", "webhook.url: "),
        ("UPDATE webhook SET kinds = 'topsecret'", "webhook.kinds: "),
        ("UPDATE webhook SET state = 'odd'", "webhook.state: "),
        ("UPDATE webhook SET secret = 'topsecret'", "webhook.secret: "),
        ("UPDATE webhook SET old_secret = 'topsecret'", "webhook.old_secret: "),
        ("UPDATE event SET kind = 'odd'", "event.kind: "),
        ("UPDATE delivery SET state = 'odd'", "delivery.state: "),
        ("UPDATE delivery SET attempts = -1", "delivery.attempts: "),
        ("UPDATE delivery SET last_at = 1, last_status = 65536", "delivery.last_status: "),
        ("UPDATE meter SET alert_raised = 5", "meter.alert_raised: "),
    ];
    for (damage, expected) in table {
        let folder = fast_folder();
        let file = folder.path().join("metering.db");
        let store = SqliteStore::open(&file).unwrap();
        let (id, _) = account(&store, 5).await;
        let hook = webhook(&store, &id).await;
        send(&store, &hook, 2).await;
        read(&store, &id).await.unwrap();
        execute(&file, &format!("PRAGMA ignore_check_constraints = on; {damage}"));
        match read(&store, &id).await {
            Err(StoreError::Corrupt(problem)) => assert!(problem.starts_with(expected), "{damage}: {problem}"),
            other => panic!("{damage}: {other:?}"),
        }
        let problem = read(&store, &id).await.unwrap_err().to_string();
        assert!(damage.contains("kinds") || !problem.contains("topsecret"), "{damage}: {problem}");
    }
}

/// A delivery that cannot be read is put off. Those of others are claimed as ever.
#[tokio::test]
async fn an_unreadable_delivery_stops_no_other() {
    let damages = [
        "UPDATE webhook SET url = 'topsecret' WHERE id = 1",
        "UPDATE webhook SET kinds = 'new.kind' WHERE id = 1",
        "UPDATE event SET kind = 'new.kind' WHERE number = (SELECT event FROM delivery WHERE webhook = 1)",
        "UPDATE delivery SET attempts = -1 WHERE webhook = 1",
    ];
    for damage in damages {
        let folder = fast_folder();
        let file = folder.path().join("metering.db");
        let store = SqliteStore::open(&file).unwrap();
        let (id, _) = account(&store, 5).await;
        let hooks = [webhook(&store, &id).await, webhook(&store, &id).await];
        for hook in &hooks {
            send(&store, hook, 1).await;
        }
        execute(&file, &format!("PRAGMA ignore_check_constraints = on; {damage}"));
        let due = claim(&store, NOON).await;
        assert_eq!(due.iter().map(|due| due.webhook.id).collect::<Vec<_>>(), [hooks[1].id], "{damage}");
        assert_eq!(claim(&store, super::later(59)).await, [], "{damage}");
    }
}

/// A webhook that subscribes to kinds of a newer version gets those that this version supports, and fails no charge.
#[tokio::test]
async fn unknown_kinds_of_events_fail_no_charge() {
    let folder = fast_folder();
    let file = folder.path().join("metering.db");
    let store = SqliteStore::open(&file).unwrap();
    let (id, key) = account(&store, 1).await;
    webhook(&store, &id).await;
    execute(&file, "UPDATE webhook SET kinds = 'balance.exhausted new.kind'");
    assert_eq!(charge(&store, key).await, Ok(0));
    let count = |sql: &str| rusqlite::Connection::open(&file).unwrap().query_row(sql, [], |row| row.get::<_, i64>(0));
    assert_eq!(count("SELECT count(*) FROM delivery"), Ok(1));
}

#[tokio::test]
async fn a_damaged_alert_refuses_charges() {
    let folder = fast_folder();
    let file = folder.path().join("metering.db");
    let store = SqliteStore::open(&file).unwrap();
    let (_, key) = account(&store, 5).await;
    assert_eq!(charge(&store, key).await, Ok(4));
    execute(&file, "PRAGMA ignore_check_constraints = on; UPDATE meter SET alert_raised = 5");
    let postings = vec![metering_core::charging::Posting::Charge(crate::scene::charge_of(key, Default::default()))];
    let refused = store.commit(postings, NOON).await;
    assert!(
        matches!(&refused, Err(StoreError::Corrupt(problem)) if problem.contains("meter.alert_raised")),
        "{refused:?}"
    );
    assert!(store.verify().await.is_err(), "the page check notices it too");
    assert_eq!(claim(&store, NOON).await, []);
}
