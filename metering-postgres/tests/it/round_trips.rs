//! Commits that need no reading first: how many messages they take, and that they always check cached data.

use std::time::Duration;

use metering_core::charging::{Outcome, Posting};
use metering_core::money::{LedgerKind, NewLedgerEntry};
use metering_core::store::{EpochReason, LogSecret, LogStore, NewEpoch};
use metering_core::{
    AccountId, ApiKey, Charge, Credits, Decision, NewAccount, RateLimits, Refusal, Store, SystemRandomness,
};
use metering_postgres::PostgresStore;
use metering_tests::database_proxy::DatabaseProxy;
use metering_tests::postgres::{Cluster, fresh_schema};

use crate::lost_commits::{NOON, charge};
use crate::volumes::by_volume;

/// Two nodes on one database with one account of `credits` atoms; the first node's connection goes through the proxy.
struct Scene {
    link: DatabaseProxy,
    node: PostgresStore,
    other: PostgresStore,
    url: String,
    id: AccountId,
    key: ApiKey,
}

impl Scene {
    /// `None` if these tests are disabled.
    async fn new(credits: i64) -> Option<Self> {
        let url = fresh_schema()?;
        let link = DatabaseProxy::to(Cluster::shared().address());
        let other = PostgresStore::connect(&url.parse().unwrap()).await.unwrap();
        let node =
            PostgresStore::connect(&format!("{}&pool_size=2", link.through(&url)).parse().unwrap()).await.unwrap();
        let (key, id) = (ApiKey::generate(&SystemRandomness), AccountId::generate(&SystemRandomness));
        let mut account = NewAccount::new(id.clone(), "agent".parse().unwrap(), key.hash(), NOON);
        account.limits = RateLimits::NONE;
        account.entries = vec![NewLedgerEntry::new(LedgerKind::SignupBonus, Credits::from_atoms(credits), "Free")];
        other.create_account(account).await.unwrap();
        Some(Self { link, node, other, url, id, key })
    }

    /// The first node, after a restart.
    async fn restarted(&self) -> PostgresStore {
        PostgresStore::connect(&self.url.parse().unwrap()).await.unwrap()
    }

    /// Charges once on a node, and returns the balance after it, or the refusal.
    async fn charge(&self, node: &PostgresStore) -> Result<i64, Refusal> {
        Self::commit(node, charge(&self.key)).await
    }

    async fn commit(node: &PostgresStore, charge: Posting) -> Result<i64, Refusal> {
        match node.commit(vec![charge], NOON).await.unwrap().remove(0) {
            Outcome::Decided(Decision::Accepted(receipt)) => Ok(receipt.balance.atoms()),
            Outcome::Decided(Decision::Refused(refusal)) => Err(refusal),
            outcome => panic!("{outcome:?}"),
        }
    }

    /// The least number of messages that a charge took, of `count`.
    async fn least_messages(&self, count: usize) -> u32 {
        self.least_messages_of(charge(&self.key), count).await
    }

    async fn least_messages_of(&self, charge: Posting, count: usize) -> u32 {
        let Posting::Charge(charge) = charge else { panic!("{charge:?}") };
        let mut least = u32::MAX;
        for _ in 0..count {
            let before = self.link.messages();
            Self::commit(&self.node, Posting::Charge(charge.clone())).await.unwrap();
            least = least.min(self.link.messages() - before);
        }
        least
    }

    async fn verify(&self) {
        assert_eq!(self.other.verify().await.unwrap().discrepancies, []);
    }
}

const PRICE: i64 = Credits::BASE_CALL.atoms();

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_charges_alone_commits_in_one_round_trip() {
    let Some(scene) = Scene::new(1_000 * PRICE).await else { return };
    // The first commits prepare their statements.
    let _ = scene.least_messages(3).await;
    assert_eq!(scene.least_messages(40).await, 1);
    // Once another node has charged the account, this one reads first for a while.
    scene.charge(&scene.other).await.unwrap();
    scene.charge(&scene.node).await.unwrap();
    assert_eq!(scene.least_messages(40).await, 2);
    let _ = scene.least_messages(24).await;
    assert_eq!(scene.least_messages(10).await, 1);
    scene.verify().await;
}

