//! Contracts for the log as the sequencer makes it: each posting is one leaf, even after interruptions or when two
//! nodes append.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use metering_core::FullStore;
use metering_core::access::AccountId;
use metering_core::charging::{HoldAction, UsageKind};
use metering_core::clock::Timestamp;
use metering_core::money::Credits;
use metering_core::prices::NewPriceVersion;
use metering_core::store::{EpochReason, LogEpoch, LogSecret, LogStep, LogStore, NewEpoch, StoredBundle};
use metering_log::tree::{Leaves, Tile, TreeHash, read_entries, read_root, verify_consistency, verify_inclusion};
use metering_proof::{
    AccountLeaf, Bundle, ChainHead, Leaf, LogFault, LogReader, OpenedLeaf, Opening, PUBLIC_PREFIX, Posting, Sequencer,
    Stepped, entry, verify_log,
};
use tokio::task::JoinSet;

use super::hold_scene::{act, capture, open_at};
use super::scene::{NOON, accepted, adjustment, assert_verified, charge, commit_refund, customer, post, totals};

const NODE: &str = "node-1";
/// Longer than a lease.
const TURN: Duration = Duration::from_secs(11);
/// Longer than between two sweeps.
const LATER: Duration = Duration::from_secs(2 * 60 * 60);

fn log_store(store: &Arc<dyn FullStore>) -> Arc<dyn LogStore> {
    let store: Arc<dyn FullStore> = Arc::clone(store);
    store
}

fn sequencer(store: &Arc<dyn FullStore>, node: &str) -> Sequencer {
    Sequencer::new(log_store(store), node.to_owned())
}

async fn begin(store: &dyn FullStore) {
    let origin = "log.example/1".to_owned();
    let new = NewEpoch { origin, secret: LogSecret::new([7; 32]), reason: EpochReason::Init, previous: None };
    store.begin_log(new, None, NOON).await.unwrap().expect("it is the first");
}

async fn epoch(store: &dyn FullStore) -> LogEpoch {
    store.log_epochs().await.unwrap().pop().expect("a log has begun")
}

/// Steps until all is in the log.
async fn sequence(sequencer: &mut Sequencer, now: Timestamp) {
    for _ in 0..100 {
        if let Stepped::Leading { leaves: 0, is_full: false, .. } = sequencer.step(now).await.unwrap() {
            return;
        }
    }
    panic!("the log has no end");
}

/// All leaves, from bundles.
async fn all_leaves(store: &dyn FullStore) -> Vec<Leaf> {
    let bundles = store.log_bundles(1, 0, u32::MAX).await.unwrap();
    bundles.iter().flat_map(|bundle| Bundle::unpack(&bundle.leaves).unwrap().leaves().to_vec()).collect()
}

/// The leaves of an account.
async fn leaves_of(store: &Arc<dyn FullStore>, id: &AccountId) -> Vec<AccountLeaf> {
    let epoch = epoch(&**store).await;
    let numbers: Vec<u32> = (0..epoch.accounts).collect();
    let accounts = store.numbered_accounts(1, &numbers).await.unwrap();
    assert_eq!(accounts.len(), numbers.len(), "numbers have no gaps");
    let number = accounts.iter().find(|account| account.id == *id).and_then(|account| account.number);
    let reader = LogReader::new(log_store(store));
    let bundles = 0..epoch.size.div_ceil(256);
    reader.account_leaves(&epoch, number.expect("it has leaves"), bundles, 0, usize::MAX).await.unwrap()
}

/// Expects that the log can be computed again, and that its entries and proofs lead to its root.
async fn assert_sound(store: &Arc<dyn FullStore>) {
    assert_eq!(verify_log(&*log_store(store)).await.unwrap(), []);
    let (epoch, reader) = (epoch(&**store).await, LogReader::new(log_store(store)));
    let mut hashes = Vec::new();
    for tile in (0..).map_while(|index| Tile::in_tree(0, index, epoch.size)) {
        let bundle = reader.entries(&epoch, tile).await.unwrap().expect("nothing is pruned");
        hashes.extend(read_entries(&bundle, tile.width()).unwrap().into_iter().map(TreeHash::leaf));
    }
    let root = TreeHash::from_bytes(epoch.root);
    assert_eq!(read_root(&Leaves(&hashes), epoch.size).unwrap(), root);
    let half = epoch.size / 2;
    for position in [0, half, epoch.size - 1] {
        let proof = reader.prove(&epoch, position, epoch.size).await.unwrap();
        let leaf = hashes[usize::try_from(position).unwrap()];
        verify_inclusion(leaf, position, epoch.size, &proof, root).unwrap();
    }
    let old = read_root(&Leaves(&hashes), half).unwrap();
    let proof = reader.prove_consistency(&epoch, half, epoch.size).await.unwrap();
    verify_consistency(half, old, epoch.size, root, &proof).unwrap();
}

