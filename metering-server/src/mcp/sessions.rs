//! Sessions: whose they are, how many there may be, and when they end.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use metering_client::Client;
use metering_core::wire::ErrorCode;
use metering_core::{ApiKey, KeyHash, Randomness, SystemRandomness};
use metrics::gauge;
use rmcp::model::ClientJsonRpcMessage;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::backlog::Backlog;
use super::caller::{self, Caller};
use super::shares::{AccountKey, Holding, Refused, Shares};
use crate::config::McpConfig;
use crate::http::{Problem, Shutdown};

/// After how many seconds a client that has too many sessions may try again: when one has ended, nobody can tell.
const RETRY_SECONDS: u64 = 5;

/// How many keys are looked up at one time, so that one that takes long does not keep the others.
const LOOKUPS_AT_ONCE: usize = 16;

/// How long looking a key up may take.
const LOOKUP_PATIENCE: Duration = Duration::from_secs(5);

/// The sessions of this process, and the calls without one that are in progress.
#[derive(Debug)]
pub(crate) struct Sessions {
    session_shares: Shares,
    call_shares: Shares,
    idle_timeout: Duration,
    shutdown: Shutdown,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    sessions: HashMap<SessionId, Session>,
    /// Sessions by account.
    holdings: HashMap<AccountKey, Holding>,
    calls: HashMap<AccountKey, usize>,
    calls_total: usize,
}

/// What names a session to its client: 128 bits that nobody can guess.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct SessionId(String);

/// The way into a session, and what it owes its client.
#[derive(Debug, Clone)]
pub(crate) struct Inbox {
    pub(crate) messages: mpsc::Sender<ClientJsonRpcMessage>,
    pub(crate) backlog: Arc<Backlog>,
}

#[derive(Debug)]
struct Session {
    key: ApiKey,
    account: AccountKey,
    inbox: Inbox,
    last_heard: Instant,
    end: CancellationToken,
}

/// A session's place among those of its account. Dropped, it is given up, and the session is over.
#[derive(Debug)]
pub(crate) struct Place {
    sessions: Arc<Sessions>,
    id: SessionId,
    end: CancellationToken,
}

/// A call's place among those of its account, given up when dropped.
#[derive(Debug)]
pub(crate) struct CallPlace {
    sessions: Arc<Sessions>,
    account: AccountKey,
}

impl SessionId {
    fn draw() -> Self {
        let mut bytes = [0; 16];
        SystemRandomness.fill(&mut bytes);
        Self(hex::encode(bytes))
    }

