//! A store whose commits wait until the test lets them through, and fail on demand. With a thread, so do its flushes.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use async_trait::async_trait;
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

/// A store behind a gate.
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
    /// A memory store whose gate lets `commits` commits through.
    pub(crate) fn passing(commits: usize) -> Self {
        Self::over(MemoryStore::new(), commits)
    }
}

impl<S> Gated<S> {
    /// A store whose gate lets `commits` commits through.
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
            Err(StoreError::Closed("as the test wants it".into()))
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

#[async_trait]
impl<S: Store + 'static> Store for Gated<S> {
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
    async fn create_account(&self, account: NewAccount) -> Result<Created> {
        self.store.create_account(account).await
    }
    async fn account(&self, id: &AccountId) -> Result<Option<Account>> {
        self.store.account(id).await
    }
    async fn accounts(&self, after: Option<&Cursor>, limit: u32) -> Result<Page<Account>> {
        self.store.accounts(after, limit).await
    }
    async fn post_entry(&self, id: &AccountId, entry: NewLedgerEntry, now: Timestamp) -> Result<Posted> {
        self.store.post_entry(id, entry, now).await
    }
    async fn set_limits(&self, id: &AccountId, limits: RateLimits) -> Result<Option<Account>> {
        self.store.set_limits(id, limits).await
    }
    async fn set_token_limit(&self, id: &AccountId, tokens_per_minute: u32) -> Result<Option<Account>> {
        self.store.set_token_limit(id, tokens_per_minute).await
    }
    async fn revoke_account(&self, id: &AccountId, now: Timestamp) -> Result<Option<Account>> {
        self.store.revoke_account(id, now).await
    }
    async fn replace_key(&self, id: &AccountId, key: KeyHash, now: Timestamp) -> Result<Option<Account>> {
        self.store.replace_key(id, key, now).await
    }
    async fn replace_live_key(&self, old: &KeyHash, key: KeyHash, now: Timestamp) -> Result<Option<Account>> {
        self.store.replace_live_key(old, key, now).await
    }
    async fn usage_report(&self, id: &AccountId, days: DayRange) -> Result<Option<UsageReport>> {
        self.store.usage_report(id, days).await
    }
    async fn volumes(&self, id: &AccountId) -> Result<Vec<(CountedRoute, Volume)>> {
        self.store.volumes(id).await
    }
    async fn activity(&self, id: &AccountId, limit: u32) -> Result<Vec<Activity>> {
        self.store.activity(id, limit).await
    }
    async fn ledger(&self, after: Option<&Cursor>, limit: u32) -> Result<Page<LedgerEntry>> {
        self.store.ledger(after, limit).await
    }
    async fn account_ledger(&self, id: &AccountId, after: Option<&Cursor>, limit: u32) -> Result<Page<LedgerEntry>> {
        self.store.account_ledger(id, after, limit).await
    }
    async fn account_daily_totals(&self, id: &AccountId, days: DayRange) -> Result<Vec<DailyTotal>> {
        self.store.account_daily_totals(id, days).await
    }
    async fn route_calls(&self, days: DayRange) -> Result<Vec<(CountedRoute, u64)>> {
        self.store.route_calls(days).await
    }
    async fn daily_totals(&self, after: Option<&Cursor>, limit: u32) -> Result<Page<DailyTotal>> {
        self.store.daily_totals(after, limit).await
    }
    async fn verify(&self) -> Result<Verification> {
        self.store.verify().await
    }
    async fn forget_expired(&self, now: Timestamp) -> Result<u64> {
        self.store.forget_expired(now).await
    }
    async fn clock(&self) -> Result<Option<Timestamp>> {
        Ok(self.clock.get().map(|clock| clock.now()))
    }
    async fn check(&self) -> Result<()> {
        self.store.check().await
    }
    fn commit_lanes(&self) -> NonZeroUsize {
        self.lanes
    }
}

#[async_trait]
impl<S: Store> HoldStore for Gated<S> {
    async fn hold(&self, id: &HoldId) -> Result<Option<Hold>> {
        self.store.hold(id).await
    }
    async fn open_holds(&self, account: &AccountId, limit: u32) -> Result<Vec<Hold>> {
        self.store.open_holds(account, limit).await
    }
    async fn expired_holds(&self, now: Timestamp, limit: u32) -> Result<Vec<Hold>> {
        self.store.expired_holds(now, limit).await
    }
}

#[async_trait]
impl<S: Store> KeyStore for Gated<S> {
    async fn key_holder(&self, secret: &KeyHash) -> Result<Option<KeyHolder>> {
        self.store.key_holder(secret).await
    }
    async fn live_keys(&self, secrets: &[KeyHash], now: Timestamp) -> Result<Vec<bool>> {
        self.store.live_keys(secrets, now).await
    }
    async fn keys(&self, id: &AccountId, after: Option<&Cursor>, limit: u32, today: Day) -> Result<Page<KeyStatus>> {
        self.store.keys(id, after, limit, today).await
    }
    async fn key(&self, account: &AccountId, id: &KeyId, today: Day) -> Result<Option<KeyStatus>> {
        self.store.key(account, id, today).await
    }
    async fn key_labels(&self, account: &AccountId) -> Result<Vec<KeyLabel>> {
        self.store.key_labels(account).await
    }
    async fn keys_of_request(&self, id: &HoldId) -> Result<Vec<(AccountId, KeyNumber)>> {
        self.store.keys_of_request(id).await
    }
    async fn create_key(&self, new: NewKey) -> Result<KeyCreated> {
        self.store.create_key(new).await
    }
    async fn change_key(
        &self,
        account: &AccountId,
        id: &KeyId,
        actor: Option<&KeyId>,
        change: KeyChange,
        now: Timestamp,
    ) -> Result<KeyChanged> {
        self.store.change_key(account, id, actor, change, now).await
    }
    async fn report_leaked(&self, secret: &KeyHash, now: Timestamp) -> Result<Option<Key>> {
        self.store.report_leaked(secret, now).await
    }
}
