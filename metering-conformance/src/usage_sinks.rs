//! Contracts for sinks of usage: what is staged, sent once, and forgotten.

use std::sync::Arc;
use std::time::Duration;

use metering_core::FullStore;
use metering_core::charging::Posting;
use metering_core::clock::Timestamp;
use metering_core::events::{AttemptOutcome, SentUsage, SinkTurn, UsageSink, UsageTotal};
use metering_core::store::UsageSinkStore;

use super::scene::{DAY, NOON, accepted, all_daily_totals, charge_on, commit, customer, line};

const SINK: &str = "warehouse";
const LEASE: Duration = Duration::from_secs(60);
const MANY: u32 = 1_000;

async fn claim(store: &dyn UsageSinkStore, now: Timestamp) -> UsageSink {
    store.claim_usage_sink(SINK, now, LEASE).await.unwrap().expect("the sink is due")
}

/// Stages everything in pages of `limit`, and returns what is staged.
async fn stage(store: &dyn UsageSinkStore, limit: u32, now: Timestamp) -> Vec<SentUsage> {
    let mut after = None;
    loop {
        let page = store.stage_usage(SINK, NOON.day().minus_days(1), after.as_ref(), limit, now).await.unwrap();
        if page.next.is_none() {
            return store.staged_usage(SINK, MANY).await.unwrap();
        }
        assert_ne!(page.next, after, "a page makes progress");
        after = page.next;
    }
}

/// Ends a turn, and returns the sink.
async fn finish(
    store: &dyn UsageSinkStore,
    sink: &UsageSink,
    batch: Vec<SentUsage>,
    status: u16,
    now: Timestamp,
) -> Option<UsageSink> {
    let turn = SinkTurn::Sent(AttemptOutcome::of_response(status, None));
    store.finish_usage(&sink.name, sink.progress.attempts, batch, turn, now).await.unwrap()
}

fn differences(staged: &[SentUsage]) -> Vec<(u64, i64, u64, i64)> {
    let difference = |row: &SentUsage| {
        let (sent, total) = (row.sent, row.staged.unwrap().total);
        (sent.calls, sent.credits.atoms(), total.calls, total.credits.atoms())
    };
    staged.iter().map(difference).collect()
}

/// A total is sent, and then what it grew or shrank by. A failed batch is sent again unchanged.
pub async fn a_difference_is_sent_once(store: Arc<dyn FullStore>) {
    let owner = customer(&*store, 1_000).await;
    let receipt = accepted(&*store, charge_on(owner.key, 7, line("/a")), NOON).await;
    let sink = claim(&*store, NOON).await;
    let first = stage(&*store, MANY, NOON).await;
    assert_eq!(differences(&first), [(0, 0, 1, 7)]);
    assert_eq!((first[0].sequence, &first[0].account, first[0].day), (0, &owner.id, NOON.day()));
    let labels = store.key_labels(&owner.id).await.unwrap();
    assert_eq!(first[0].key_id, labels[0].id);

    commit(&*store, vec![charge_on(owner.key, 5, line("/a")), charge_on(owner.key, 3, line("/b"))], NOON).await;
    let failed = finish(&*store, &sink, first.clone(), 500, NOON).await.unwrap();
    assert!(failed.is_failing());
    assert_eq!(store.usage_sinks().await.unwrap(), std::slice::from_ref(&failed));
    let later = failed.progress.next_at;
    let sink = claim(&*store, later).await;
    assert_eq!(store.staged_usage(SINK, MANY).await.unwrap(), first, "it waits unchanged");
    let delivered = finish(&*store, &sink, first, 204, later).await.unwrap();
    assert!(!delivered.is_failing());
    assert_eq!(store.staged_usage(SINK, MANY).await.unwrap(), []);

    // A refund is booked on the day of its charge.
    let refund = Posting::Refund(receipt.into_refund().unwrap());
    store.commit(vec![refund], NOON.saturating_add(DAY)).await.unwrap();
    let sink = claim(&*store, later).await;
    let mut second = stage(&*store, MANY, later).await;
    second.sort_by(|one, other| one.line.cmp(&other.line));
    assert_eq!(differences(&second), [(1, 7, 2, 5), (0, 0, 1, 3)]);
    assert_eq!(second[0].sequence, 1);
    finish(&*store, &sink, second, 200, later).await.unwrap();
    assert_eq!(stage(&*store, MANY, later).await, [], "there is nothing to send");
}