    /// Reads what a client sent.
    pub(crate) fn read(text: &str) -> Self {
        Self(text.to_owned())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Sessions {
    /// None yet. All end at the shutdown, and what is opened after it has ended already.
    pub(crate) fn new(config: &McpConfig, shutdown: &Shutdown) -> Self {
        Self {
            session_shares: Shares {
                most: config.max_sessions.get(),
                most_per_account: config.max_sessions_per_key.get(),
                most_without_credit: config.max_without_credit.get(),
            },
            call_shares: Shares {
                most: config.max_calls.get(),
                most_per_account: config.max_calls_per_key.get(),
                most_without_credit: config.max_without_credit.get(),
            },
            idle_timeout: config.idle_timeout.duration(),
            shutdown: shutdown.clone(),
            open: Mutex::default(),
        }
    }

    /// A place for a call without a session.
    pub(crate) fn reserve(self: &Arc<Self>, caller: &Caller) -> Result<CallPlace, Problem> {
        let mut open = self.lock();
        let count = open.calls.get(&caller.account).copied().unwrap_or_default();
        let own = Holding { count, has_credit: caller.has_credit };
        self.call_shares.call(own, open.calls_total).map_err(|refused| too_many("calls in progress", own, refused))?;
        open.calls.insert(Arc::clone(&caller.account), count + 1);
        open.calls_total += 1;
        Ok(CallPlace { sessions: Arc::clone(self), account: Arc::clone(&caller.account) })
    }

    /// A session of a caller, and its place.
    pub(crate) fn open(self: &Arc<Self>, caller: Caller, inbox: Inbox) -> Result<(SessionId, Place), Problem> {
        let (id, end) = (SessionId::draw(), self.shutdown.child_token());
        let Caller { key, account, has_credit } = caller;
        let mut open = self.lock();
        let count = open.holdings.get(&account).map_or(0, |holding| holding.count);
        let own = Holding { count, has_credit };
        let verdict = self.session_shares.session(own, open.sessions.len(), &open.holdings);
        if let Some(heaviest) = verdict.map_err(|refused| too_many("sessions open", own, refused))? {
            open.end_stalest(&heaviest);
        }
        // Counted again: the one that was ended may have been its own.
        let holding = open.holdings.entry(Arc::clone(&account)).or_insert(Holding { count: 0, has_credit });
        *holding = Holding { count: holding.count + 1, has_credit };
        let session = Session { key, account, inbox, last_heard: Instant::now(), end: end.clone() };
        open.sessions.insert(id.clone(), session);
        drop(open);
        self.show();
        let place = Place { sessions: Arc::clone(self), id: id.clone(), end };
        Ok((id, place))
    }

    /// The way into a session, if it is this key's; heard of now.
    pub(crate) fn inbox(&self, id: &SessionId, key: &ApiKey) -> Option<Inbox> {
        let mut open = self.lock();
        // Another key's is none: a stranger learns nothing from the answer.
        let session = open.sessions.get_mut(id).filter(|session| session.key.hash() == key.hash())?;
        session.last_heard = Instant::now();
        Some(session.inbox.clone())
    }

    /// Ends sessions that say nothing, and those whose key is no longer live, until the shutdown ends all.
    pub(crate) async fn watch(&self, service: &Client, interval: Duration) {
        self.show();
        let watching = async {
            loop {
                tokio::time::sleep(interval).await;
                self.look(service).await;
            }
        };
        // A look that is under way must not hold the shutdown up.
        tokio::select! {
            () = watching => {}
            () = self.shutdown.cancelled() => {}
        }
    }

    /// Looks at every session once.
    async fn look(&self, service: &Client) {
        let lookups = self.end_idle().into_iter().map(|key| async move {
            let lookup = tokio::time::timeout(LOOKUP_PATIENCE, caller::look_up(service, &key)).await;
            match &lookup {
                Ok(Ok(None)) => self.end_of(&key.hash()),
                Ok(Ok(Some(caller))) => self.note_credit(caller),
                Ok(Err(_)) | Err(_) => {}
            }
            // One that cannot be looked up now is looked up again.
            usize::from(!matches!(lookup, Ok(Ok(_))))
        });
        let lookups = stream::iter(lookups).buffer_unordered(LOOKUPS_AT_ONCE);
        let unknown = lookups.fold(0, |sum, unknown| std::future::ready(sum + unknown)).await;
        if unknown > 0 {
            tracing::warn!(keys = unknown, "whether the keys of open MCP sessions are live cannot be found out");
        }
    }

    /// Ends sessions that say nothing, and returns the keys of the others.
    fn end_idle(&self) -> Vec<ApiKey> {
        let open = self.lock();
        let mut keys: HashMap<KeyHash, ApiKey> = HashMap::new();
        for session in open.sessions.values() {
            if session.last_heard.elapsed() >= self.idle_timeout {
                session.end.cancel();
            } else {
                keys.entry(session.key.hash()).or_insert_with(|| session.key.clone());
            }
        }
        keys.into_values().collect()
    }

    fn note_credit(&self, caller: &Caller) {
        if let Some(holding) = self.lock().holdings.get_mut(&caller.account) {
            holding.has_credit = caller.has_credit;
        }
    }

    fn end_of(&self, key: &KeyHash) {
        let open = self.lock();
        let sessions: Vec<_> = open.sessions.values().filter(|session| session.key.hash() == *key).collect();
        tracing::info!(?key, sessions = sessions.len(), "MCP sessions of a revoked key were ended");
        sessions.iter().for_each(|session| session.end.cancel());
    }

    /// Shows how many there are.
    fn show(&self) {
        let open = self.lock();
        // Under the lock, or an older figure could come last.
        gauge!("metering_mcp_sessions").set(u32::try_from(open.sessions.len()).map_or(f64::INFINITY, f64::from));
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// Ends that session of an account which has said nothing for the longest.
    fn end_stalest(&mut self, account: &AccountKey) {
        let sessions = self.sessions.iter().filter(|(_, session)| session.account == *account);
        let stalest = sessions.min_by_key(|(_, session)| session.last_heard).map(|(id, _)| id.clone());
        if let Some(id) = stalest {
            tracing::info!(%account, "an MCP session was ended to make room for another account's");
            self.remove(&id);
        }
    }

    /// Ends a session and takes it off the books, unless that was done before.
    fn remove(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.remove(id) else { return };
        session.end.cancel();
        if let Entry::Occupied(mut holding) = self.holdings.entry(session.account) {
            holding.get_mut().count -= 1;
            if holding.get().count == 0 {
                holding.remove();
            }
        }
    }
}

/// What a client is told that gets no more.
fn too_many(what: &str, own: Holding, refused: Refused) -> Problem {
    let message = match refused {
        Refused::Account if own.has_credit => {
            format!("This account has {} MCP {what}, as many as it may; end one.", own.count)
        }
        Refused::Account => {
            format!("This account has no credit, and {} MCP {what}: more are for accounts with credit.", own.count)
        }
        Refused::Server => format!("The server has as many MCP {what} as it may; try again later."),
    };
    Problem::new(ErrorCode::TooManySessions, message).retry_after(RETRY_SECONDS)
}

impl Place {
    /// What ends the session.
    pub(crate) fn end(&self) -> &CancellationToken {
        &self.end
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.end.cancel();
        self.sessions.lock().remove(&self.id);
        self.sessions.show();
    }
}

impl Drop for CallPlace {
    fn drop(&mut self) {
        let mut open = self.sessions.lock();
        open.calls_total -= 1;
        if let Entry::Occupied(mut calls) = open.calls.entry(Arc::clone(&self.account)) {
            *calls.get_mut() -= 1;
            if *calls.get() == 0 {
                calls.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests;
