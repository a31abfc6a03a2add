//! An account with holds, and two nodes that open and settle them.

use std::time::Duration;

use metering_core::charging::{HoldAction, HoldId, HoldTerms, HoldUpdate, HoldUpdated, Outcome, Posting};
use metering_core::money::{LedgerKind, NewLedgerEntry};
use metering_core::{
    AccountId, ApiKey, Charge, Credits, Decision, NewAccount, RateLimits, Receipt, Refusal, Store, SystemRandomness,
    Timestamp,
};
use metering_postgres::PostgresStore;
use metering_tests::database_proxy::DatabaseProxy;
use metering_tests::postgres::{Cluster, fresh_schema};

use crate::lost_commits::NOON;

pub(crate) const LEASE: Duration = Duration::from_secs(30);
pub(crate) const FALLBACK: i64 = 3;
pub(crate) const AMOUNT: i64 = 10;
pub(crate) const GRANT: i64 = 1_000_000;

/// Two nodes on one database with one account; the first node's connections go through the proxy, and the other one's
/// statements are unnamed.
pub(crate) struct Scene {
    pub(crate) link: DatabaseProxy,
    pub(crate) node: PostgresStore,
    pub(crate) other: PostgresStore,
    pub(crate) url: String,
    pub(crate) id: AccountId,
    pub(crate) key: ApiKey,
}

impl Scene {
    /// `None` if these tests are disabled.
    pub(crate) async fn new(credits: i64, connections: usize) -> Option<Self> {
        let url = fresh_schema()?;
        let link = DatabaseProxy::to(Cluster::shared().address());
        let connect = async |url: String| {
            PostgresStore::connect(&format!("{url}&pool_size={connections}").parse().unwrap()).await.unwrap()
        };
        let other = connect(format!("{url}&statement_cache=off")).await;
        let node = connect(link.through(&url)).await;
        let (key, id) = (ApiKey::generate(&SystemRandomness), AccountId::generate(&SystemRandomness));
        let mut account = NewAccount::new(id.clone(), "agent".parse().unwrap(), key.hash(), NOON);
        account.limits = RateLimits::NONE;
        account.entries = vec![NewLedgerEntry::new(LedgerKind::SignupBonus, Credits::from_atoms(credits), "Free")];
        other.create_account(account).await.unwrap();
        Some(Self { link, node, other, url, id, key })
    }

    pub(crate) async fn open(&self, node: &PostgresStore) -> HoldId {
        open(node, &self.key, NOON).await.unwrap().hold.unwrap().id
    }

    pub(crate) async fn update(
        &self,
        node: &PostgresStore,
        id: HoldId,
        action: HoldAction,
        now: Timestamp,
    ) -> HoldUpdated {
        update(node, &self.id, id, action, now).await
    }

    pub(crate) async fn charge(&self, node: &PostgresStore) {
        let charge = Charge::new(&self.key, Credits::from_atoms(1), "GET", "/x");
        decided(node, charge, NOON).await.unwrap();
    }

    /// Balance, held and used, in atoms.
    pub(crate) async fn amounts(&self) -> [i64; 3] {
        let totals = self.other.account(&self.id).await.unwrap().unwrap().totals;
        [totals.balance, totals.held, totals.used].map(Credits::atoms)
    }

    pub(crate) async fn verify(&self) {
        let found = self.other.verify().await.unwrap();
        assert_eq!((found.discrepancies, found.restarted_budgets), (vec![], vec![]));
    }

    /// The result of `verify`: the recorded and the computed amounts.
    pub(crate) async fn found(&self) -> Vec<(&'static str, i64, i64)> {
        let found = self.other.verify().await.unwrap();
        let found = found.discrepancies.iter().chain(&found.restarted_budgets);
        found.map(|found| (found.amount, found.recorded.atoms(), found.computed.atoms())).collect()
    }
}

pub(crate) fn hold(key: &ApiKey) -> Charge {
    let terms = HoldTerms::new(&SystemRandomness, LEASE, Credits::from_atoms(FALLBACK));
    Charge::new(key, Credits::from_atoms(AMOUNT), "POST", "/chat").with_hold(terms)
}

pub(crate) async fn open(node: &PostgresStore, key: &ApiKey, now: Timestamp) -> Result<Receipt, Refusal> {
    decided(node, hold(key), now).await
}

pub(crate) async fn decided(node: &PostgresStore, charge: Charge, now: Timestamp) -> Result<Receipt, Refusal> {
    match node.commit(vec![Posting::Charge(charge)], now).await.unwrap().remove(0) {
        Outcome::Decided(Decision::Accepted(receipt)) => Ok(receipt),
        Outcome::Decided(Decision::Refused(refusal)) => Err(refusal),
        outcome => panic!("{outcome:?}"),
    }
}

pub(crate) async fn update(
    node: &PostgresStore,
    account: &AccountId,
    id: HoldId,
    action: HoldAction,
    now: Timestamp,
) -> HoldUpdated {
    let update = HoldUpdate::new(account.clone(), id, action);
    match node.commit(vec![Posting::Hold(update)], now).await.unwrap().remove(0) {
        Outcome::Hold(Some(updated)) => updated,
        outcome => panic!("{outcome:?}"),
    }
}

pub(crate) fn capture(atoms: i64) -> HoldAction {
    HoldAction::Capture { cost: Credits::from_atoms(atoms), may_exceed: false }
}

pub(crate) fn later(time: Duration) -> Timestamp {
    NOON.saturating_add(time)
}
