//! The flag of the heads of lines always equals its definition, after any operations.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use metering_core::access::KeyHash;
use metering_core::charging::Posting;
use metering_core::events::{
    AttemptOutcome, Delivery, DeliveryId, DueDelivery, Event, Webhook, WebhookChange, WebhookId, WebhookOwner,
    WebhookSecret,
};
use metering_core::store::EventStore;
use metering_core::{AccountId, Credits, Store, SystemRandomness, Timestamp};
use metering_sqlite::SqliteStore;
use rusqlite::Connection;

use super::{LEASE, send, terms, webhook};
use crate::contract::fast_folder;
use crate::dice::Dice;
use crate::scene::{NOON, account, charge_of, count, execute, grant};

/// The first pending deliveries of the lines of active webhooks.
const DEFINITION: &str = "SELECT d.id FROM delivery d JOIN webhook w ON w.id = d.webhook \
     WHERE d.state = 'pending' AND w.state = 'active' AND NOT EXISTS (SELECT 1 FROM delivery p \
       WHERE p.webhook = d.webhook AND p.account IS d.account AND p.event < d.event AND p.state = 'pending')";

struct World {
    file: PathBuf,
    sql: Connection,
    accounts: Vec<(AccountId, KeyHash)>,
    hooks: Vec<Webhook>,
    /// All claims ever made: the attempt that ends may be stale.
    claimed: Vec<DueDelivery>,
    now: Timestamp,
}

const OPERATIONS: [&str; 14] = [
    "test", "spend", "spend", "claim", "claim", "end", "end", "resend", "switch", "repair", "create", "delete",
    "operator", "rare",
];

impl World {
    fn ids(&self, sql: &str) -> Vec<i64> {
        let mut statement = self.sql.prepare(sql).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }

    /// Checks the flag, and returns the heads.
    fn heads(&self) -> Vec<i64> {
        let marked = self.ids("SELECT id FROM delivery WHERE is_head ORDER BY id");
        assert_eq!(marked, self.ids(&format!("{DEFINITION} ORDER BY d.id")));
        marked
    }

