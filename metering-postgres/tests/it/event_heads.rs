//! `delivery.is_head` marks the first pending delivery of each line after any operations, and no event is left behind.

use std::time::Duration;

use metering_core::charging::Posting;
use metering_core::events::{AttemptOutcome, DeliveryFilter, DueDelivery, WebhookChange, WebhookId, WebhookOwner};
use metering_core::money::{LedgerKind, NewLedgerEntry};
use metering_core::store::EventStore;
use metering_core::{AccountId, ApiKey, Charge, NewAccount, Store, SystemRandomness, Timestamp};
use metering_postgres::PostgresStore;
use metering_tests::postgres::run_in;

use crate::events::{atoms, post, terms, webhook};
use crate::hold_scene::Scene;
use crate::lost_commits::NOON;

const ACCOUNTS: usize = 3;
const LEASE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The deliveries whose mark is wrong by the definition of a head.
pub(crate) const WRONG: &str = "SELECT d.id, d.is_head FROM delivery d JOIN webhook w ON w.id = d.webhook WHERE d.is_head <> ( \
       d.state = 'pending' AND (w.state = 'active' OR w.account IS NULL) AND NOT EXISTS ( \
         SELECT FROM delivery p WHERE p.state = 'pending' AND p.webhook = d.webhook AND p.account = d.account \
           AND (p.event, p.id) < (d.event, d.id)))";

/// Numbers that are the same in each run (splitmix64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % u64::try_from(limit).unwrap()).unwrap()
    }
}

/// Accounts with a key, 1,000 atoms and a threshold of 500.
async fn accounts(store: &PostgresStore) -> Vec<(AccountId, ApiKey)> {
    let mut made = Vec::new();
    for _ in 0..ACCOUNTS {
        let (id, key) = (AccountId::generate(&SystemRandomness), ApiKey::generate(&SystemRandomness));
        let mut account = NewAccount::new(id.clone(), "agent".parse().unwrap(), key.hash(), NOON);
        account.entries = vec![NewLedgerEntry::new(LedgerKind::SignupBonus, atoms(1_000), "Free")];
        store.create_account(account).await.unwrap();
        store.set_balance_alert(&id, Some(atoms(500))).await.unwrap().unwrap();
        made.push((id, key));
    }
    made
}

/// Charges an account below its threshold and fills it up again: an event, written by a commit of charges.
async fn charge(store: &PostgresStore, (account, key): &(AccountId, ApiKey), now: Timestamp) {
    let charge = Charge::new(key, atoms(501), "GET", "/x");
    store.commit(vec![Posting::Charge(charge)], now).await.unwrap();
    post(store, account, 501).await;
}

fn outcome(number: usize) -> AttemptOutcome {
    match number {
        0 => AttemptOutcome::Gone,
        1..4 => {
            AttemptOutcome::Failed { status: Some(500), error: "500".to_owned(), retry_after: None, response: None }
        }
        _ => AttemptOutcome::Delivered { status: 204 },
    }
}

/// The state after the steps of one run.
struct Run {
    dice: Dice,
    accounts: Vec<(AccountId, ApiKey)>,
    in_flight: Vec<DueDelivery>,
    now: Timestamp,
    /// How often each kind of step changed something.
    done: [usize; 9],
}

impl Run {
    /// One of the webhooks of an account, or of the operator's if there is no account.
    async fn webhook(&mut self, store: &PostgresStore, account: Option<&AccountId>) -> Option<WebhookId> {
        let all = store.webhooks(account).await.unwrap();
        if all.is_empty() { None } else { Some(all[self.dice.below(all.len())].id) }
    }

    async fn step(&mut self, store: &PostgresStore) {
        let account = self.accounts[self.dice.below(ACCOUNTS)].clone();
        let (id, now, kind) = (&account.0, self.now, self.dice.below(9));
        let is_done = match kind {
            0 => {
                charge(store, &account, now).await;
                true
            }
            1 => {
                let to = Some(id).filter(|_| self.dice.below(3) > 0);
                let hook = self.webhook(store, to).await.unwrap_or(WebhookId::OPERATOR);
                store.test_webhook(to, &hook, now).await.unwrap().is_some()
            }
            2 => {
                let is_new = store.webhooks(Some(id)).await.unwrap().len() < 2;
                if is_new {
                    webhook(store, id).await;
                }
                is_new
            }
            3 => self.change(store, id).await,
            4 => {
                let limit = u32::try_from(self.dice.below(4)).unwrap();
                let owner = [WebhookOwner::Customers, WebhookOwner::Operator][self.dice.below(2)];
                let due = store.claim_deliveries(now, LEASE, limit, owner).await.unwrap();
                let found = !due.is_empty();
                self.in_flight.extend(due);
                found
            }
            5 | 6 if self.in_flight.is_empty() => false,
            5 | 6 => {
                let due = self.in_flight.remove(self.dice.below(self.in_flight.len())).delivery;
                let outcome = outcome(self.dice.below(12));
                store.finish_delivery(due.id, due.progress.attempts, outcome, now).await.unwrap().is_some()
            }
            7 => {
                let all = store.deliveries(Some(id), DeliveryFilter::default(), None, 100).await.unwrap().items;
                let place = self.dice.below(all.len().max(1));
                let Some(any) = all.get(place) else { return };
                store.resend(None, any.id, now).await.unwrap().is_some()
            }
            _ => {
                self.now = now.saturating_add(DAY * u32::try_from(self.dice.below(9)).unwrap());
                store.forget_expired(self.now).await.unwrap() > 0
            }
        };
        self.done[kind] += usize::from(is_done);
    }

