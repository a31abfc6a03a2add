//! A store whose commits wait until the test lets them through, and fail on demand. With a thread, so do its flushes.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use metering_core::access::{Key, KeyHash, KeyHolder, KeyId, KeyNumber, KeyStatus};
use metering_core::charging::{CountedRoute, Hold, HoldId, Outcome, Posting, Volume};
use metering_core::money::{LedgerEntry, NewLedgerEntry};
use metering_core::store::{
    CommitSource, Created, Cursor, HoldStore, KeyChange, KeyChanged, KeyCreated, KeyStore, NewKey, Page, Posted,
    Verification,
};
use metering_core::usage::{Activity, DailyTotal, DayRange, KeyLabel, UsageReport};
use metering_core::{
    Account, AccountId, Clock, Day, MemoryStore, NewAccount, RateLimits, Store, StoreError, Timestamp,
};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use crate::delegated::delegated;

/// A store with a gate.
#[derive(Debug)]
pub(crate) struct Gated<S = MemoryStore> {
    pub(crate) store: Arc<S>,
    commits: Arc<Commits<S>>,
    lanes: NonZeroUsize,
    has_thread: bool,
    clock: OnceLock<Arc<dyn Clock>>,
    is_down: AtomicBool,
}

/// The gates.
#[derive(Debug)]
struct Commits<S> {
    store: Arc<S>,
    gate: Semaphore,
    next_error: Mutex<Option<StoreError>>,
    flushes: Semaphore,
    next_flush_error: Mutex<Option<StoreError>>,
    /// How many batches were decided on the thread.
    decided: AtomicUsize,
    batches: Mutex<Vec<usize>>,
}

impl Gated {
    /// A memory store whose gate passes `commits` commits.
    pub(crate) fn passing(commits: usize) -> Self {
        Self::over(MemoryStore::new(), commits)
    }
}

impl<S> Gated<S> {
    /// A store whose gate passes `commits` commits.
    pub(crate) fn over(store: S, commits: usize) -> Self {
        let store = Arc::new(store);
        let commits = Commits {
            store: Arc::clone(&store),
            gate: Semaphore::new(commits),
            next_error: Mutex::default(),
            flushes: Semaphore::new(Semaphore::MAX_PERMITS),
            next_flush_error: Mutex::default(),
            decided: AtomicUsize::new(0),
            batches: Mutex::default(),
        };
        Self {
            store,
            commits: Arc::new(commits),
            lanes: NonZeroUsize::MIN,
            has_thread: false,
            clock: OnceLock::new(),
            is_down: AtomicBool::new(false),
        }
    }

    /// Commits on a thread, as SQLite does.
    pub(crate) fn with_thread(self, has_thread: bool) -> Self {
        Self { has_thread, ..self }
    }

    /// Sets how many batches the store can commit at once.
    pub(crate) fn with_lanes(self, lanes: usize) -> Self {
        Self { lanes: NonZeroUsize::new(lanes).unwrap(), ..self }
    }

    /// Gives the store a clock of its own, as a database has.
    pub(crate) fn set_clock(&self, clock: Arc<dyn Clock>) {
        self.clock.set(clock).unwrap();
    }

    /// Lets more commits through.
    pub(crate) fn open(&self, commits: usize) {
        self.commits.gate.add_permits(commits);
    }

    /// Makes the next commit fail.
    pub(crate) fn fail_next(&self, error: StoreError) {
        *self.commits.next_error.lock().unwrap() = Some(error);
    }

    /// Lets this many more flushes of the thread through, and holds the rest.
    pub(crate) fn hold_flushes(&self, after: usize) {
        self.commits.flushes.forget_permits(Semaphore::MAX_PERMITS);
        self.open_flushes(after);
    }

    /// Lets more flushes through.
    pub(crate) fn open_flushes(&self, flushes: usize) {
        self.commits.flushes.add_permits(flushes);
    }

    /// Makes the next flush of the thread fail, although its batch was decided.
    pub(crate) fn fail_next_flush(&self, error: StoreError) {
        *self.commits.next_flush_error.lock().unwrap() = Some(error);
    }

    /// How many batches the thread has decided, including those that are being flushed.
    pub(crate) fn decided(&self) -> usize {
        self.commits.decided.load(Ordering::SeqCst)
    }

    /// Makes everything about events fail until [`repair`](Self::repair) is called.
    pub(crate) fn break_down(&self) {
        self.is_down.store(true, Ordering::SeqCst);
    }

    /// Ends [`break_down`](Self::break_down).
    pub(crate) fn repair(&self) {
        self.is_down.store(false, Ordering::SeqCst);
    }

    /// The store, unless it is down.
    pub(crate) fn working(&self) -> Result<&S> {
        if self.is_down.load(Ordering::SeqCst) {
            Err(StoreError::Closed("as the test expects".into()))
        } else {
            Ok(&self.store)
        }
    }

