//! Contracts for the log of every posting: its opening state, and that each posting is taken once and in order.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use metering_core::FullStore;
use metering_core::charging::{Posting, UsageKind};
use metering_core::clock::Timestamp;
use metering_core::store::{
    AccountRow, EpochReason, LogEpoch, LogSecret, LogStep, Logged, NewEpoch, NewLogged, PreviousLog, StoredBundle,
    Unlogged, UnloggedPosting,
};
use tokio::task::JoinSet;

use super::hold_scene::open;
use super::scene::{NOON, accepted, adjustment, assert_verified, charge, commit_refund, customer, post, totals};

const NODE: &str = "node-1";
const LEASE: Duration = Duration::from_secs(10);

fn new_epoch(origin: &str) -> NewEpoch {
    NewEpoch { origin: origin.to_owned(), secret: LogSecret::new([7; 32]), reason: EpochReason::Init, previous: None }
}

pub(super) async fn begin(store: &dyn FullStore) -> LogEpoch {
    store.begin_log(new_epoch("log.example/1"), None, NOON).await.unwrap().expect("it is the first")
}

async fn claim(store: &dyn FullStore) -> LogEpoch {
    store.claim_log(NODE, LEASE, NOON).await.unwrap().expect("no other node has the lease")
}

/// The step that appends what was found, with fake leaves.
async fn step(store: &dyn FullStore, epoch: &LogEpoch, found: &Unlogged) -> LogStep {
    let mut rows: Vec<AccountRow> = found.postings.iter().filter_map(|posting| posting.account).collect();
    rows.sort_unstable();
    rows.dedup();
    let known = store.logged_accounts(epoch.number, &rows).await.unwrap();
    let new = known.iter().filter(|account| account.number.is_none());
    let numbered = (epoch.accounts..).zip(new).map(|(number, account)| NewLogged { row: account.row, number });
    let size = epoch.size + found.postings.len() as u64;
    LogStep {
        epoch: epoch.number,
        node: NODE.to_owned(),
        from: epoch.size,
        size,
        root: [1; 32],
        bundles: vec![StoredBundle { index: 0, until: NOON, hash: None, leaves: size.to_be_bytes().to_vec() }],
        tiles: vec![(1, 0, vec![2; 32])],
        accounts: numbered.collect(),
        lines: Vec::new(),
        taken: found.taken,
        batches: found.batches.clone(),
        swept: Vec::new(),
        swept_from: None,
    }
}

/// Appends steps of at most `limit` postings until nothing is left, and returns the postings.
pub(super) async fn sequence(store: &dyn FullStore, limit: u32) -> Vec<UnloggedPosting> {
    let mut logged = Vec::new();
    loop {
        let epoch = claim(store).await;
        let found = store.unlogged(&epoch, limit).await.unwrap();
        if found.postings.is_empty() && found.taken == epoch.taken {
            return logged;
        }
        assert!(store.append_log(step(store, &epoch, &found).await).await.unwrap(), "nobody else appends");
        logged.extend(found.postings);
    }
}

/// The amount that a posting adds to its account's funds, in atoms.
fn added(posting: &UnloggedPosting) -> i64 {
    match &posting.what {
        Logged::Opening(amount) | Logged::Ledger { amount, .. } => amount.atoms(),
        Logged::Usage { kind: UsageKind::Refunded, amount, .. } => amount.atoms(),
        Logged::Usage { amount, .. } | Logged::Imported(amount) => -amount.atoms(),
        Logged::Public(_) => 0,
    }
}

/// The funds of the accounts as the log has them, by row.
pub(super) fn sums(logged: &[UnloggedPosting]) -> HashMap<AccountRow, i64> {
    let mut sums = HashMap::new();
    for posting in logged {
        let Some(account) = posting.account else { continue };
        *sums.entry(account).or_default() += added(posting);
    }
    sums
}

