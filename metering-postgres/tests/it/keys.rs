//! Keys on several nodes: every change takes effect immediately, and no budget is exceeded.

use std::sync::Arc;

use metering_core::access::{Budget, BudgetReset, KeyHash, KeyId, KeyName, KeyRefusal, KeyTerms, Scopes};
use metering_core::charging::{InFlight, Outcome, Posting};
use metering_core::money::{LedgerKind, NewLedgerEntry};
use metering_core::store::{KeyChange, KeyChanged, KeyCreated, KeyStore, NewKey, TermsChange};
use metering_core::{
    AccountId, ApiKey, Charge, Credits, Decision, NewAccount, RateLimits, Receipt, Refusal, Store, SystemRandomness,
};
use metering_postgres::PostgresStore;
use metering_tests::database_proxy::DatabaseProxy;
use metering_tests::postgres::{Cluster, fresh_schema, run_in};

use crate::lost_commits::NOON;

const PRICE: i64 = 10;

/// Two nodes on one database with one account; the first node's connections go through the proxy, and the other one's
/// statements are unnamed.
struct Scene {
    link: DatabaseProxy,
    node: PostgresStore,
    other: PostgresStore,
    url: String,
    id: AccountId,
    first: ApiKey,
}

impl Scene {
    /// `None` if these tests are disabled.
    async fn new() -> Option<Self> {
        let url = fresh_schema()?;
        let link = DatabaseProxy::to(Cluster::shared().address());
        let other = PostgresStore::connect(&format!("{url}&statement_cache=off").parse().unwrap()).await.unwrap();
        let node =
            PostgresStore::connect(&format!("{}&pool_size=2", link.through(&url)).parse().unwrap()).await.unwrap();
        let (first, id) = (ApiKey::generate(&SystemRandomness), AccountId::generate(&SystemRandomness));
        let mut account = NewAccount::new(id.clone(), "agent".parse().unwrap(), first.hash(), NOON);
        account.limits = RateLimits::NONE;
        account.entries = vec![NewLedgerEntry::new(LedgerKind::SignupBonus, Credits::from_atoms(1_000_000), "Free")];
        other.create_account(account).await.unwrap();
        Some(Self { link, node, other, url, id, first })
    }

    /// Creates a child key of another one, or of the first.
    async fn create(&self, parent: Option<&KeyId>, change: impl FnOnce(&mut KeyTerms)) -> (ApiKey, KeyId) {
        let secret = ApiKey::generate(&SystemRandomness);
        let mut terms = KeyTerms::new("sub".parse::<KeyName>().unwrap(), Scopes::ALL);
        change(&mut terms);
        let (account, parent) = (self.id.clone(), parent.cloned());
        let new = NewKey { account, parent, secret: secret.hash(), terms, max_keys: 100, created_at: NOON };
        match self.other.create_key(new).await.unwrap() {
            KeyCreated::Key(key) => (secret, key.id),
            refusal => panic!("{refusal:?}"),
        }
    }

    /// Changes a key on the other node.
    async fn change(&self, id: &KeyId, change: KeyChange) {
        let changed = self.other.change_key(&self.id, id, None, change, NOON).await.unwrap();
        assert!(matches!(changed, KeyChanged::Key(_)), "{changed:?}");
    }

    async fn charge(&self, node: &PostgresStore, key: &ApiKey) -> Result<Receipt, Refusal> {
        decided(node, Charge::new(key, Credits::from_atoms(PRICE), "GET", "/x")).await
    }

    /// Charges until the first node decides without reading.
    async fn warm_up(&self, key: &ApiKey) {
        for _ in 0..70 {
            self.charge(&self.node, key).await.unwrap();
        }
        assert_eq!(self.least_messages(key, 3).await, 1);
    }

    /// The least number of messages that a charge on the first node took, of `count`.
    async fn least_messages(&self, key: &ApiKey, count: usize) -> u32 {
        let mut least = u32::MAX;
        for _ in 0..count {
            let before = self.link.messages();
            self.charge(&self.node, key).await.unwrap();
            least = least.min(self.link.messages() - before);
        }
        least
    }

