//! The audit log on disk: it cannot be changed, not even with SQL, and it survives a restart. And a search for a name
//! that many have.

use metering_core::Store;
use metering_core::operators::{AccountFilter, Actor, AuditId, AuditOutcome, AuditQuery, AuditResult, NewAuditEntry};
use metering_core::store::OperatorStore;
use metering_sqlite::SqliteStore;
use rusqlite::Connection;

use crate::scene::{NOON, created, new_account};

async fn log(store: &SqliteStore) -> AuditId {
    let entry = NewAuditEntry {
        at: NOON,
        actor: Actor::CommandLine("root".to_owned()),
        action: "account.revoke".to_owned(),
        subject: "org_a".to_owned(),
        reason: "asked to".to_owned(),
        request: "{}".to_owned(),
        before: Some("{}".to_owned()),
    };
    let outcome = AuditOutcome { at: NOON, result: AuditResult::Done, detail: String::new(), after: None };
    store.log_action(entry, outcome).await.unwrap()
}

/// The entry that an earlier version left when it was killed before it wrote the outcome.
const ENTRY_ALONE: &str = "INSERT INTO audit_entry (at, actor, action, subject, reason, request) \
     VALUES (0, 'operator:jo', 'account.grant', 'org_a', 'Ticket 311', '{}')";

#[tokio::test]
async fn audit_log_is_append_only_even_for_sql() {
    let (_folder, file, store) = created();
    let ended = log(&store).await;
    let connection = Connection::open(&file).unwrap();
    connection.execute(ENTRY_ALONE, []).unwrap();
    let before = store.audit_log(&AuditQuery::default(), 10).await.unwrap();
    let listed: Vec<_> = before.iter().map(|entry| (entry.id, entry.outcome.is_some())).collect();
    assert_eq!(listed, [(AuditId(2), false), (ended, true)]);
    drop(store);

    for sql in [
        "UPDATE audit_entry SET reason = 'another'",
        "UPDATE audit_entry SET id = id + 10 WHERE id = 2",
        "DELETE FROM audit_entry WHERE id = 2",
        "UPDATE audit_outcome SET result = 'refused'",
        "DELETE FROM audit_outcome",
        "INSERT OR REPLACE INTO audit_entry (id, at, actor, action, subject, reason) VALUES (2, 0, '', '', '', '')",
        "REPLACE INTO audit_outcome (entry, at, result, detail) VALUES (1, 0, 'refused', '')",
    ] {
        let error = connection.execute(sql, []).unwrap_err().to_string();
        assert_eq!(error, "the audit log is append-only", "{sql}");
    }
    drop(connection);
    let store = SqliteStore::open(&file).unwrap();
    assert_eq!(store.audit_log(&AuditQuery::default(), 10).await.unwrap(), before);
    assert!(log(&store).await > AuditId(2));
}

/// More than are found by the index of names alone.
#[tokio::test]
async fn a_name_that_many_accounts_have_finds_the_newest_first() {
    let store = SqliteStore::in_memory().unwrap();
    let mut ids = Vec::new();
    for _ in 0..1_005 {
        let new = new_account();
        ids.insert(0, new.id.clone());
        store.create_account(new).await.unwrap();
    }
    let filter = AccountFilter { name_prefix: Some("AGENT".to_owned()), ..AccountFilter::default() };
    let first = store.newest_accounts(&filter, None, 600).await.unwrap();
    let rest = store.newest_accounts(&filter, first.next.as_ref(), 600).await.unwrap();
    let found = first.items.into_iter().chain(rest.items).map(|account| account.id);
    assert_eq!((found.collect::<Vec<_>>(), rest.next), (ids, None));
}