fn kind(posting: &Posting) -> &'static str {
    match posting {
        Posting::Opening => "opening",
        Posting::Ledger { .. } => "ledger",
        Posting::Usage { kind: UsageKind::Charged, .. } => "charged",
        Posting::Usage { kind: UsageKind::Refunded, .. } => "refunded",
        Posting::Usage { kind: UsageKind::Expired, .. } => "expired",
        Posting::Usage { kind: UsageKind::Released, .. } => "released",
        Posting::Imported => "imported",
    }
}

/// Each posting is one leaf with the change of the funds and the funds after it, and a public entry has no account.
pub async fn each_posting_is_one_leaf(store: Arc<dyn FullStore>) {
    let (shared, store) = (&store, &*store);
    let (owner, other) = (customer(store, 1_000_000).await, customer(store, 0).await);
    begin(store).await;
    let mut sequencer = sequencer(shared, NODE);
    let mut clock = (1..).map(|millis| NOON.saturating_add(Duration::from_millis(millis)));
    let mut now = || clock.next().unwrap();

    accepted(store, charge(owner.key, 100), now()).await;
    post(store, &owner.id, adjustment(500), now()).await;
    sequence(&mut sequencer, NOON).await;
    let receipt = accepted(store, charge(owner.key, 40), now()).await;
    post(store, &other.id, adjustment(7), now()).await;
    let held = [open_at(store, owner.key, 200, now()).await, open_at(store, owner.key, 30, now()).await];
    sequence(&mut sequencer, NOON).await;
    commit_refund(store, receipt.into_refund().unwrap(), now()).await.unwrap();
    act(store, &owner.id, held[0], capture(150), now()).await;
    sequence(&mut sequencer, NOON).await;
    act(store, &owner.id, held[1], HoldAction::Release, now()).await;
    let at = now();
    let catalogue = NewPriceVersion { catalogue: "first".into(), since: at, recorded_at: at, applied_by: None };
    store.record_prices(catalogue).await.unwrap();
    sequence(&mut sequencer, NOON).await;

    let logged = leaves_of(shared, &owner.id).await;
    let expected = [
        ("opening", 1_000_000),
        ("charged", -100),
        ("ledger", 500),
        ("charged", -40),
        ("refunded", 40),
        ("charged", -150),
        ("released", 0),
    ];
    let found: Vec<_> = logged.iter().map(|leaf| (kind(&leaf.opening.posting), leaf.opening.amount.atoms())).collect();
    assert_eq!(found, expected);
    let mut funds = 0;
    for (number, AccountLeaf { opening, .. }) in (0..).zip(&logged) {
        funds += opening.amount.atoms();
        assert_eq!((opening.number, opening.funds.atoms(), &opening.account), (number, funds, &owner.id));
    }
    assert_eq!(funds, totals(store, &owner.id).await.unspent().atoms());
    assert_eq!(leaves_of(shared, &other.id).await.last().unwrap().opening.funds.atoms(), 7);
    // From a wrong clock: it must not end all periods until then.
    post(store, &other.id, adjustment(1), NOON.saturating_add(LATER * 5_000)).await;
    sequence(&mut sequencer, NOON).await;
    let ahead = leaves_of(shared, &other.id).await.pop().unwrap().opening.at;
    assert_eq!(ahead, NOON.saturating_add(LATER / 2), "an hour");

    let public: Vec<Leaf> =
        all_leaves(store).await.into_iter().filter(|leaf| matches!(leaf, Leaf::Public { .. })).collect();
    assert!(matches!(&public[..], [Leaf::Public { text, .. }] if text.starts_with(PUBLIC_PREFIX)), "{public:?}");
    let AccountLeaf { opening, salt, .. } = logged[1].clone();
    let commitment = entry(&salt, &opening.to_bytes()).to_vec();
    assert_eq!(Opening::parse(&opening.to_bytes()).unwrap(), opening);
    assert_eq!(OpenedLeaf::Posted { opening, salt }.entry(), commitment);
    assert_sound(shared).await;
    assert_verified(store).await;
}