    async fn spent(&self, id: &KeyId) -> i64 {
        let status = self.other.key(&self.id, id, NOON.day()).await.unwrap().unwrap();
        status.spent.unwrap().amount.atoms()
    }

    async fn verify(&self) {
        let found = self.other.verify().await.unwrap();
        assert_eq!((found.discrepancies, found.restarted_budgets), (vec![], vec![]));
    }
}

async fn decided(node: &PostgresStore, charge: Charge) -> Result<Receipt, Refusal> {
    match node.commit(vec![Posting::Charge(charge)], NOON).await.unwrap().remove(0) {
        Outcome::Decided(Decision::Accepted(receipt)) => Ok(receipt),
        Outcome::Decided(Decision::Refused(refusal)) => Err(refusal),
        outcome => panic!("{outcome:?}"),
    }
}

fn budget(atoms: i64) -> Budget {
    Budget { limit: Credits::from_atoms(atoms), reset: Some(BudgetReset::Monthly) }
}

fn terms(change: TermsChange) -> KeyChange {
    KeyChange::Terms(Box::new(change))
}

fn is_budget(refused: &Result<Receipt, Refusal>) -> bool {
    matches!(refused, Err(Refusal::KeyBudget { .. }))
}

/// A charge that was decided without reading is checked against the current keys.
#[tokio::test(flavor = "multi_thread")]
async fn every_change_of_a_key_by_another_node_counts_at_once() {
    let Some(scene) = Scene::new().await else { return };
    let (middle_secret, middle) = scene.create(None, |_| {}).await;
    let (secret, id) = scene.create(Some(&middle), |_| {}).await;
    let disabled = |disabled| terms(TermsChange { disabled: Some(disabled), ..TermsChange::default() });

    scene.warm_up(&secret).await;
    scene.change(&id, disabled(true)).await;
    assert_eq!(scene.charge(&scene.node, &secret).await, Err(Refusal::UnknownKey));
    assert!(scene.charge(&scene.node, &middle_secret).await.is_ok(), "only its child key is disabled");
    scene.change(&id, disabled(false)).await;
    assert!(scene.charge(&scene.node, &secret).await.is_ok());

    scene.warm_up(&secret).await;
    let routes = TermsChange { routes: Some("/y".parse().unwrap()), ..TermsChange::default() };
    scene.change(&middle, terms(routes)).await;
    assert_eq!(scene.charge(&scene.node, &secret).await, Err(Refusal::Key(KeyRefusal::Route)), "a parent key");
    scene.change(&middle, terms(TermsChange { routes: Some("/x".parse().unwrap()), ..TermsChange::default() })).await;

    scene.warm_up(&secret).await;
    let used = scene.other.account(&scene.id).await.unwrap().unwrap().totals.used.atoms();
    let limit = TermsChange { limit: Some(Some(Credits::from_atoms(used + PRICE))), ..TermsChange::default() };
    scene.change(&middle, terms(limit)).await;
    assert!(scene.charge(&scene.node, &secret).await.is_ok(), "all of it was spent with these two keys");
    assert!(is_budget(&scene.charge(&scene.node, &secret).await));
    scene.change(&middle, terms(TermsChange { limit: Some(None), ..TermsChange::default() })).await;

    scene.warm_up(&secret).await;
    let (new, other_new) = (ApiKey::generate(&SystemRandomness), ApiKey::generate(&SystemRandomness));
    scene.change(&id, KeyChange::Rotate { secret: new.hash(), old_until: None }).await;
    assert_eq!(scene.charge(&scene.node, &secret).await, Err(Refusal::UnknownKey));
    assert!(scene.charge(&scene.node, &new).await.is_ok());

    scene.warm_up(&new).await;
    assert!(scene.other.report_leaked(&new.hash(), NOON).await.unwrap().is_some());
    assert_eq!(scene.charge(&scene.node, &new).await, Err(Refusal::UnknownKey));
    scene.change(&id, KeyChange::Rotate { secret: other_new.hash(), old_until: None }).await;

    scene.warm_up(&other_new).await;
    scene.change(&middle, KeyChange::Revoke).await;
    assert_eq!(scene.charge(&scene.node, &other_new).await, Err(Refusal::UnknownKey));

    scene.warm_up(&scene.first).await;
    scene.other.revoke_account(&scene.id, NOON).await.unwrap();
    assert_eq!(scene.charge(&scene.node, &scene.first).await, Err(Refusal::UnknownKey));
    scene.verify().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_with_budgets_commit_in_one_round_trip_too() {
    let Some(scene) = Scene::new().await else { return };
    let (above, top) = scene.create(None, |terms| terms.budget = Some(budget(100_000))).await;
    let (secret, id) = scene.create(Some(&top), |terms| terms.budget = Some(budget(90_000))).await;
    let (limited, _) = scene.create(None, |terms| terms.limits.requests_per_day = 100_000).await;
    // Keys that take turns do not make the node forget each other's meters.
    let all = [&scene.first, &above, &secret, &limited];
    for key in all.into_iter().cycle().take(40) {
        scene.charge(&scene.node, key).await.unwrap();
    }
    for key in all {
        assert_eq!(scene.least_messages(key, 1).await, 1);
    }
    let receipt = scene.charge(&scene.node, &limited).await.unwrap();
    assert_eq!((receipt.rate.day.count, receipt.rate.limits.requests_per_day), (12, 100_000));
    // The other node charges, and this one reads the remaining budget.
    scene.charge(&scene.other, &secret).await.unwrap();
    scene.charge(&scene.node, &secret).await.unwrap();
    assert_eq!((scene.spent(&id).await, scene.spent(&top).await), (13 * PRICE, 24 * PRICE));
    // Refunds give back, to the parent keys as well.
    let refund = scene.charge(&scene.node, &secret).await.unwrap().into_refund().unwrap();
    scene.other.commit(vec![Posting::Refund(refund)], NOON).await.unwrap();
    assert_eq!((scene.spent(&id).await, scene.spent(&top).await), (13 * PRICE, 24 * PRICE));
    scene.verify().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_that_two_nodes_race_for_is_spent_exactly() {
    let Some(scene) = Scene::new().await else { return };
    let (_, top) = scene.create(None, |terms| terms.budget = Some(budget(100 * PRICE + 3))).await;
    let mut secrets = Vec::new();
    for limit in [None, Some(budget(60 * PRICE)), None] {
        secrets.push(scene.create(Some(&top), |terms| terms.budget = limit).await.0);
    }
    let (nodes, secrets) = (Arc::new([scene.node.clone(), scene.other.clone()]), Arc::new(secrets));
    let mut tasks = Vec::new();
    for task in 0..6_usize {
        let (nodes, secrets) = (Arc::clone(&nodes), Arc::clone(&secrets));
        tasks.push(tokio::spawn(async move {
            let mut accepted = 0;
            for round in 0..40 {
                let key = &secrets[(task + round) % 3];
                let charge = || Posting::Charge(Charge::new(key, Credits::from_atoms(PRICE), "GET", "/x"));
                let outcomes = nodes[task % 2].commit(vec![charge(), charge()], NOON).await.unwrap();
                for outcome in outcomes {
                    match outcome {
                        Outcome::Decided(Decision::Accepted(_)) => accepted += 1,
                        Outcome::Decided(Decision::Refused(Refusal::KeyBudget { .. })) => {}
                        outcome => panic!("{outcome:?}"),
                    }
                }
            }
            accepted
        }));
    }
    let mut accepted = 0;
    for task in tasks {
        accepted += task.await.unwrap();
    }
    assert_eq!((accepted, scene.spent(&top).await), (100, 100 * PRICE));
    let used = scene.other.account(&scene.id).await.unwrap().unwrap().totals.used.atoms();
    assert_eq!(used, 100 * PRICE);
    scene.verify().await;
}

/// Usage that is folded into daily totals counts, and usage that is still in the tail, of the key and its child keys.
#[tokio::test(flavor = "multi_thread")]
async fn a_budget_that_is_set_later_starts_with_what_was_spent() {
    let Some(scene) = Scene::new().await else { return };
    let (above, top) = scene.create(None, |_| {}).await;
    let (secret, id) = scene.create(Some(&top), |_| {}).await;
    for key in [&scene.first, &above, &secret].into_iter().cycle().take(60) {
        scene.charge(&scene.node, key).await.unwrap();
    }
    let places = run_in(&scene.url, "SELECT sum(amount) BETWEEN 10 AND 590 FROM usage_daily");
    assert_eq!(places, "t", "some usage is in the table, and some in the tail");
    let limit = Some(Some(Credits::from_atoms(41 * PRICE)));
    scene.change(&top, terms(TermsChange { limit, ..TermsChange::default() })).await;
    assert_eq!(scene.spent(&top).await, 40 * PRICE);
    assert!(scene.charge(&scene.node, &secret).await.is_ok());
    assert!(is_budget(&scene.charge(&scene.node, &secret).await));
    assert!(is_budget(&scene.charge(&scene.other, &above).await));
    assert!(scene.charge(&scene.node, &scene.first).await.is_ok(), "the first key is above both");
    // A period that starts with the day has the same usage; what the key itself spent is half of it.
    let reset = TermsChange { limit, limit_reset: Some(Some(BudgetReset::Daily)), ..TermsChange::default() };
    scene.change(&id, terms(reset)).await;
    assert_eq!(scene.spent(&id).await, 21 * PRICE);
    scene.verify().await;
    let lost = "UPDATE key_meter SET spent = spent - 1 WHERE key = 1";
    run_in(&scene.url, lost);
    let found = scene.other.verify().await.unwrap().restarted_budgets;
    assert_eq!(
        found.iter().map(|found| (found.amount, found.computed.atoms())).collect::<Vec<_>>(),
        [("key_spent", 41 * PRICE)]
    );
}

/// Discarded decisions do not count as in flight.
#[tokio::test(flavor = "multi_thread")]
async fn a_charge_that_is_decided_again_is_in_progress_once() {
    let Some(scene) = Scene::new().await else { return };
    let (secret, id) = scene.create(None, |terms| terms.max_in_flight = 1).await;
    let number = scene.other.key(&scene.id, &id, NOON.day()).await.unwrap().unwrap().key.number;
    let in_flight = InFlight::default();
    let charge = || Charge::new(&secret, Credits::from_atoms(PRICE), "GET", "/x").with_in_flight(in_flight.clone());
    for _ in 0..3 {
        scene.warm_up(&secret).await;
        scene.charge(&scene.other, &secret).await.unwrap();
        let receipt = decided(&scene.node, charge()).await.unwrap();
        assert_eq!(in_flight.count(&scene.id, number), 1);
        assert_eq!(decided(&scene.node, charge()).await, Err(Refusal::TooManyInFlight));
        drop(receipt);
        assert_eq!(in_flight.count(&scene.id, number), 0);
    }
    scene.link.cut_commits();
    for _ in 0..20 {
        drop(decided(&scene.node, charge()).await.unwrap());
        assert_eq!(in_flight.count(&scene.id, number), 0);
    }
    assert!(scene.link.cuts() > 3, "{}", scene.link.cuts());
    scene.verify().await;
}

/// A secret with a grace period works until it ends, and is checked with each charge.
#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_secret_works_until_its_grace_period_ends() {
    let Some(scene) = Scene::new().await else { return };
    let (old, id) = scene.create(None, |_| {}).await;
    let new = ApiKey::generate(&SystemRandomness);
    let until = NOON.saturating_add(std::time::Duration::from_secs(60));
    scene.warm_up(&old).await;
    scene.change(&id, KeyChange::Rotate { secret: new.hash(), old_until: Some(until) }).await;
    let hashes: [KeyHash; 2] = [old.hash(), new.hash()];
    for (at, live) in [(NOON, [true, true]), (until, [false, true])] {
        let charge = |key| Posting::Charge(Charge::new(key, Credits::from_atoms(PRICE), "GET", "/x"));
        let outcomes = scene.node.commit(vec![charge(&old), charge(&new)], at).await.unwrap();
        let accepted = |outcome: &Outcome| matches!(outcome, Outcome::Decided(Decision::Accepted(_)));
        assert_eq!(outcomes.iter().map(accepted).collect::<Vec<_>>(), live);
        assert_eq!(scene.node.live_keys(&hashes, at).await.unwrap(), live);
    }
    scene.verify().await;
}