    async fn run(&mut self, store: &SqliteStore, operation: &'static str, dice: &mut Dice) -> &'static str {
        match operation {
            "test" if dice.one_in(4) => drop(store.test_webhook(None, &WebhookId::OPERATOR, self.now).await.unwrap()),
            "test" => {
                let hook = dice.choose(&self.hooks);
                store.test_webhook(hook.account.as_ref(), &hook.id, self.now).await.unwrap();
            }
            "spend" => self.spend(store, dice).await,
            "claim" => self.claim(store, dice).await,
            "end" => self.end(store, dice).await,
            "resend" => {
                let all = store.deliveries(None, Default::default(), None, 1_000).await.unwrap().items;
                if !all.is_empty() {
                    store.resend(None, dice.choose(&all).id, self.now).await.unwrap();
                }
            }
            "switch" | "repair" => self.change(store, operation, dice).await,
            "create" if self.hooks.len() < 7 => {
                let (id, _) = dice.choose(&self.accounts);
                self.hooks.push(webhook(store, &id).await);
            }
            "delete" if self.hooks.len() > 3 && dice.one_in(2) => {
                let place = usize::try_from(dice.below(self.hooks.len() as u64)).unwrap();
                let hook = self.hooks.swap_remove(place);
                assert!(store.delete_webhook(hook.account.as_ref().unwrap(), &hook.id).await.unwrap());
            }
            "operator" => {
                let terms = (!dice.one_in(4)).then(terms);
                store.set_operator_webhook(terms, self.now).await.unwrap();
            }
            "rare" => return self.rare(store, dice).await,
            _ => {}
        }
        operation
    }

    /// Two events in one transaction: the balance is low, and exhausted.
    async fn spend(&self, store: &SqliteStore, dice: &mut Dice) {
        let (id, key) = dice.choose(&self.accounts);
        store.post_entry(&id, grant(1), self.now).await.unwrap();
        let charge = Posting::Charge(charge_of(key, Credits::BASE_CALL));
        store.commit(vec![charge], self.now).await.unwrap();
    }

    /// Exactly what is due is claimed, oldest first.
    async fn claim(&mut self, store: &SqliteStore, dice: &mut Dice) {
        let owner = dice.choose(&[WebhookOwner::Customers, WebhookOwner::Operator]);
        let (limit, operators) = (dice.choose(&[1, 2, 1_000]), owner == WebhookOwner::Operator);
        let (now, is_null) = (self.now.unix_millis(), if operators { "IS NULL" } else { "IS NOT NULL" });
        let expected = self.ids(&format!(
            "{DEFINITION} AND d.next_at <= {now} AND w.account {is_null} ORDER BY d.next_at, d.id LIMIT {limit}"
        ));
        let due = store.claim_deliveries(self.now, LEASE, limit, owner).await.unwrap();
        assert_eq!(due.iter().map(|due| due.delivery.id.get()).collect::<Vec<_>>(), expected);
        self.claimed.extend(due);
    }

    async fn end(&self, store: &SqliteStore, dice: &mut Dice) {
        if self.claimed.is_empty() {
            return;
        }
        let recent = &self.claimed[self.claimed.len().saturating_sub(8)..];
        let Delivery { id, progress, .. } = dice.choose(recent).delivery;
        let outcome = match dice.below(8) {
            0 => AttemptOutcome::Gone,
            1 | 2 => AttemptOutcome::Failed {
                status: Some(500),
                error: "failed".to_owned(),
                retry_after: None,
                response: None,
            },
            _ => AttemptOutcome::Delivered { status: 204 },
        };
        store.finish_delivery(id, progress.attempts, outcome, self.now).await.unwrap();
    }

    /// A webhook is switched off or on, or gets another URL or another secret.
    async fn change(&self, store: &SqliteStore, operation: &str, dice: &mut Dice) {
        let hook = dice.choose(&self.hooks);
        let change = match operation {
            "switch" => WebhookChange::Terms { url: None, kinds: None, disabled: Some(dice.one_in(2)) },
            _ if dice.one_in(3) => {
                WebhookChange::Rotate { secret: WebhookSecret::generate(&SystemRandomness), old_until: None }
            }
            _ => {
                let url = format!("https://example.com/{}", dice.below(1_000)).parse().unwrap();
                let disabled = dice.one_in(2).then_some(false);
                WebhookChange::Terms { url: Some(url), kinds: None, disabled }
            }
        };
        store.change_webhook(hook.account.as_ref().unwrap(), &hook.id, change, self.now).await.unwrap().unwrap();
    }

    async fn rare(&self, store: &SqliteStore, dice: &mut Dice) -> &'static str {
        match dice.below(3) {
            0 => {
                let age = Duration::from_secs(60 * dice.below(200));
                store.forget_expired(self.now.saturating_add(Event::RETENTION).saturating_sub(age)).await.unwrap();
                "forget"
            }
            1 => {
                // Those that cannot be read are put off.
                let some = "WHERE number % 3 = 0";
                execute(&self.file, &format!("UPDATE event SET kind = 'odd ' || kind {some}"));
                for owner in [WebhookOwner::Customers, WebhookOwner::Operator] {
                    store.claim_deliveries(self.now, LEASE, 1_000, owner).await.unwrap();
                }
                execute(&self.file, &format!("UPDATE event SET kind = substr(kind, 5) {some}"));
                "put off"
            }
            _ => {
                // A process ended while it removed the operator's webhook, and the next one sets it again.
                execute(
                    &self.file,
                    "UPDATE webhook SET state = 'disabled' WHERE id = 0; \
                     DELETE FROM delivery WHERE webhook = 0 AND id % 2 = 0",
                );
                let due = store.claim_deliveries(self.now, LEASE, 1_000, WebhookOwner::Operator).await.unwrap();
                assert_eq!(due, [], "it is being removed");
                let pending = self.ids("SELECT id FROM delivery WHERE webhook = 0");
                for id in pending.into_iter().filter(|_| dice.one_in(3)) {
                    store.resend(None, DeliveryId::new(id), self.now).await.unwrap();
                }
                store.set_operator_webhook(Some(terms()), self.now).await.unwrap();
                "interrupted"
            }
        }
    }
}