/// A sequencer that restarts every few leaves builds the same tree as the entries alone, over several bundles.
pub async fn a_restarted_sequencer_continues_the_tree(store: Arc<dyn FullStore>) {
    let (shared, store) = (&store, &*store);
    let owners = [customer(store, 1_000_000).await, customer(store, 1_000_000).await];
    begin(store).await;
    for round in 1..=5 {
        for price in 1..=32 {
            for owner in &owners {
                accepted(store, charge(owner.key, price * round), NOON).await;
            }
        }
        sequence(&mut sequencer(shared, NODE), NOON).await;
    }
    // The opening funds and the charges.
    assert_eq!(epoch(store).await.size, 2 + 5 * 32 * 2);
    for owner in &owners {
        let funds = totals(store, &owner.id).await.unspent();
        assert_eq!(leaves_of(shared, &owner.id).await.last().unwrap().opening.funds, funds);
    }
    assert_sound(shared).await;
}

/// Of two sequencers, the one with the lease appends; when they take it from each other, no posting is in the log twice.
pub async fn two_sequencers_log_each_posting_once(store: Arc<dyn FullStore>) {
    let shared = &store;
    let owner = customer(&**shared, 1_000_000).await;
    begin(&**shared).await;
    let (mut first, mut second) = (sequencer(shared, NODE), sequencer(shared, "node-2"));
    sequence(&mut first, NOON).await;
    assert_eq!(second.step(NOON).await.unwrap(), Stepped::NotLeading);
    sequence(&mut second, NOON.saturating_add(TURN)).await;
    assert_eq!(first.step(NOON.saturating_add(TURN)).await.unwrap(), Stepped::NotLeading);
    // One that stops in order leaves the lease to the other.
    second.stop(NOON.saturating_add(TURN)).await.unwrap();
    sequence(&mut first, NOON.saturating_add(TURN)).await;
    let second = sequencer(shared, "node-2");

    let mut tasks = JoinSet::new();
    for mut sequencer in [first, second] {
        tasks.spawn(async move {
            for turn in 2..40 {
                // Whether it appended does not matter: the other one takes the lease at any time.
                sequencer.step(NOON.saturating_add(TURN * turn)).await.unwrap();
                tokio::task::yield_now().await;
            }
        });
    }
    let (store, key) = (Arc::clone(shared), owner.key);
    tasks.spawn(async move {
        for price in 1..=60 {
            accepted(&*store, charge(key, price), NOON).await;
        }
    });
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    sequence(&mut sequencer(shared, "node-3"), NOON.saturating_add(TURN * 50)).await;
    let logged = leaves_of(shared, &owner.id).await;
    let prices: Vec<i64> = logged.iter().skip(1).map(|leaf| -leaf.opening.amount.atoms()).collect();
    assert_eq!(prices, (1..=60).collect::<Vec<_>>());
    assert_sound(shared).await;
}

/// Polls a future this many times, then drops it and everything it awaits.
async fn cut_short(step: impl Future, polls: u32) {
    let mut step = pin!(step);
    let mut left = polls;
    poll_fn(|context| {
        left -= 1;
        let ended = step.as_mut().poll(context).map(drop);
        if left == 0 { Poll::Ready(()) } else { ended }
    })
    .await;
}

/// If a step is cut off at any point, even while it is being appended, the next one loses nothing and appends nothing
/// twice.
pub async fn a_step_that_is_cut_short_is_repeated(store: Arc<dyn FullStore>) {
    let (shared, store) = (&store, &*store);
    let owner = customer(store, 1_000_000).await;
    begin(store).await;
    let mut kept = sequencer(shared, NODE);
    for polls in 1..=20 {
        let price = i64::from(polls);
        accepted(store, charge(owner.key, price), NOON).await;
        cut_short(kept.step(NOON), polls).await;
        accepted(store, charge(owner.key, price), NOON).await;
        cut_short(sequencer(shared, NODE).step(NOON), polls).await;
        if price % 2 == 0 {
            sequence(&mut kept, NOON).await;
        }
    }
    sequence(&mut kept, NOON).await;
    let logged = leaves_of(shared, &owner.id).await;
    let prices: Vec<i64> = logged.iter().skip(1).map(|leaf| -leaf.opening.amount.atoms()).collect();
    assert_eq!(prices, (1..=20).flat_map(|price| [price, price]).collect::<Vec<_>>());
    assert_sound(shared).await;
}