    /// How many postings each commit so far had, including commits that wait at the gate.
    pub(crate) fn batches(&self) -> Vec<usize> {
        self.commits.batches.lock().unwrap().clone()
    }
}

type Result<T> = std::result::Result<T, StoreError>;

impl<S: Store> Commits<S> {
    async fn commit(&self, postings: Vec<Posting>, now: Timestamp) -> Result<Vec<Outcome>> {
        self.batches.lock().unwrap().push(postings.len());
        self.gate.acquire().await.unwrap().forget();
        let error = self.next_error.lock().unwrap().take();
        match error {
            Some(error) => Err(error),
            None => self.store.commit(postings, now).await,
        }
    }

    async fn flush(&self) -> Result<()> {
        self.decided.fetch_add(1, Ordering::SeqCst);
        self.flushes.acquire().await.unwrap().forget();
        self.next_flush_error.lock().unwrap().take().map_or(Ok(()), Err)
    }
}

delegated! {
    impl<S: Store> Store for Gated<S> by (store) {
        async fn commit(&self, postings: Vec<Posting>, now: Timestamp) -> Result<Vec<Outcome>> {
            self.commits.commit(postings, now).await
        }
        fn commit_from(&self, source: Arc<dyn CommitSource>) -> bool {
            if !self.has_thread {
                return false;
            }
            let (commits, runtime) = (Arc::clone(&self.commits), Handle::current());
            std::thread::spawn(move || {
                // For the runtime's clock.
                let _entered = runtime.enter();
                while source.commit_next(&mut |postings, now, decided| {
                    decided(runtime.block_on(commits.commit(postings, now))?);
                    runtime.block_on(commits.flush())
                }) {}
            });
            true
        }
        async fn clock(&self) -> Result<Option<Timestamp>> {
            Ok(self.clock.get().map(|clock| clock.now()))
        }
        fn commit_lanes(&self) -> NonZeroUsize {
            self.lanes
        }
    }
    create_account(account: NewAccount) -> Created;
    account(id: &AccountId) -> Option<Account>;
    accounts(after: ?Cursor, limit: u32) -> Page<Account>;
    post_entry(id: &AccountId, entry: NewLedgerEntry, now: Timestamp) -> Posted;
    set_limits(id: &AccountId, limits: RateLimits) -> Option<Account>;
    set_token_limit(id: &AccountId, tokens_per_minute: u32) -> Option<Account>;
    revoke_account(id: &AccountId, now: Timestamp) -> Option<Account>;
    replace_key(id: &AccountId, key: KeyHash, now: Timestamp) -> Option<Account>;
    replace_live_key(old: &KeyHash, key: KeyHash, now: Timestamp) -> Option<Account>;
    usage_report(id: &AccountId, days: DayRange) -> Option<UsageReport>;
    volumes(id: &AccountId) -> Vec<(CountedRoute, Volume)>;
    activity(id: &AccountId, limit: u32) -> Vec<Activity>;
    ledger(after: ?Cursor, limit: u32) -> Page<LedgerEntry>;
    account_ledger(id: &AccountId, after: ?Cursor, limit: u32) -> Page<LedgerEntry>;
    account_daily_totals(id: &AccountId, days: DayRange) -> Vec<DailyTotal>;
    route_calls(days: DayRange) -> Vec<(CountedRoute, u64)>;
    daily_totals(after: ?Cursor, limit: u32) -> Page<DailyTotal>;
    verify() -> Verification;
    forget_expired(now: Timestamp) -> u64;
    check() -> ();
}

delegated! {
    impl<S: Store> HoldStore for Gated<S> by (store) {}
    hold(id: &HoldId) -> Option<Hold>;
    open_holds(account: &AccountId, limit: u32) -> Vec<Hold>;
    expired_holds(now: Timestamp, limit: u32) -> Vec<Hold>;
}

delegated! {
    impl<S: Store> KeyStore for Gated<S> by (store) {}
    key_holder(secret: &KeyHash) -> Option<KeyHolder>;
    live_keys(secrets: &[KeyHash], now: Timestamp) -> Vec<bool>;
    keys(id: &AccountId, after: ?Cursor, limit: u32, today: Day) -> Page<KeyStatus>;
    key(account: &AccountId, id: &KeyId, today: Day) -> Option<KeyStatus>;
    key_labels(account: &AccountId) -> Vec<KeyLabel>;
    keys_of_request(id: &HoldId) -> Vec<(AccountId, KeyNumber)>;
    create_key(new: NewKey) -> KeyCreated;
    change_key(account: &AccountId, id: &KeyId, actor: ?KeyId, change: KeyChange, now: Timestamp) -> KeyChanged;
    report_leaked(secret: &KeyHash, now: Timestamp) -> Option<Key>;
}
