//! Delivers events to webhooks: claims what is due, sends it, and records the outcome.
//!
//! Any number of processes may run a courier on one store. If one ends during an attempt, its claim expires and another
//! process sends the event again: receivers may get an event more than once, always with the same id.

mod attempt;
mod sender;
mod stats;

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::{JoinError, JoinSet};

use crate::access::account::AccountId;
use crate::clock::Clock;
use crate::events::delivery_shares::DeliveryShares;
use crate::events::secret::WebhookSecret;
use crate::events::webhook::{Webhook, WebhookOwner};
use crate::retry::{Retries, RetryPolicy};
use crate::store::{EventStore, StoreError};

use attempt::Attempts;
pub use sender::{WebhookMessage, WebhookSender};
pub use stats::CourierStats;

/// How long to wait before claiming again after the store failed.
const STORE_RETRY: RetryPolicy = RetryPolicy::exponential(Duration::from_secs(1), Duration::from_secs(30));

/// Wakes a [`Courier`] before its next poll. Clones wake the same one.
#[derive(Debug, Clone, Default)]
pub struct Wake(Arc<[Notify; 2]>);

impl Wake {
    /// Has the courier look for deliveries now.
    pub fn wake(&self) {
        self.0.iter().for_each(Notify::notify_one);
    }

    fn of(&self, owner: WebhookOwner) -> &Notify {
        &self.0[usize::from(owner == WebhookOwner::Operator)]
    }
}

/// How a [`Courier`] works.
#[derive(Debug, Clone)]
pub struct CourierSettings {
    /// The secrets that sign webhooks to the operator, newest first. If empty, other processes deliver them.
    pub operator_secrets: Vec<WebhookSecret>,
    /// How many webhooks are sent to customers at a time. 256 by default.
    pub max_in_flight: usize,
    /// How many of these go to the webhooks of one account. 8 by default.
    pub max_in_flight_per_account: u32,
    /// How many of these go to one host. 32 by default, because many customers may use the same service.
    pub max_in_flight_per_host: u32,
    /// How many webhooks are sent to the operator at a time. 16 by default.
    pub max_in_flight_to_operator: usize,
    /// How often to look for deliveries. Two seconds by default.
    pub poll: Duration,
    /// How long an attempt may take. 15 seconds by default.
    pub timeout: Duration,
    /// Wakes it early.
    pub wake: Wake,
}

impl Default for CourierSettings {
    fn default() -> Self {
        Self {
            operator_secrets: Vec::new(),
            max_in_flight: 256,
            max_in_flight_per_account: 8,
            max_in_flight_per_host: 32,
            max_in_flight_to_operator: 16,
            poll: Duration::from_secs(2),
            timeout: Duration::from_secs(15),
            wake: Wake::default(),
        }
    }
}

/// Delivers the events of a store.
///
/// ```
/// use std::sync::Arc;
///
/// use metering_core::events::{AttemptOutcome, Courier, CourierSettings, WebhookMessage, WebhookSender};
/// use metering_core::service::WebhookSettings;
/// use metering_core::{Service, SystemClock};
/// use metering_sqlite::SqliteStore;
///
/// /// Prints webhooks. A real one sends them over HTTP.
/// #[derive(Debug)]
/// struct Printer;
///
/// #[async_trait::async_trait]
/// impl WebhookSender for Printer {
///     async fn send(&self, message: WebhookMessage<'_>) -> AttemptOutcome {
///         println!("{}: {}", message.id, String::from_utf8_lossy(message.body));
///         AttemptOutcome::of_response(204, None)
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = Arc::new(SqliteStore::in_memory()?);
/// let webhooks = WebhookSettings::default();
/// let settings = CourierSettings { wake: webhooks.wake.clone(), ..CourierSettings::default() };
/// let service = Service::with_defaults(store.clone()).with_webhooks(store.clone(), webhooks);
/// let courier = Courier::new(store, Arc::new(Printer), Arc::new(SystemClock), settings);
/// let stats = courier.stats();
/// let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
/// let delivering = tokio::spawn(async move { courier.run(async { drop(stopped.await) }).await });
///
/// let (_, key) = service.open_account("my-agent", "2".parse()?).await?;
/// let request = serde_json::from_str(r#"{"url": "https://hooks.example.com/"}"#)?;
/// let webhook = service.webhooks().create(Some(&key), &request).await?.data;
/// service.webhooks().test(Some(&key), &webhook.id).await?;
/// # while stats.delivered() == 0 { tokio::task::yield_now().await; }
///
/// // When the program ends: no more attempts begin, and those in progress end.
/// drop(stop);
/// delivering.await?;
/// assert_eq!(stats.delivered(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Courier {
    store: Arc<dyn EventStore>,
    attempts: Arc<Attempts>,
    clock: Arc<dyn Clock>,
    settings: CourierSettings,
}

impl Courier {
    /// A courier that does nothing until it [runs](Self::run).
    #[must_use]
    pub fn new(
        store: Arc<dyn EventStore>,
        sender: Arc<dyn WebhookSender>,
        clock: Arc<dyn Clock>,
        settings: CourierSettings,
    ) -> Self {
        let attempts = Attempts {
            store: Arc::clone(&store),
            sender,
            clock: Arc::clone(&clock),
            operator_secrets: settings.operator_secrets.clone(),
            timeout: settings.timeout,
            stats: Arc::default(),
        };
        Self { store, attempts: Arc::new(attempts), clock, settings }
    }

    /// Counts of its attempts.
    #[must_use]
    pub fn stats(&self) -> Arc<CourierStats> {
        Arc::clone(&self.attempts.stats)
    }