    /// Switches a webhook on or off, moves it, or deletes it; or sets or removes the operator's.
    async fn change(&mut self, store: &PostgresStore, account: &AccountId) -> bool {
        let kind = self.dice.below(8);
        if kind < 2 {
            store.set_operator_webhook(Some(terms()).filter(|_| kind == 0), self.now).await.unwrap();
            return true;
        }
        let Some(hook) = self.webhook(store, Some(account)).await else { return false };
        let (url, disabled) = match kind {
            2 => return store.delete_webhook(account, &hook).await.unwrap(),
            3 => (Some(format!("https://hooks.example.com/{}", self.dice.below(9)).parse().unwrap()), None),
            4 | 5 => (None, Some(true)),
            _ => (None, Some(false)),
        };
        let change = WebhookChange::Terms { url, kinds: None, disabled };
        store.change_webhook(account, &hook, change, self.now).await.unwrap().is_some()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn heads_are_marked_after_each_of_many_random_steps() {
    let mut done = [0; 9];
    for seed in 1..=4 {
        let Some(scene) = Scene::new(1_000, 2).await else { return };
        let run = |sql: &str| run_in(&scene.url, sql);
        scene.other.set_operator_webhook(Some(terms()), NOON).await.unwrap();
        let accounts = accounts(&scene.other).await;
        for (account, _) in &accounts {
            webhook(&scene.other, account).await;
        }
        let mut steps = Run { dice: Dice(seed), accounts, in_flight: Vec::new(), now: NOON, done: [0; 9] };
        for step in 0..150 {
            let before = steps.done;
            steps.step(if step % 2 == 0 { &scene.node } else { &scene.other }).await;
            assert_eq!(run(WRONG), "", "seed {seed}, step {step}: {before:?} to {:?}", steps.done);
        }
        for (sum, of_run) in done.iter_mut().zip(steps.done) {
            *sum += of_run;
        }
    }
    assert!(done.iter().all(|count| *count > 10), "{done:?}");
}

/// Claims, and ends what was claimed, until there is nothing left to claim.
async fn drain(store: &PostgresStore, now: Timestamp) -> usize {
    let mut delivered = 0;
    loop {
        let mut due = store.claim_deliveries(now, LEASE, 50, WebhookOwner::Customers).await.unwrap();
        due.extend(store.claim_deliveries(now, LEASE, 50, WebhookOwner::Operator).await.unwrap());
        if due.is_empty() {
            return delivered;
        }
        for DueDelivery { delivery, .. } in due {
            let finished =
                store.finish_delivery(delivery.id, delivery.progress.attempts, outcome(9), now).await.unwrap();
            delivered += usize::from(finished.is_some());
        }
    }
}

/// Charges on two nodes write events while deliveries end, are resent, and webhooks are switched off and on.
#[tokio::test(flavor = "multi_thread")]
async fn charges_and_couriers_at_the_same_time_leave_no_event_behind() {
    let Some(scene) = Scene::new(1_000, 6).await else { return };
    scene.other.set_operator_webhook(Some(terms()), NOON).await.unwrap();
    let accounts = accounts(&scene.other).await;
    let mut tasks = tokio::task::JoinSet::new();
    for (place, account) in accounts.iter().enumerate() {
        let hook = webhook(&scene.other, &account.0).await;
        let node = if place % 2 == 0 { scene.node.clone() } else { scene.other.clone() };
        let (account, charger) = (account.clone(), node.clone());
        let id = account.0.clone();
        tasks.spawn(async move {
            for _ in 0..30 {
                charge(&charger, &account, NOON).await;
            }
        });
        tasks.spawn(async move {
            let mut dice = Dice(u64::try_from(place).unwrap());
            for round in 0..30 {
                drain(&node, NOON).await;
                let change = WebhookChange::Terms { url: None, kinds: None, disabled: Some(round % 2 == 0) };
                node.change_webhook(&id, &hook, change, NOON).await.unwrap().unwrap();
                let all = node.deliveries(Some(&id), DeliveryFilter::default(), None, 100).await.unwrap().items;
                if !all.is_empty() {
                    node.resend(None, all[dice.below(all.len())].id, NOON).await.unwrap();
                }
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    let run = |sql: &str| run_in(&scene.url, sql);
    assert_eq!(run(WRONG), "");
    // A delivery that another claimer has is due again after its lease.
    drain(&scene.node, NOON.saturating_add(LEASE)).await;
    let pending = "FROM delivery d JOIN webhook w ON w.id = d.webhook WHERE d.state = 'pending' AND w.state = 'active'";
    assert_eq!(run(&format!("SELECT count(*) {pending}")), "0");
    let to_operator = "SELECT count(*) FROM delivery WHERE webhook = 0 AND state = 'delivered'";
    assert_eq!(run(to_operator), (ACCOUNTS * (30 + 1)).to_string(), "each charge's, and that of the first key");
}