/// Of racing processes, one has the turn, until its lease ends.
pub async fn one_process_has_a_turn(store: Arc<dyn FullStore>) {
    let sink = claim(&*store, NOON).await;
    assert_eq!(sink.progress.attempts, 1);
    assert_eq!(store.claim_usage_sink(SINK, NOON, LEASE).await.unwrap(), None);
    assert!(store.claim_usage_sink("another", NOON, LEASE).await.unwrap().is_some());
    let names: Vec<_> = store.usage_sinks().await.unwrap().into_iter().map(|sink| sink.name).collect();
    assert_eq!(names, ["another", SINK]);
    let expired = NOON.saturating_add(LEASE);
    let again = claim(&*store, expired).await;
    assert_eq!(again.progress.attempts, 2);
    let idle = SinkTurn::Idle(Duration::from_secs(300));
    let finished = store.finish_usage(SINK, 2, Vec::new(), idle, expired).await.unwrap().unwrap();
    assert_eq!(finished.progress.next_at, expired.saturating_add(Duration::from_secs(300)));
    assert_eq!(store.claim_usage_sink(SINK, expired, LEASE).await.unwrap(), None);
}

/// A process whose lease has ended neither marks another process's batch as sent nor changes the staged one.
pub async fn a_stale_turn_changes_nothing(store: Arc<dyn FullStore>) {
    let owner = customer(&*store, 1_000).await;
    accepted(&*store, charge_on(owner.key, 7, line("/a")), NOON).await;
    let stale = claim(&*store, NOON).await;
    let staged = stage(&*store, MANY, NOON).await;
    let later = NOON.saturating_add(LEASE);
    let current = claim(&*store, later).await;
    accepted(&*store, charge_on(owner.key, 1, line("/a")), later).await;
    assert_eq!(stage(&*store, MANY, later).await, staged);
    assert_eq!(finish(&*store, &stale, staged.clone(), 200, later).await, None);
    assert_eq!(store.staged_usage(SINK, MANY).await.unwrap(), staged);
    assert!(finish(&*store, &current, staged.clone(), 200, later).await.is_some());
    assert_eq!(finish(&*store, &stale, staged, 200, later).await, None);
}

/// Small pages stage the same as large ones, without days before the first one.
pub async fn changes_are_staged_in_whole_days_of_an_account(store: Arc<dyn FullStore>) {
    let owners = [customer(&*store, 1_000).await, customer(&*store, 1_000).await, customer(&*store, 1_000).await];
    for days_ago in [2, 1, 0] {
        let at = NOON.saturating_sub(DAY * days_ago);
        for (number, owner) in owners.iter().enumerate() {
            let charges = (0..=number * 2)
                .map(|line_number| charge_on(owner.key, 1 + i64::from(days_ago), line(&format!("/{line_number}"))));
            commit(&*store, charges.collect(), at).await;
        }
    }
    claim(&*store, NOON).await;
    let mut staged = stage(&*store, 2, NOON).await;
    let mut expected = all_daily_totals(&*store).await;
    expected.retain(|total| total.day >= NOON.day().minus_days(1));
    assert_eq!((staged.len(), expected.len()), (18, 18));
    staged.sort_by(|one, other| (one.day, &one.account, &one.line).cmp(&(other.day, &other.account, &other.line)));
    expected.sort_by(|one, other| (one.day, &one.account, &one.line).cmp(&(other.day, &other.account, &other.line)));
    for (row, total) in staged.iter().zip(&expected) {
        let of_total = UsageTotal { calls: total.calls, credits: total.credits_used };
        assert_eq!((row.day, &row.account, &row.line, row.key), (total.day, &total.account, &total.line, total.key));
        assert_eq!((row.sent, row.staged.unwrap().total), (UsageTotal::ZERO, of_total));
    }
    assert_eq!(store.staged_usage(SINK, 5).await.unwrap().len(), 5);
}

/// Rows are kept only as long as their days are compared.
pub async fn what_was_sent_of_old_days_is_forgotten(store: Arc<dyn FullStore>) {
    let owner = customer(&*store, 1_000).await;
    accepted(&*store, charge_on(owner.key, 7, line("/a")), NOON).await;
    let sink = claim(&*store, NOON).await;
    let staged = stage(&*store, MANY, NOON).await;
    finish(&*store, &sink, staged.clone(), 200, NOON).await.unwrap();
    let last = NOON.saturating_add(DAY * (SentUsage::DAYS - 1));
    store.forget_expired(last).await.unwrap();
    assert_eq!(stage(&*store, MANY, NOON).await, []);
    store.forget_expired(staged[0].expires_at()).await.unwrap();
    assert_eq!(stage(&*store, MANY, NOON).await.len(), 1);
}