/// A sequencer that begins while a sweep is not complete knows where the leaves of all accounts end. A complete one
/// moves the position from which the next one reads.
pub async fn a_restart_during_a_sweep_knows_all_accounts(store: Arc<dyn FullStore>) {
    let (shared, store) = (&store, &*store);
    let mut owners = Vec::new();
    for _ in 0..10 {
        owners.push(customer(store, 1_000_000).await);
    }
    begin(store).await;
    let mut now = NOON;
    let mut swept = sequencer(shared, NODE);
    sequence(&mut swept, now).await;
    for price in 1..=8 {
        for owner in owners.iter().skip(usize::from(price % 2 == 0)) {
            accepted(store, charge(owner.key, price), NOON).await;
        }
        sequence(&mut swept, now).await;
        // It begins a sweep of several steps.
        now = now.saturating_add(LATER);
        swept.step(now).await.unwrap();
        if price % 3 == 0 {
            swept = sequencer(shared, NODE);
        }
    }
    sequence(&mut swept, now).await;
    for _ in 0..10 {
        now = now.saturating_add(LATER);
        swept.step(now).await.unwrap();
    }
    let epoch = epoch(store).await;
    assert_eq!(epoch.swept_from, epoch.size, "all is swept");
    accepted(store, charge(owners[0].key, 1), NOON).await;
    sequence(&mut sequencer(shared, NODE), now).await;
    for owner in &owners {
        let funds = totals(store, &owner.id).await.unspent();
        assert_eq!(leaves_of(shared, &owner.id).await.last().unwrap().opening.funds, funds);
    }
    assert_sound(shared).await;
}

/// The same leaves of one account, with a different opening state and amounts larger by `more`.
fn rebuilt(leaves: &[Leaf], mut before: ChainHead, more: i64) -> Bundle {
    let mut bundle = Bundle::default();
    for leaf in leaves {
        let Leaf::Posted { account, at, amount, posting, .. } = leaf.clone() else { panic!("a public entry") };
        let amount = amount.checked_add(Credits::from_atoms(more)).unwrap();
        bundle.push(Leaf::Posted { account, before, at, amount, posting }).unwrap();
        before = before.after(amount).unwrap();
    }
    bundle
}

/// A leaf that is missing, changed or numbered otherwise is found, as the root does not have it.
pub async fn damage_to_the_log_is_found(store: Arc<dyn FullStore>) {
    let (shared, store) = (&store, &*store);
    let owner = customer(store, 1_000_000).await;
    begin(store).await;
    for price in 1..=3 {
        accepted(store, charge(owner.key, price), NOON).await;
    }
    sequence(&mut sequencer(shared, NODE), NOON).await;
    let (epoch, leaves) = (epoch(store).await, all_leaves(store).await);
    let start = ChainHead::default();
    let later = ChainHead { leaves: 1, ..start };
    for (bundle, expected) in [
        (rebuilt(&leaves, start, 0), Vec::new()),
        (rebuilt(&leaves, start, 1), vec!["root", "funds"]),
        (rebuilt(&leaves[..3], start, 0), vec!["bundle", "root", "funds"]),
        (rebuilt(&leaves, later, 0), vec!["chain", "root"]),
    ] {
        let stored = StoredBundle { index: 0, until: NOON, hash: None, leaves: bundle.pack() };
        let step = LogStep {
            epoch: epoch.number,
            node: NODE.to_owned(),
            from: epoch.size,
            size: epoch.size,
            root: epoch.root,
            bundles: vec![stored],
            tiles: Vec::new(),
            accounts: Vec::new(),
            lines: Vec::new(),
            taken: epoch.taken,
            batches: Vec::new(),
            swept: Vec::new(),
            swept_from: None,
        };
        assert!(store.append_log(step).await.unwrap());
        let faults = verify_log(&*log_store(shared)).await.unwrap();
        let found: Vec<&str> = faults.iter().map(fault).collect();
        assert_eq!(found, expected, "{faults:?}");
    }
}

fn fault(fault: &LogFault) -> &'static str {
    match fault {
        LogFault::Bundle { .. } => "bundle",
        LogFault::Chain { .. } => "chain",
        LogFault::Tile { .. } => "tile",
        LogFault::Root { .. } => "root",
        LogFault::Funds { .. } => "funds",
    }
}
