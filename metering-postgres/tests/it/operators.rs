//! The audit log in the database: nobody changes it, not even with SQL, and its order is the same on all nodes.

use metering_core::OperatorStore;
use metering_core::operators::{Actor, AuditId, AuditOutcome, AuditQuery, AuditResult, NewAuditEntry};
use metering_postgres::PostgresStore;
use metering_tests::postgres::{Cluster, is_skipped};

use crate::lost_commits::NOON;
use crate::upgrade::run_in;

async fn begin(store: &PostgresStore) -> AuditId {
    let entry = NewAuditEntry {
        at: NOON,
        actor: Actor::CommandLine("root".to_owned()),
        action: "account.revoke".to_owned(),
        subject: "org_a".to_owned(),
        reason: "asked to".to_owned(),
        request: "{}".to_owned(),
        before: Some("{}".to_owned()),
    };
    store.begin_audit(entry).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn audit_log_is_append_only_even_for_sql() {
    if is_skipped() {
        return;
    }
    let url = Cluster::shared().fresh_schema();
    let store = PostgresStore::connect(&url.parse().unwrap()).await.unwrap();
    let ended = begin(&store).await;
    let outcome = AuditOutcome { at: NOON, result: AuditResult::Done, detail: String::new(), after: None };
    store.end_audit(ended, outcome).await.unwrap();
    let under_way = begin(&store).await;
    let before = store.audit_log(&AuditQuery::default(), 10).await.unwrap();
    assert_eq!(before.iter().map(|entry| entry.id).collect::<Vec<_>>(), [under_way, ended]);
    for sql in [
        "UPDATE audit_entry SET reason = 'another'".to_owned(),
        format!("DELETE FROM audit_entry WHERE id = {}", under_way.0),
        "UPDATE audit_outcome SET result = 'refused'".to_owned(),
        "DELETE FROM audit_outcome".to_owned(),
    ] {
        // Fails with another message, or with "changed", unless the trigger refuses.
        let refused = format!(
            "DO $$ BEGIN {sql}; RAISE 'changed'; EXCEPTION WHEN raise_exception THEN \
             IF SQLERRM <> 'the audit log is append-only' THEN RAISE; END IF; END $$"
        );
        run_in(&url, &refused);
    }
    assert_eq!(store.audit_log(&AuditQuery::default(), 10).await.unwrap(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn audit_entries_of_two_nodes_are_in_the_order_of_writing() {
    if is_skipped() {
        return;
    }
    let config = Cluster::shared().fresh_schema().parse().unwrap();
    let nodes = [PostgresStore::connect(&config).await.unwrap(), PostgresStore::connect(&config).await.unwrap()];
    let mut written = Vec::new();
    for node in [0, 1, 1, 0, 1, 0, 0] {
        written.push(begin(&nodes[node]).await);
    }
    assert!(written.windows(2).all(|pair| pair[0] < pair[1]), "{written:?}");
    written.reverse();
    for node in nodes {
        let log = node.audit_log(&AuditQuery::default(), 10).await.unwrap();
        assert_eq!(log.iter().map(|entry| entry.id).collect::<Vec<_>>(), written);
    }
}
