//! Holds: how many round trips they take, what they count for, and what is found if they are lost.

use metering_core::access::{KeyId, KeyTerms, Scopes};
use metering_core::charging::{HoldAction, HoldId, HoldUpdate, Outcome, Posting};
use metering_core::store::{KeyChange, KeyCreated, KeyStore, NewKey, TermsChange};
use metering_core::{ApiKey, Charge, Credits, Refusal, Store, SystemRandomness};
use metering_postgres::PostgresStore;
use metering_tests::postgres::run_in;

use crate::hold_scene::{AMOUNT, FALLBACK, GRANT, LEASE, Scene, capture, hold, later, open};
use crate::lost_commits::NOON;

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_is_opened_in_one_round_trip_and_settled_in_two() {
    let Some(scene) = Scene::new(GRANT, 2).await else { return };
    let (mut opening, mut own, mut foreign, mut charging) = (u32::MAX, u32::MAX, u32::MAX, u32::MAX);
    for _ in 0..8 {
        let of_other = scene.open(&scene.other).await;
        // After another node has written, this node reads first for a while.
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
    let Some(scene) = Scene::new(GRANT, 4).await else { return };
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
    let Some(scene) = Scene::new(GRANT, 2).await else { return };
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
    let update = HoldUpdate::new(scene.id.clone(), id, capture(4));
    let outcomes = scene.node.commit(vec![Posting::Hold(update)], NOON).await.unwrap();
    assert_eq!(outcomes, [Outcome::Hold(None)], "a node that opened it does not trust its memory");
}

/// One batch opens, renews and settles holds of one account, beside charges, and beside holds that do not exist.
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_updates_many_holds_at_once() {
    let Some(scene) = Scene::new(GRANT, 2).await else { return };
    let (mut ids, unknown) = (Vec::new(), HoldId::generate(&SystemRandomness));
    for _ in 0..6 {
        ids.push(scene.open(&scene.node).await);
    }
    let posting = |id, action| Posting::Hold(HoldUpdate::new(scene.id.clone(), id, action));
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
