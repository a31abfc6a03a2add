//! Holds on several nodes: each is settled once, whoever tries, and what happens to a response is never guessed.

use std::sync::Arc;
use std::time::Duration;

use metering_core::access::{KeyId, KeyTerms, Scopes};
use metering_core::charging::{
    Hold, HoldAction, HoldId, HoldTerms, HoldUpdate, HoldUpdated, MeterConfig, Outcome, Posting, SettleReason,
};
use metering_core::money::{LedgerKind, NewLedgerEntry};
use metering_core::store::{HoldStore, KeyChange, KeyCreated, KeyStore, NewKey, TermsChange};
use metering_core::{
    AccountId, ApiKey, Charge, Clock, Credits, Decision, Meter, NewAccount, RateLimits, Receipt, Refusal, Store,
    SystemClock, SystemRandomness, Timestamp,
};
use metering_postgres::PostgresStore;
use metering_tests::database_proxy::DatabaseProxy;
use metering_tests::postgres::{Cluster, is_skipped};
use tokio::task::JoinSet;

use crate::lost_commits::NOON;
use crate::upgrade::run_in;

const LEASE: Duration = Duration::from_secs(30);
const FALLBACK: i64 = 3;
const AMOUNT: i64 = 10;
const GRANT: i64 = 1_000_000;

/// Two nodes on one database with one account; the first node's connections go through the proxy, and the other one's
/// statements are unnamed.
struct Scene {
    link: DatabaseProxy,
    node: PostgresStore,
    other: PostgresStore,
    url: String,
    id: AccountId,
    key: ApiKey,
}

impl Scene {
    async fn new(credits: i64, connections: usize) -> Self {
        let cluster = Cluster::shared();
        let url = cluster.fresh_schema();
        let link = DatabaseProxy::to(cluster.address());
        let connect = async |url: String| {
            PostgresStore::connect(&format!("{url}&pool_size={connections}").parse().unwrap()).await.unwrap()
        };
        let other = connect(format!("{url}&statement_cache=off")).await;
        let node = connect(link.through(&url)).await;
        let (key, id) = (ApiKey::generate(&SystemRandomness), AccountId::generate(&SystemRandomness));
        let mut account = NewAccount::new(id.clone(), "agent".parse().unwrap(), key.hash(), NOON);
        account.limits = RateLimits { requests_per_minute: 0, requests_per_day: 0 };
        account.entries = vec![NewLedgerEntry::new(LedgerKind::SignupBonus, Credits::from_atoms(credits), "Free")];
        other.create_account(account).await.unwrap();
        Self { link, node, other, url, id, key }
    }

    async fn open(&self, node: &PostgresStore) -> HoldId {
        open(node, &self.key, NOON).await.unwrap().hold.unwrap().id
    }

    async fn update(&self, node: &PostgresStore, id: HoldId, action: HoldAction, now: Timestamp) -> HoldUpdated {
        update(node, &self.id, id, action, now).await
    }

    async fn charge(&self, node: &PostgresStore) {
        let charge = Charge::new(&self.key, Credits::from_atoms(1), "GET", "/x");
        decided(node, charge, NOON).await.unwrap();
    }

    /// Balance, held and used, in atoms.
    async fn amounts(&self) -> [i64; 3] {
        let totals = self.other.account(&self.id).await.unwrap().unwrap().totals;
        [totals.balance, totals.held, totals.used].map(Credits::atoms)
    }

    async fn verify(&self) {
        assert_eq!(self.other.verify().await.unwrap().discrepancies, []);
    }

    /// What `verify` finds: the amounts, as recorded and as computed.
    async fn found(&self) -> Vec<(&'static str, i64, i64)> {
        let found = self.other.verify().await.unwrap().discrepancies;
        found.iter().map(|found| (found.amount, found.recorded.atoms(), found.computed.atoms())).collect()
    }
}

fn hold(key: &ApiKey) -> Charge {
    let terms = HoldTerms::new(&SystemRandomness, LEASE, Credits::from_atoms(FALLBACK));
    Charge { hold: Some(terms), ..Charge::new(key, Credits::from_atoms(AMOUNT), "POST", "/chat") }
}

async fn open(node: &PostgresStore, key: &ApiKey, now: Timestamp) -> Result<Receipt, Refusal> {
    decided(node, hold(key), now).await
}