/// A log begins once, with the balance and the open holds of every account.
pub async fn a_log_begins_once_with_all_funds(store: Arc<dyn FullStore>) {
    let owner = customer(&*store, 1_000).await;
    accepted(&*store, charge(owner.key, 100), NOON).await;
    open(&*store, owner.key, 200).await;
    assert_eq!(store.claim_log(NODE, LEASE, NOON).await.unwrap(), None, "no log is open");
    let epoch = begin(&*store).await;
    assert_eq!(store.log_epochs().await.unwrap(), std::slice::from_ref(&epoch));
    assert_eq!(store.begin_log(new_epoch("log.example/2"), None, NOON).await.unwrap(), None);
    let logged = sequence(&*store, 10).await;
    assert_eq!(logged.iter().map(added).collect::<Vec<_>>(), [900]);
    assert!(matches!(logged[0].what, Logged::Opening(_)));
    let next = store.begin_log(new_epoch("log.example/2"), Some(1), NOON).await.unwrap().unwrap();
    assert_eq!((next.number, next.size), (2, 0));
    let logged = sequence(&*store, 10).await;
    assert!(matches!(&logged[0].what, Logged::Public(text) if text.contains("epoch log.example/1 1 ")), "{logged:?}");
    assert_eq!(logged.iter().map(added).collect::<Vec<_>>(), [0, 900]);
}

/// The log of a moved store starts with the head of the log that stayed in the other database. A later epoch follows
/// the store's own last one.
pub async fn an_epoch_begins_with_the_log_before_it(store: Arc<dyn FullStore>) {
    customer(&*store, 1_000).await;
    let elsewhere = PreviousLog { origin: "log.example/3".to_owned(), size: 70_400, root: [9; 32] };
    let moved = |origin: &str, reason| NewEpoch { reason, previous: Some(elsewhere.clone()), ..new_epoch(origin) };
    let begun = store.begin_log(moved("log.example/4", EpochReason::Moved), Some(3), NOON).await.unwrap().unwrap();
    assert_eq!((begun.number, begun.reason, begun.previous), (4, EpochReason::Moved, Some(elsewhere.clone())));
    let epoch = claim(&*store).await;
    assert_eq!(epoch.previous, Some(elsewhere.clone()), "it is stored");
    let logged = sequence(&*store, 10).await;
    assert_eq!(logged[0].what, Logged::epoch(&elsewhere, EpochReason::Moved));
    let Logged::Public(text) = &logged[0].what else { panic!("the entry is public") };
    let root = elsewhere.root_text();
    assert_eq!(text, &format!("metering-public-v1\nepoch log.example/3 70400 {root} moved"));

    let ended = store.log_epochs().await.unwrap().pop().unwrap();
    assert_eq!(ended.size, 2, "and the funds of the account");
    let next = store.begin_log(moved("log.example/5", EpochReason::Restored), Some(4), NOON).await.unwrap().unwrap();
    assert_eq!(next.previous, Some(ended.head()), "what the caller names is not used");
}

/// Charges, refunds and ledger entries are taken once, in order for each account, no matter how much was committed or
/// folded between two steps.
pub async fn each_posting_is_logged_once_and_in_order(store: Arc<dyn FullStore>) {
    let store = &*store;
    let owners = [customer(store, 1_000_000).await, customer(store, 1_000_000).await];
    begin(store).await;
    let late = customer(store, 500_000).await;
    let mut logged = Vec::new();
    let mut now = NOON;
    for price in 1..=120 {
        now = now.saturating_add(Duration::from_millis(1));
        for owner in owners.iter().chain([&late]) {
            let receipt = accepted(store, charge(owner.key, price), now).await;
            if price % 10 == 0 {
                commit_refund(store, receipt.into_refund().unwrap(), now).await.unwrap();
            }
        }
        if price % 7 == 0 {
            post(store, &owners[0].id, adjustment(price), now).await;
        }
        if price % 50 == 0 {
            logged.extend(sequence(store, 16).await);
        }
    }
    logged.extend(sequence(store, 16).await);
    let mut funds: Vec<i64> = sums(&logged).into_values().collect();
    let mut expected = Vec::new();
    for owner in owners.iter().chain([&late]) {
        expected.push(totals(store, &owner.id).await.unspent().atoms());
    }
    funds.sort_unstable();
    expected.sort_unstable();
    assert_eq!(funds, expected);
    for account in sums(&logged).into_keys() {
        let charged = logged.iter().filter(|posting| posting.account == Some(account));
        let prices: Vec<i64> = charged
            .filter_map(|posting| match &posting.what {
                Logged::Usage { kind: UsageKind::Charged, amount, .. } => Some(amount.atoms()),
                _ => None,
            })
            .collect();
        assert_eq!(prices, (1..=120).collect::<Vec<_>>());
    }
    assert_verified(store).await;
}