    /// Delivers until `stop` ends. Then no more attempts begin, and it returns when those in progress have ended.
    /// Dropping the future abandons them; they are made again when their claims have expired.
    ///
    /// A store or a sender that fails never ends it.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let (ending, ended) = watch::channel(());
        let customers = self.lane(WebhookOwner::Customers, self.settings.max_in_flight);
        let operator = self.lane(WebhookOwner::Operator, self.settings.max_in_flight_to_operator);
        let is_operators = !self.settings.operator_secrets.is_empty();
        let stop = async {
            stop.await;
            drop(ending);
        };
        let operator = async {
            if is_operators {
                operator.run(ended.clone()).await;
            }
        };
        tokio::join!(stop, customers.run(ended.clone()), operator);
    }

    fn lane(&self, owner: WebhookOwner, max_in_flight: usize) -> Lane<'_> {
        let shares = match owner {
            WebhookOwner::Operator => DeliveryShares::unlimited(),
            WebhookOwner::Customers => {
                DeliveryShares::new(self.settings.max_in_flight_per_account, self.settings.max_in_flight_per_host)
            }
        };
        Lane { courier: self, owner, max_in_flight, shares: Arc::new(Mutex::new(shares)), store_retries: None }
    }
}

/// The deliveries to webhooks of one owner. Customers and the operator have separate slots, so slow customers' servers
/// do not delay the operator's webhook; and each account and host has a share of the customers' slots, so they do not
/// delay each other.
struct Lane<'c> {
    courier: &'c Courier,
    owner: WebhookOwner,
    max_in_flight: usize,
    shares: Arc<Mutex<DeliveryShares>>,
    /// Set while the store fails, so this is logged once.
    store_retries: Option<Retries>,
}

impl Lane<'_> {
    async fn run(mut self, mut stop: watch::Receiver<()>) {
        let mut in_progress = JoinSet::new();
        loop {
            let claimed = self.claim(&mut in_progress).await;
            let ended = tokio::select! {
                biased;
                // An error: the sender is dropped.
                _ = stop.changed() => break,
                ended = self.wait(claimed, &mut in_progress) => ended,
            };
            ended.into_iter().for_each(log_panic);
            // Attempts that ended in the meantime make room too.
            while let Some(ended) = in_progress.try_join_next() {
                log_panic(ended);
            }
        }
        while let Some(ended) = in_progress.join_next().await {
            log_panic(ended);
        }
    }

    /// Claims as many deliveries as there is room for, and begins to send them. If the store fails, returns how long to
    /// back off.
    async fn claim(&mut self, in_progress: &mut JoinSet<()>) -> Claimed {
        let room = self.max_in_flight.saturating_sub(in_progress.len());
        if room == 0 {
            return Claimed::Full;
        }
        let (now, limit) = (self.courier.clock.now(), u32::try_from(room).unwrap_or(u32::MAX));
        // Twice the time of an attempt: there must be time to record how it ended.
        let lease = self.courier.settings.timeout.saturating_mul(2);
        let shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let due = match self.courier.store.claim_shared(now, lease, limit, self.owner, shares).await {
            Ok(due) => due,
            Err(error) => return Claimed::StoreFailed(self.next_wait(&error)),
        };
        if self.store_retries.take().is_some() {
            tracing::info!("the store recovered; webhooks are delivered again");
        }
        for due in due {
            let (attempts, share) = (Arc::clone(&self.courier.attempts), Share::take(&self.shares, &due.webhook));
            in_progress.spawn(async move {
                attempts.make(due).await;
                drop(share);
            });
        }
        Claimed::Some
    }

    fn next_wait(&mut self, error: &StoreError) -> Duration {
        if self.store_retries.is_none() {
            tracing::warn!(%error, "the store failed; webhooks are not delivered until it recovers");
        }
        let retries = self.store_retries.get_or_insert_with(|| STORE_RETRY.start());
        retries.next_wait(None, Duration::ZERO).unwrap_or(STORE_RETRY.longest_wait)
    }

    /// Waits until there may be something to claim. Returns how an attempt ended, if one did.
    async fn wait(&self, claimed: Claimed, in_progress: &mut JoinSet<()>) -> Option<Result<(), JoinError>> {
        let settings = &self.courier.settings;
        match claimed {
            Claimed::StoreFailed(wait) => {
                tokio::time::sleep(wait).await;
                None
            }
            Claimed::Full => in_progress.join_next().await,
            Claimed::Some => tokio::select! {
                // The next event of the same account can be sent now.
                Some(ended) = in_progress.join_next() => Some(ended),
                () = settings.wake.of(self.owner).notified() => None,
                () = tokio::time::sleep(settings.poll) => None,
            },
        }
    }
}

/// The share of one attempt, returned when it ends for any reason.
struct Share {
    of: Arc<Mutex<DeliveryShares>>,
    webhook: Option<(AccountId, String)>,
}

impl Share {
    fn take(of: &Arc<Mutex<DeliveryShares>>, webhook: &Webhook) -> Self {
        let taken = of.lock().unwrap_or_else(PoisonError::into_inner).take_for(webhook);
        let account = webhook.account.clone().filter(|_| taken);
        let webhook = account.map(|account| (account, webhook.terms.url.as_str().to_owned()));
        Self { of: Arc::clone(of), webhook }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if let Some((account, url)) = &self.webhook {
            self.of.lock().unwrap_or_else(PoisonError::into_inner).give_back(account, url);
        }
    }
}

fn log_panic(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(%error, "recording the outcome of a webhook attempt panicked");
    }
}

/// The result of a claim.
enum Claimed {
    /// There may be more soon.
    Some,
    /// As many attempts are in progress as there are slots.
    Full,
    /// Backs off for this long.
    StoreFailed(Duration),
}
