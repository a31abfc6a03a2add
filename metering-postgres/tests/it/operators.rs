//! The audit log in the database: it cannot be changed, not even with SQL, and its order is the same on all nodes. And
//! what operators did, in a store that is moved.

use metering_core::access::BudgetReset;
use metering_core::money::Refill;
use metering_core::operators::{
    Actor, AuditId, AuditOutcome, AuditQuery, AuditResult, NewAuditEntry, NewOperator, OperatorTokenHash, Role,
};
use metering_core::prices::{NewPriceVersion, PriceNumber};
use metering_core::store::{OperatorStore, PriceStore, RefillStore};
use metering_core::{Credits, Store};
use metering_postgres::PostgresStore;
use metering_sql::transfer::Section;
use metering_tests::postgres::{Cluster, fresh_schema, is_skipped, run_in};

use crate::lost_commits::NOON;
use crate::moved::{moved, records};

async fn log(store: &PostgresStore, outcome: AuditOutcome) -> AuditId {
    let entry = NewAuditEntry {
        at: NOON,
        actor: Actor::CommandLine("root".to_owned()),
        action: "account.revoke".to_owned(),
        subject: "org_a".to_owned(),
        reason: "asked to".to_owned(),
        request: "{}".to_owned(),
        before: Some("{}".to_owned()),
    };
    store.log_action(entry, outcome).await.unwrap()
}

fn done() -> AuditOutcome {
    AuditOutcome { at: NOON, result: AuditResult::Done, detail: String::new(), after: None }
}

/// The entry that an earlier version left when it was killed before it wrote the outcome.
const ENTRY_ALONE: &str = "INSERT INTO audit_entry (id, at, actor, action, subject, reason, request) \
     VALUES (9, 0, 'operator:jo', 'account.grant', 'org_a', 'Ticket 311', '{}')";

#[tokio::test(flavor = "multi_thread")]
async fn audit_log_is_append_only_even_for_sql() {
    let Some(url) = fresh_schema() else { return };
    let store = PostgresStore::connect(&url.parse().unwrap()).await.unwrap();
    let ended = log(&store, done()).await;
    run_in(&url, ENTRY_ALONE);
    let before = store.audit_log(&AuditQuery::default(), 10).await.unwrap();
    let listed: Vec<_> = before.iter().map(|entry| (entry.id, entry.outcome.is_some())).collect();
    assert_eq!(listed, [(AuditId(9), false), (ended, true)]);
    for sql in [
        "UPDATE audit_entry SET reason = 'another'".to_owned(),
        "DELETE FROM audit_entry WHERE id = 9".to_owned(),
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
        written.push(log(&nodes[node], done()).await);
    }
    assert!(written.windows(2).all(|pair| pair[0] < pair[1]), "{written:?}");
    written.reverse();
    for node in nodes {
        let log = node.audit_log(&AuditQuery::default(), 10).await.unwrap();
        assert_eq!(log.iter().map(|entry| entry.id).collect::<Vec<_>>(), written);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_operators_did_is_moved() {
    let Some(url) = fresh_schema() else { return };
    let source = PostgresStore::connect(&url.parse().unwrap()).await.unwrap();
    for (number, name) in (0..).zip(["jo", "Jo", "al"]) {
        let (name, token) = (name.parse().unwrap(), OperatorTokenHash::from_bytes([number; 32]));
        let new = NewOperator { name, role: Role::Manager, token, created_at: NOON };
        source.create_operator(new).await.unwrap();
        let catalogue = format!("{{\"version\": {number}}}").into();
        let applied_by = (number > 0).then(|| Actor::CommandLine("root".to_owned()));
        let since = NOON.saturating_add(std::time::Duration::from_secs(number.into()));
        let new = NewPriceVersion { catalogue, since, recorded_at: NOON, applied_by };
        source.record_prices(new).await.unwrap();
    }
    source.revoke_operator(&"Jo".parse().unwrap(), NOON).await.unwrap();
    let one = Credits::from_atoms(1);
    source.set_refill(Some(Refill { credits: one, every: BudgetReset::Weekly, cap: one })).await.unwrap();
    for (result, after) in [(AuditResult::Done, Some("{}".to_owned())), (AuditResult::Refused, None)] {
        let outcome = AuditOutcome { at: NOON, result, detail: "why".to_owned(), after };
        log(&source, outcome).await;
    }
    let last = log(&source, done()).await;

    let target = moved(&source).await;
    for (section, count) in
        [(Section::Operators, 3), (Section::Prices, 3), (Section::AuditLog, 3), (Section::Refills, 1)]
    {
        let found = records(&target, section, 1).await;
        assert_eq!(found.len(), count, "{section:?}");
        assert_eq!(found, records(&source, section, 10).await);
    }
    assert_eq!(target.operators().await.unwrap(), source.operators().await.unwrap());
    let everything = AuditQuery::default();
    assert_eq!(target.audit_log(&everything, 10).await.unwrap(), source.audit_log(&everything, 10).await.unwrap());
    assert_eq!(target.price_catalogue(PriceNumber(3)).await.unwrap().as_deref(), Some("{\"version\": 2}"));
    assert_eq!(target.verify().await.unwrap().discrepancies, []);
    assert!(log(&target, done()).await > last);
}