/// Counts, for each operation, how often it changed which deliveries are heads.
async fn follow(seed: u64, changes: &mut BTreeMap<&'static str, usize>) {
    let folder = fast_folder();
    let file = folder.path().join("metering.db");
    let handles = [SqliteStore::open(&file).unwrap(), SqliteStore::open(&file).unwrap()];
    let sql = Connection::open(&file).unwrap();
    let (mut dice, mut accounts, mut hooks) = (Dice(seed), Vec::new(), Vec::new());
    handles[0].set_operator_webhook(Some(terms()), NOON).await.unwrap();
    for _ in 0..3 {
        let (id, key) = account(&handles[0], 0).await;
        handles[0].set_balance_alert(&id, Some(Credits::BASE_CALL)).await.unwrap();
        hooks.push(webhook(&handles[0], &id).await);
        accounts.push((id, key));
    }
    let mut world = World { file, sql, accounts, hooks, claimed: Vec::new(), now: NOON };
    let mut before = world.heads();
    for _ in 0..400 {
        let operation = dice.choose(&OPERATIONS);
        let store = &handles[usize::try_from(dice.below(2)).unwrap()];
        let done = world.run(store, operation, &mut dice).await;
        let after = world.heads();
        *changes.entry(done).or_default() += usize::from(before != after);
        before = after;
        world.now = world.now.saturating_add(Duration::from_secs(dice.choose(&[0, 1, 30, 90, 900])));
    }
    assert_eq!(handles[0].verify().await.unwrap().discrepancies, []);
}

#[tokio::test]
async fn the_flag_is_true_after_random_operations() {
    let mut changes = BTreeMap::new();
    for seed in 0..12 {
        follow(seed, &mut changes).await;
    }
    for operation in
        ["test", "spend", "end", "resend", "switch", "repair", "delete", "operator", "forget", "interrupted"]
    {
        assert!(changes.get(operation).is_some_and(|count| *count > 0), "{operation} changed no head: {changes:?}");
    }
    assert_eq!(["claim", "create", "put off"].map(|operation| changes[operation]), [0; 3], "{changes:?}");
}

fn number(file: &Path, sql: &str) -> i64 {
    Connection::open(file).unwrap().query_row(sql, [], |row| row.get(0)).unwrap()
}

/// A webhook that is off has no head, even if its removal was interrupted. One that is switched on during its removal is
/// removed nevertheless.
#[tokio::test]
async fn an_interrupted_removal_leaves_a_line_whole() {
    let folder = fast_folder();
    let file = folder.path().join("metering.db");
    let store = SqliteStore::open(&file).unwrap();
    let (id, _) = account(&store, 0).await;
    let hook = webhook(&store, &id).await;
    send(&store, &hook, 1_500).await;
    let heads = || number(&file, "SELECT count(*) FROM delivery WHERE is_head");
    assert_eq!(heads(), 1);
    execute(&file, "CREATE TRIGGER refuse BEFORE DELETE ON delivery BEGIN SELECT RAISE(ABORT, 'refused'); END");
    assert!(store.delete_webhook(&id, &hook.id).await.is_err());
    assert_eq!((heads(), count(&file, "delivery")), (0, 1_500));
    execute(
        &file,
        "DROP TRIGGER refuse; CREATE TRIGGER switch_on AFTER DELETE ON delivery \
         BEGIN UPDATE webhook SET state = 'active'; END",
    );
    store.delete_webhook(&id, &hook.id).await.unwrap();
    assert_eq!((count(&file, "webhook"), count(&file, "delivery")), (0, 0));
}

/// The attempt of a delivery that is no longer the head can still switch its webhook off.
#[tokio::test]
async fn a_webhook_that_is_gone_has_no_head() {
    let folder = fast_folder();
    let file = folder.path().join("metering.db");
    let store = SqliteStore::open(&file).unwrap();
    let (id, _) = account(&store, 0).await;
    let hook = webhook(&store, &id).await;
    let tests = send(&store, &hook, 2).await;
    let first = super::claim(&store, NOON).await.remove(0);
    super::finish(&store, &first, NOON).await.unwrap();
    let second = super::claim(&store, NOON).await.remove(0).delivery;
    store.resend(Some(&id), tests[0].id, NOON).await.unwrap().unwrap();
    assert_eq!(number(&file, "SELECT id FROM delivery WHERE is_head"), tests[0].id.get());
    store.finish_delivery(second.id, 1, AttemptOutcome::Gone, NOON).await.unwrap().unwrap();
    assert_eq!(number(&file, "SELECT count(*) FROM delivery WHERE is_head"), 0);
}
