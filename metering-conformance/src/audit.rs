//! Contracts for the audit log: append-only, in the order written.

use std::sync::Arc;

use metering_core::clock::Timestamp;
use metering_core::operators::{
    Actor, AuditEntry, AuditId, AuditOutcome, AuditQuery, AuditResult, NewAuditEntry, Period,
};
use metering_core::store::OperatorStore;

use super::scene::{DAY, MINUTE, NOON, racing};

const TASKS: usize = 32;

fn entry(subject: &str) -> NewAuditEntry {
    NewAuditEntry {
        at: NOON,
        actor: Actor::Operator("jo".parse().unwrap()),
        action: "account.grant".to_owned(),
        subject: subject.to_owned(),
        reason: "an apology".to_owned(),
        request: r#"{"credits":"1"}"#.to_owned(),
        before: Some(r#"{"balance":"1"}"#.to_owned()),
    }
}

fn outcome(result: AuditResult) -> AuditOutcome {
    let after = (result == AuditResult::Done).then(|| r#"{"balance":"2"}"#.to_owned());
    AuditOutcome { at: NOON.saturating_add(MINUTE), result, detail: String::new(), after }
}

async fn logged(store: &dyn OperatorStore, subject: &str) -> AuditId {
    store.log_action(entry(subject), outcome(AuditResult::Done)).await.unwrap()
}

async fn log(store: &dyn OperatorStore, query: AuditQuery, limit: u32) -> Vec<AuditEntry> {
    store.audit_log(&query, limit).await.unwrap()
}

async fn everything(store: &dyn OperatorStore) -> Vec<AuditEntry> {
    log(store, AuditQuery::default(), u32::MAX).await
}

fn ids(entries: &[AuditEntry]) -> Vec<AuditId> {
    entries.iter().map(|entry| entry.id).collect()
}

/// Entries are listed newest first, at most as many as asked, and before the one asked.
pub async fn audit_entries_are_listed_newest_first(store: Arc<dyn OperatorStore>) {
    assert_eq!(everything(&*store).await, []);
    let mut newest_first = Vec::new();
    for number in 0..7_u32 {
        // The order is that of writing, regardless of the clock.
        let at = NOON.saturating_sub(MINUTE * number);
        let entry = NewAuditEntry { at, ..entry("org_a") };
        newest_first.insert(0, store.log_action(entry, outcome(AuditResult::Done)).await.unwrap());
    }
    assert!(newest_first.windows(2).all(|pair| pair[0] > pair[1]), "{newest_first:?}");
    assert_eq!(ids(&everything(&*store).await), newest_first);
    for limit in 0..9_u32 {
        let (count, first) = ((limit as usize).min(7), AuditQuery::default());
        assert_eq!(ids(&log(&*store, first, limit).await), newest_first[..count]);
    }
    for (index, id) in newest_first.iter().enumerate() {
        let older = &newest_first[index + 1..];
        let query = AuditQuery { before: Some(*id), ..AuditQuery::default() };
        assert_eq!(ids(&log(&*store, query.clone(), 100).await), older);
        assert_eq!(ids(&log(&*store, query, 2).await), older[..older.len().min(2)]);
    }
}

/// Entries about a subject are found by its exact text, also page by page.
pub async fn audit_entries_are_listed_by_subject(store: Arc<dyn OperatorStore>) {
    let subjects = ["org_a", "org_A", "org_ab", "plan:starter@8453", "org_a", "", "org_a", "org_b", "org_a "];
    let mut written = Vec::new();
    for subject in subjects {
        written.push((logged(&*store, subject).await, subject));
    }
    for subject in subjects {
        let of = written.iter().rev().filter(|(_, of)| *of == subject);
        let expected: Vec<AuditId> = of.map(|(id, _)| *id).collect();
        let query = AuditQuery { subject: Some(subject.to_owned()), ..AuditQuery::default() };
        assert_eq!(ids(&log(&*store, query.clone(), 100).await), expected, "{subject:?}");
        let query = AuditQuery { before: Some(expected[0]), ..query };
        assert_eq!(ids(&log(&*store, query, 1).await), expected[1..expected.len().min(2)], "{subject:?}");
    }
    let query = AuditQuery { subject: Some("org".to_owned()), ..AuditQuery::default() };
    assert_eq!(log(&*store, query, 100).await, []);
}

/// Entries about a kind of action, and of a time, are found.
pub async fn audit_entries_are_listed_by_action_and_time(store: Arc<dyn OperatorStore>) {
    let mut written = Vec::new();
    for (number, action) in ["account.grant", "account.adjust", "account.grant"].into_iter().enumerate() {
        let at = NOON.saturating_add(MINUTE * u32::try_from(number).unwrap());
        let new = NewAuditEntry { at, action: action.to_owned(), ..entry("org_a") };
        written.push(store.log_action(new, outcome(AuditResult::Done)).await.unwrap());
    }
    let action = |name: &str| AuditQuery { action: Some(name.to_owned()), ..AuditQuery::default() };
    assert_eq!(ids(&log(&*store, action("account.grant"), 10).await), [written[2], written[0]]);
    assert_eq!(ids(&log(&*store, action("account"), 10).await), []);
    let (from, until) = (Some(NOON.saturating_add(MINUTE)), Some(NOON.saturating_add(MINUTE * 2)));
    let query = AuditQuery { at: Period { from, until }, ..AuditQuery::default() };
    assert_eq!(ids(&log(&*store, query.clone(), 10).await), [written[1]]);
    assert_eq!(ids(&log(&*store, AuditQuery { action: action("account.grant").action, ..query }, 10).await), []);
}

/// Every text is stored as given.
pub async fn texts_of_the_audit_log_are_stored_unchanged(store: Arc<dyn OperatorStore>) {
    let big = format!(r#"{{"note":"{}"}}"#, "größer \u{1F511} ".repeat(20_000));
    let table = [
        (entry("org_a"), outcome(AuditResult::Done)),
        (
            NewAuditEntry { reason: String::new(), before: None, ..entry("") },
            AuditOutcome { after: None, ..outcome(AuditResult::Done) },
        ),
        (
            NewAuditEntry {
                actor: Actor::CommandLine("Jörg 'the \"root\"'".to_owned()),
                action: "plan.put; -- %_".to_owned(),
                subject: "plan:größer “x”@18446744073709551615".to_owned(),
                reason: "“größer”\r\n\n\t'%_ \\ \u{1F511}\n".to_owned(),
                request: String::new(),
                before: Some(String::new()),
                at: Timestamp::from_unix_millis(1),
            },
            AuditOutcome {
                detail: "it's\n\"refused\" — ü\\".to_owned(),
                after: Some("null".to_owned()),
                at: Timestamp::from_unix_millis(253_402_300_799_999),
                ..outcome(AuditResult::Refused)
            },
        ),
        (
            NewAuditEntry { actor: Actor::CommandLine(String::new()), before: Some(big.clone()), ..entry("big") },
            AuditOutcome { detail: big.clone(), after: Some(big), ..outcome(AuditResult::Unknown) },
        ),
    ];
    let mut expected = Vec::new();
    for (entry, outcome) in table {
        let id = store.log_action(entry.clone(), outcome.clone()).await.unwrap();
        expected.insert(0, AuditEntry { id, entry, outcome: Some(outcome) });
    }
    assert_eq!(everything(&*store).await, expected);
}

/// Neither time nor the deletion of expired rows takes anything away.
pub async fn the_audit_log_is_kept_for_ever(store: Arc<dyn OperatorStore>) {
    logged(&*store, "org_a").await;
    logged(&*store, "org_b").await;
    let before = everything(&*store).await;
    store.forget_expired(NOON.saturating_add(DAY * 40_000)).await.unwrap();
    assert_eq!(everything(&*store).await, before);
}

/// Entries that are written at the same time have different ids, and an entry that is written later has a higher one.
pub async fn concurrent_audit_entries_have_ascending_ids(store: Arc<dyn OperatorStore>) {
    let results = racing(&store, 0..TASKS, |store, task| async move {
        let subject = format!("org_{task}");
        let first = logged(&*store, &subject).await;
        let second = logged(&*store, &subject).await;
        assert!(second > first, "{second:?} came after {first:?}");
        [first, second]
    })
    .await;
    let mut written: Vec<AuditId> = results.into_iter().flatten().collect();
    written.sort_unstable();
    written.reverse();
    let listed = everything(&*store).await;
    assert_eq!(ids(&listed), written);
    assert!(written.windows(2).all(|pair| pair[0] > pair[1]), "distinct: {written:?}");
}