/// The node has not seen the log, and would commit without reading. The charge is made once, and has its leaf.
#[tokio::test(flavor = "multi_thread")]
async fn a_log_opened_elsewhere_has_the_next_charge_and_takes_no_more_round_trips() {
    let Some(scene) = Scene::new(1_000 * PRICE).await else { return };
    let _ = scene.least_messages(3).await;
    assert_eq!(scene.least_messages(10).await, 1);
    let new = NewEpoch {
        origin: "log.example/1".to_owned(),
        secret: LogSecret::new([7; 32]),
        reason: EpochReason::Init,
        previous: None,
    };
    scene.other.begin_log(new, None, NOON).await.unwrap().expect("it is the first");
    let before = scene.node.account(&scene.id).await.unwrap().unwrap().totals.balance.atoms();
    assert_eq!(scene.charge(&scene.node).await, Ok(before - PRICE));
    // This node's first commit reads, and finds the log too.
    let restarted = scene.restarted().await;
    assert_eq!(scene.charge(&restarted).await, Ok(before - 2 * PRICE));
    let epoch = scene.other.claim_log("node-1", Duration::from_secs(9), NOON).await.unwrap().unwrap();
    let found = scene.other.unlogged(&epoch, 99).await.unwrap();
    assert_eq!(found.postings.len(), 3, "the opening funds and the two charges");
    assert_eq!(found.batches.len(), 2);
    let _ = scene.least_messages(70).await;
    assert_eq!(scene.least_messages(10).await, 1);
    let found = scene.other.unlogged(&epoch, 99).await.unwrap();
    assert_eq!(found.batches.len(), 2 + 70 + 10);
    scene.verify().await;
}

/// Counts are read under the locks, because no check of the meters would notice that another node changed them.
#[tokio::test(flavor = "multi_thread")]
async fn volume_tiers_take_two_round_trips_and_cost_other_charges_nothing() {
    let Some(scene) = Scene::new(1_000 * PRICE).await else { return };
    let request = || Posting::Charge(by_volume(Charge::new(&scene.key, Credits::ZERO, "GET", "/tiered")));
    let _ = scene.least_messages_of(request(), 3).await;
    let _ = scene.least_messages(3).await;
    for _ in 0..3 {
        assert_eq!(scene.least_messages_of(request(), 10).await, 2);
        assert_eq!(scene.least_messages(10).await, 1);
    }
    // This node's cached account is still valid after another node counted a request.
    Scene::commit(&scene.other, request()).await.unwrap();
    assert_eq!(scene.least_messages_of(request(), 10).await, 2);
    let volumes = scene.node.volumes(&scene.id).await.unwrap();
    assert_eq!(volumes.iter().map(|(_, volume)| volume.requests).collect::<Vec<_>>(), [3 + 30 + 1 + 10]);
    scene.verify().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_change_by_another_node_counts_at_once() {
    let Some(scene) = Scene::new(100 * PRICE).await else { return };
    // Each change meets a node that would decide without reading.
    let settled = async |expected| {
        for _ in 0..70 {
            let entry = NewLedgerEntry::new(LedgerKind::Adjustment, Credits::from_atoms(PRICE), "Again");
            scene.node.post_entry(&scene.id, entry, NOON).await.unwrap();
            scene.charge(&scene.node).await.unwrap();
        }
        scene.charge(&scene.node).await.unwrap();
        assert_eq!(scene.charge(&scene.node).await, Ok(expected));
    };
    settled(98 * PRICE).await;
    assert_eq!(scene.charge(&scene.other).await, Ok(97 * PRICE));
    assert_eq!(scene.charge(&scene.node).await, Ok(96 * PRICE));

    settled(94 * PRICE).await;
    let entry = NewLedgerEntry::new(LedgerKind::Adjustment, Credits::from_atoms(-90 * PRICE), "Taken back");
    scene.other.post_entry(&scene.id, entry, NOON).await.unwrap();
    assert_eq!(scene.charge(&scene.node).await, Ok(3 * PRICE));

    settled(PRICE).await;
    let limits = RateLimits::per_minute(1);
    scene.other.set_limits(&scene.id, limits).await.unwrap();
    assert!(matches!(scene.charge(&scene.node).await, Err(Refusal::RateLimited { .. })));
    scene.other.set_limits(&scene.id, RateLimits::NONE).await.unwrap();
    let entry = NewLedgerEntry::new(LedgerKind::Adjustment, Credits::from_atoms(9 * PRICE), "Again");
    scene.other.post_entry(&scene.id, entry, NOON).await.unwrap();

    settled(8 * PRICE).await;
    let new = ApiKey::generate(&SystemRandomness);
    scene.other.replace_key(&scene.id, new.hash(), NOON).await.unwrap();
    assert_eq!(scene.charge(&scene.node).await, Err(Refusal::UnknownKey));
    scene.verify().await;
}