/// A charge made while a log begins is either in the opening funds or a posting.
pub async fn charges_while_a_log_begins_are_in_it_once(store: Arc<dyn FullStore>) {
    let owner = customer(&*store, 1_000_000).await;
    let mut tasks = JoinSet::new();
    for _ in 0..8 {
        let (store, key) = (Arc::clone(&store), owner.key);
        tasks.spawn(async move {
            for _ in 0..10 {
                store.commit(vec![Posting::Charge(charge(key, 1))], NOON).await.unwrap();
            }
        });
    }
    begin(&*store).await;
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    let logged = sequence(&*store, 1_000).await;
    assert_eq!(sums(&logged).into_values().collect::<Vec<_>>(), [1_000_000 - 80]);
}

/// A step that is built on another head, comes from a node without the lease, or was already appended changes nothing.
pub async fn a_stale_step_changes_nothing(store: Arc<dyn FullStore>) {
    let owner = customer(&*store, 1_000).await;
    begin(&*store).await;
    sequence(&*store, 10).await;
    accepted(&*store, charge(owner.key, 1), NOON).await;
    let epoch = claim(&*store).await;
    let found = store.unlogged(&epoch, 10).await.unwrap();
    let next = step(&*store, &epoch, &found).await;
    let other = LogStep { node: "node-2".to_owned(), ..next.clone() };
    assert!(!store.append_log(other).await.unwrap(), "it has no lease");
    assert!(store.append_log(next.clone()).await.unwrap());
    assert!(!store.append_log(next).await.unwrap(), "it is in the log");
    assert_eq!(store.log_bundles(1, 0, 9).await.unwrap()[0].leaves, 2_u64.to_be_bytes());
    assert_eq!(store.log_tile(1, 1, 0).await.unwrap(), Some(vec![2; 32]));

    assert_eq!(store.claim_log("node-2", LEASE, NOON).await.unwrap(), None);
    let later: Timestamp = NOON.saturating_add(LEASE);
    let epoch = store.claim_log("node-2", LEASE, later).await.unwrap().expect("the lease has ended");
    assert_eq!((epoch.size, epoch.accounts), (2, 1));
    // A node with a wrong clock does not lock the others out of the log for years.
    let wrong = later.saturating_add(LEASE * 1_000_000);
    store.claim_log("node-3", LEASE, wrong).await.unwrap().expect("the lease has ended");
    assert!(store.claim_log("node-2", LEASE, later).await.unwrap().is_some());
}

/// A node that stops gives up its lease, and the next one claims it immediately. One without the lease changes nothing.
pub async fn a_lease_that_was_given_up_is_free(store: Arc<dyn FullStore>) {
    assert_eq!(store.claim_log(NODE, Duration::ZERO, NOON).await.unwrap(), None, "no log is open");
    begin(&*store).await;
    claim(&*store).await;
    assert_eq!(store.claim_log("node-2", Duration::ZERO, NOON).await.unwrap(), None);
    assert_eq!(store.claim_log("node-2", LEASE, NOON).await.unwrap(), None, "the lease is another's");
    assert_eq!(store.claim_log(NODE, Duration::ZERO, NOON).await.unwrap(), None);
    // Even if the clock of the next node is slower.
    let earlier = NOON.saturating_sub(LEASE);
    assert!(store.claim_log("node-2", LEASE, earlier).await.unwrap().is_some());
    assert_eq!(store.claim_log(NODE, LEASE, earlier).await.unwrap(), None);
}

/// A checkpoint is replaced by a later one only, and is never ahead of the log.
pub async fn the_latest_checkpoint_stays(store: Arc<dyn FullStore>) {
    customer(&*store, 1_000).await;
    begin(&*store).await;
    sequence(&*store, 10).await;
    for (size, note) in [(2, "ahead"), (1, "first"), (0, "earlier"), (1, "with a cosignature")] {
        store.publish_checkpoint(1, size, note.to_owned()).await.unwrap();
    }
    assert_eq!(claim(&*store).await.checkpoint, Some((1, "with a cosignature".to_owned())));
}