async fn decided(node: &PostgresStore, charge: Charge, now: Timestamp) -> Result<Receipt, Refusal> {
    match node.commit(vec![Posting::Charge(charge)], now).await.unwrap().remove(0) {
        Outcome::Decided(Decision::Accepted(receipt)) => Ok(receipt),
        Outcome::Decided(Decision::Refused(refusal)) => Err(refusal),
        outcome => panic!("{outcome:?}"),
    }
}

async fn update(
    node: &PostgresStore,
    account: &AccountId,
    id: HoldId,
    action: HoldAction,
    now: Timestamp,
) -> HoldUpdated {
    let update = HoldUpdate { account: account.clone(), id, action, delivery: None };
    match node.commit(vec![Posting::Hold(update)], now).await.unwrap().remove(0) {
        Outcome::Hold(Some(updated)) => updated,
        outcome => panic!("{outcome:?}"),
    }
}

fn capture(atoms: i64) -> HoldAction {
    HoldAction::Capture { cost: Credits::from_atoms(atoms), may_exceed: false }
}

fn later(time: Duration) -> Timestamp {
    NOON.saturating_add(time)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_is_opened_in_one_round_trip_and_settled_in_two() {
    if is_skipped() {
        return;
    }
    let scene = Scene::new(GRANT, 2).await;
    let (mut opening, mut own, mut foreign, mut charging) = (u32::MAX, u32::MAX, u32::MAX, u32::MAX);
    for _ in 0..8 {
        let of_other = scene.open(&scene.other).await;
        // Once another node has written, this one reads first for a while.
        for _ in 0..70 {
            scene.charge(&scene.node).await;
        }
        let before = scene.link.messages();
        let id = scene.open(&scene.node).await;
        let opened = scene.link.messages();
        assert!(scene.update(&scene.node, id, capture(4), NOON).await.changed);
        let settled = scene.link.messages();
        assert!(scene.update(&scene.node, of_other, capture(4), NOON).await.changed);
        let settled_foreign = scene.link.messages();
        scene.charge(&scene.node).await;
        charging = charging.min(scene.link.messages() - settled_foreign);
        (opening, own) = (opening.min(opened - before), own.min(settled - opened));
        foreign = foreign.min(settled_foreign - settled);
    }
    assert_eq!([opening, own, foreign, charging], [1, 2, 2, 1]);
    assert_eq!(scene.amounts().await, [GRANT - 16 * 4 - 8 * 71, 0, 16 * 4 + 8 * 71]);
    scene.verify().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_settle_a_hold_once() {
    if is_skipped() {
        return;
    }
    let scene = Arc::new(Scene::new(GRANT, 8).await);
    let mut captured = 0;
    for round in 0..30 {
        let id = scene.open(if round % 2 == 0 { &scene.node } else { &scene.other }).await;
        let now = later(LEASE);
        let actions = [capture(4), HoldAction::Expire, HoldAction::CaptureFallback, HoldAction::Release, capture(6)];
        let mut tasks = JoinSet::new();
        for (place, action) in actions.into_iter().cycle().take(10).enumerate() {
            let scene = Arc::clone(&scene);
            tasks.spawn(async move {
                let node = if (place + round) % 2 == 0 { &scene.node } else { &scene.other };
                scene.update(node, id, action, now).await
            });
        }
        let results = tasks.join_all().await;
        assert_eq!(results.iter().filter(|result| result.changed).count(), 1, "round {round}");
        let stored = scene.node.hold(&id).await.unwrap().unwrap();
        assert!(stored.settled.is_some() && results.iter().all(|result| result.hold == stored), "{results:?}");
        captured += stored.settled.unwrap().captured.atoms();
    }
    assert_eq!(scene.amounts().await, [GRANT - captured, 0, captured]);
    scene.verify().await;
}

/// A renewal changes only the hold, and no balance.
#[tokio::test(flavor = "multi_thread")]
async fn a_renewal_and_the_end_of_the_lease_exclude_each_other() {
    if is_skipped() {
        return;
    }
    let scene = Scene::new(GRANT, 4).await;
    for round in 0..60 {
        let id = scene.open(&scene.node).await;
        let until = later(3 * LEASE);
        let renewal = scene.update(&scene.node, id, HoldAction::Renew { until }, NOON);
        let expiry = scene.update(&scene.other, id, HoldAction::Expire, later(LEASE));
        let (renewed, expired) = match round % 2 {
            0 => tokio::join!(renewal, expiry),
            _ => {
                let (expired, renewed) = tokio::join!(expiry, renewal);
                (renewed, expired)
            }
        };
        assert_ne!(renewed.changed, expired.changed, "{renewed:?} {expired:?}");
        let Hold { expires_at, settled, .. } = scene.other.hold(&id).await.unwrap().unwrap();
        let reason = settled.map(|settled| settled.reason);
        if expired.changed {
            assert_eq!((expires_at, reason), (later(LEASE), Some(SettleReason::Expiry)));
        } else {
            assert_eq!((expires_at, reason), (until, None));
            assert!(scene.update(&scene.other, id, HoldAction::Release, later(LEASE)).await.changed);
        }
    }
    // In order, so that both outcomes are seen.
    let id = scene.open(&scene.node).await;
    let until = later(2 * LEASE);
    assert!(scene.update(&scene.node, id, HoldAction::Renew { until }, NOON).await.changed);
    assert!(!scene.update(&scene.other, id, HoldAction::Expire, later(LEASE)).await.changed);
    assert!(scene.update(&scene.other, id, HoldAction::Expire, until).await.changed);
    assert!(!scene.update(&scene.node, id, HoldAction::Renew { until: later(4 * LEASE) }, NOON).await.changed);
    scene.verify().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_credits_are_held_once() {
    if is_skipped() {
        return;
    }
    // 64 connections, of two nodes. The last hold is not covered in full.
    let scene = Arc::new(Scene::new(20 * AMOUNT + AMOUNT - 1, 32).await);
    let mut tasks = JoinSet::new();
    for place in 0..64 {
        let scene = Arc::clone(&scene);
        tasks.spawn(async move {
            let node = if place % 2 == 0 { &scene.node } else { &scene.other };
            open(node, &scene.key, NOON).await
        });
    }
    let (mut opened, mut refused) = (Vec::new(), 0);
    for result in tasks.join_all().await {
        match result {
            Ok(receipt) => opened.push(receipt.hold.unwrap().id),
            Err(Refusal::InsufficientCredits { .. }) => refused += 1,
            Err(refusal) => panic!("{refusal:?}"),
        }
    }
    assert_eq!((opened.len(), refused), (20, 44));
    assert_eq!(scene.amounts().await, [AMOUNT - 1, 20 * AMOUNT, 0]);
    scene.verify().await;
    for id in opened {
        scene.update(&scene.other, id, capture(AMOUNT), NOON).await;
    }
    assert_eq!(scene.amounts().await, [AMOUNT - 1, 0, 20 * AMOUNT]);
    scene.verify().await;
}

/// The lease of a node that died ends, and the meter of another node settles its hold.
#[tokio::test(flavor = "multi_thread")]
async fn holds_of_a_dead_node_are_settled_by_another_one() {
    if is_skipped() {
        return;
    }
    let scene = Scene::new(GRANT, 4).await;
    let now = SystemClock.now();
    let dead = open(&scene.node, &scene.key, now.saturating_sub(LEASE)).await.unwrap().hold.unwrap().id;
    let alive = open(&scene.node, &scene.key, now).await.unwrap().hold.unwrap().id;
    let store = Arc::new(scene.other.clone());
    let meter = Meter::start(store, Arc::new(SystemClock), MeterConfig::default());
    let settled = async {
        loop {
            let hold = scene.node.hold(&dead).await.unwrap().unwrap();
            match hold.settled {
                Some(settled) => break settled,
                None => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    let settled = tokio::time::timeout(Duration::from_secs(60), settled).await.expect("a meter settles it");
    assert_eq!((settled.reason, settled.captured.atoms()), (SettleReason::Expiry, FALLBACK));
    assert_eq!(scene.node.hold(&alive).await.unwrap().unwrap().settled, None);
    // Its node was only slow: what it reports comes too late.
    assert!(!scene.update(&scene.node, dead, capture(9), now).await.changed);
    assert_eq!(scene.amounts().await, [GRANT - FALLBACK - AMOUNT, AMOUNT, FALLBACK]);
    meter.drain().await;
    scene.verify().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connection_cuts_around_commits_settle_every_hold_once() {
    if is_skipped() {
        return;
    }
    let scene = Arc::new(Scene::new(GRANT, 4).await);
    scene.link.cut_commits();
    let mut tasks = JoinSet::new();
    for _ in 0..4 {
        let scene = Arc::clone(&scene);
        tasks.spawn(async move {
            for _ in 0..15 {
                let id = scene.open(&scene.node).await;
                let renewal = HoldAction::Renew { until: later(2 * LEASE) };
                assert!(scene.update(&scene.node, id, renewal, NOON).await.changed);
                // Each result is that of this commit, although its response may be lost.
                let updated = scene.update(&scene.node, id, capture(4), NOON).await;
                assert!(updated.changed, "{updated:?}");
            }
        });
    }
    tasks.join_all().await;
    assert!(scene.link.cuts() > 30, "{}", scene.link.cuts());
    assert_eq!(scene.amounts().await, [GRANT - 4 * 15 * 4, 0, 4 * 15 * 4]);
    assert_eq!(scene.other.open_holds(&scene.id, 10).await.unwrap(), []);
    scene.verify().await;
}

/// Creates a key without a budget.
async fn key_below(scene: &Scene) -> (ApiKey, KeyId) {
    let secret = ApiKey::generate(&SystemRandomness);
    let terms = KeyTerms::new("sub".parse().unwrap(), Scopes::ALL);
    let new = NewKey {
        account: scene.id.clone(),
        parent: None,
        secret: secret.hash(),
        terms,
        max_keys: 100,
        created_at: NOON,
    };
    match scene.other.create_key(new).await.unwrap() {
        KeyCreated::Key(key) => (secret, key.id),
        refusal => panic!("{refusal:?}"),
    }
}

async fn limit(scene: &Scene, id: &KeyId, atoms: i64) {
    let limit = Some(Some(Credits::from_atoms(atoms)));
    let change = KeyChange::Terms(Box::new(TermsChange { limit, ..TermsChange::default() }));
    scene.other.change_key(&scene.id, id, None, change, NOON).await.unwrap();
}

/// Another node settles holds of a key whose budget and terms it has never read.
#[tokio::test(flavor = "multi_thread")]
async fn a_budget_counts_holds_and_gets_back_what_is_not_captured() {
    if is_skipped() {
        return;
    }
    let scene = Scene::new(GRANT, 4).await;
    let (secret, id) = key_below(&scene).await;
    let early = open(&scene.node, &secret, NOON).await.unwrap().hold.unwrap().id;
    limit(&scene, &id, 2 * AMOUNT).await;
    let spent = async || {
        let status = scene.node.key(&scene.id, &id, NOON.day()).await.unwrap().unwrap();
        status.spent.unwrap().amount.atoms()
    };
    assert_eq!(spent().await, AMOUNT, "a budget that is set later starts with the open holds");
    let late = open(&scene.node, &secret, NOON).await.unwrap().hold.unwrap().id;
    assert!(matches!(open(&scene.node, &secret, NOON).await, Err(Refusal::KeyBudget { .. })));
    scene.verify().await;
    let third = PostgresStore::connect(&scene.url.parse().unwrap()).await.unwrap();
    scene.update(&third, early, capture(4), NOON).await;
    assert_eq!(spent().await, AMOUNT + 4);
    scene.update(&third, late, HoldAction::Release, NOON).await;
    assert_eq!(spent().await, 4);
    assert!(open(&scene.node, &secret, NOON).await.is_ok());
    scene.verify().await;
    run_in(&scene.url, "UPDATE key_meter SET spent = spent - 1");
    assert_eq!(scene.found().await, [("key_spent", AMOUNT + 3, AMOUNT + 4)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_holds_are_found() {
    if is_skipped() {
        return;
    }
    let scene = Scene::new(GRANT, 2).await;
    let (id, settled) = (scene.open(&scene.node).await, scene.open(&scene.node).await);
    scene.update(&scene.node, settled, capture(4), NOON).await;
    scene.verify().await;
    let balance = GRANT - AMOUNT - 4;
    run_in(&scene.url, "UPDATE hold SET amount = amount + 1 WHERE settled_at IS NULL");
    assert_eq!(scene.found().await, [("balance", balance, balance - 1)]);
    run_in(&scene.url, "UPDATE hold SET amount = amount - 1 WHERE settled_at IS NULL");
    scene.verify().await;
    run_in(&scene.url, "UPDATE hold SET key = 99");
    let error = scene.other.verify().await.unwrap_err().to_string();
    assert!(error.contains("2 holds belong to no key"), "{error}");
    run_in(&scene.url, "UPDATE hold SET key = 0; DELETE FROM hold WHERE settled_at IS NULL");
    assert_eq!(scene.found().await, [("balance", balance, balance + AMOUNT)]);
    let update = HoldUpdate { account: scene.id.clone(), id, action: capture(4), delivery: None };
    let outcomes = scene.node.commit(vec![Posting::Hold(update)], NOON).await.unwrap();
    assert_eq!(outcomes, [Outcome::Hold(None)], "a node that opened it does not trust its memory");
}

/// One batch opens, renews and settles holds of one account, beside charges, and beside holds that do not exist.
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_updates_many_holds_at_once() {
    if is_skipped() {
        return;
    }
    let scene = Scene::new(GRANT, 2).await;
    let (mut ids, unknown) = (Vec::new(), HoldId::generate(&SystemRandomness));
    for _ in 0..6 {
        ids.push(scene.open(&scene.node).await);
    }
    let posting = |id, action| Posting::Hold(HoldUpdate { account: scene.id.clone(), id, action, delivery: None });
    for node in [&scene.other, &scene.node] {
        let (own, twice) = (ids.split_off(ids.len() - 3), capture(1));
        let batch = vec![
            posting(own[0], capture(4)),
            Posting::Charge(hold(&scene.key)),
            posting(unknown, capture(4)),
            posting(own[1], HoldAction::Renew { until: later(2 * LEASE) }),
            posting(own[2], HoldAction::Release),
            posting(own[0], twice),
            Posting::Charge(Charge::new(&scene.key, Credits::from_atoms(1), "GET", "/x")),
            posting(own[1], HoldAction::CaptureFallback),
        ];
        let outcomes = node.commit(batch, NOON).await.unwrap();
        let changed: Vec<_> = outcomes
            .iter()
            .filter_map(|outcome| match outcome {
                Outcome::Hold(updated) => Some(updated.as_ref().map(|updated| updated.changed)),
                _ => None,
            })
            .collect();
        assert_eq!(changed, [Some(true), None, Some(true), Some(true), Some(false), Some(true)]);
    }
    let used = 2 * (4 + FALLBACK + 1);
    assert_eq!(scene.amounts().await, [GRANT - used - 2 * AMOUNT, 2 * AMOUNT, used]);
    let shown = scene.other.activity(&scene.id, 20).await.unwrap();
    let mut kinds: Vec<_> = shown.iter().map(|entry| (entry.kind.as_str(), entry.amount.atoms())).collect();
    kinds.sort_unstable();
    let of_batch = [("hold_released", 0), ("usage", -4 - FALLBACK), ("usage", -1)];
    let mut expected: Vec<_> = of_batch.iter().chain(&of_batch).copied().collect();
    expected.push(("signup_bonus", GRANT));
    expected.sort_unstable();
    assert_eq!(kinds, expected);
    scene.verify().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn settled_holds_are_forgotten_and_open_ones_never() {
    if is_skipped() {
        return;
    }
    let scene = Scene::new(GRANT, 2).await;
    let (kept, gone) = (scene.open(&scene.node).await, scene.open(&scene.node).await);
    scene.update(&scene.node, gone, capture(4), NOON).await;
    let end = NOON.saturating_add(Hold::RETENTION);
    assert_eq!(scene.node.forget_expired(end.saturating_sub(Duration::from_millis(1))).await.unwrap(), 0);
    assert!(scene.node.hold(&gone).await.unwrap().is_some());
    assert_eq!(scene.node.forget_expired(end).await.unwrap(), 1);
    assert_eq!(scene.node.hold(&gone).await.unwrap(), None);
    scene.node.forget_expired(end.saturating_add(Duration::from_secs(1_000_000_000))).await.unwrap();
    assert_eq!(scene.node.expired_holds(end, 10).await.unwrap()[0].id, kept);
    scene.verify().await;
}
