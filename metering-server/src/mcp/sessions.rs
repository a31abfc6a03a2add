//! Sessions: whose they are, how many there may be, and when they end.

use std::collections::HashMap;
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
use super::caller;
use crate::config::McpConfig;
use crate::http::{Problem, Shutdown};

/// After how many seconds a client that has too many sessions may try again: when one has ended, nobody can tell.
const RETRY_SECONDS: u64 = 5;

/// How many keys are looked up at one time, so that one that takes long does not keep the others.
const LOOKUPS_AT_ONCE: usize = 16;

/// How long looking a key up may take.
const LOOKUP_PATIENCE: Duration = Duration::from_secs(5);

/// The sessions of this process, and the calls without one that are under way.
#[derive(Debug)]
pub(crate) struct Sessions {
    most: usize,
    most_per_key: usize,
    idle_timeout: Duration,
    shutdown: Shutdown,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    sessions: HashMap<SessionId, Session>,
    /// Places that are taken, by sessions and by calls.
    places: HashMap<KeyHash, usize>,
    total: usize,
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
    inbox: Inbox,
    last_heard: Instant,
    end: CancellationToken,
}

/// A place among those of its key. Dropped, it is given up, and the session that has it is over.
#[derive(Debug)]
pub(crate) struct Place {
    sessions: Arc<Sessions>,
    key: KeyHash,
    session: Option<SessionId>,
    end: CancellationToken,
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
            most: config.max_sessions.get(),
            most_per_key: config.max_sessions_per_key.get(),
            idle_timeout: config.idle_timeout.duration(),
            shutdown: shutdown.clone(),
            open: Mutex::default(),
        }
    }

    /// A place for a call without a session.
    pub(crate) fn reserve(self: &Arc<Self>, key: &ApiKey) -> Result<Place, Problem> {
        self.lock().take(key.hash(), self.most, self.most_per_key)?;
        Ok(Place { sessions: Arc::clone(self), key: key.hash(), session: None, end: self.shutdown.child_token() })
    }

    /// A session of a key, and its place.
    pub(crate) fn open(self: &Arc<Self>, key: ApiKey, inbox: Inbox) -> Result<(SessionId, Place), Problem> {
        let (hash, id, end) = (key.hash(), SessionId::draw(), self.shutdown.child_token());
        let mut open = self.lock();
        open.take(hash, self.most, self.most_per_key)?;
        let session = Session { key, inbox, last_heard: Instant::now(), end: end.clone() };
        open.sessions.insert(id.clone(), session);
        drop(open);
        self.show();
        let place = Place { sessions: Arc::clone(self), key: hash, session: Some(id.clone()), end };
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
            let lookup = tokio::time::timeout(LOOKUP_PATIENCE, caller::is_live(service, &key)).await;
            if let Ok(Ok(false)) = lookup {
                self.end_of(&key.hash());
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
    fn take(&mut self, key: KeyHash, most: usize, most_per_key: usize) -> Result<(), Problem> {
        let places = self.places.get(&key).copied().unwrap_or_default();
        if places >= most_per_key {
            let message = format!("This key has {places} MCP sessions and calls open, as many as it may; end one.");
            return Err(Problem::new(ErrorCode::TooManySessions, message).retry_after(RETRY_SECONDS));
        }
        if self.total >= most {
            let message = "The server has as many MCP sessions open as it may; try again later.";
            return Err(Problem::new(ErrorCode::TooManySessions, message).retry_after(RETRY_SECONDS));
        }
        self.places.insert(key, places + 1);
        self.total += 1;
        Ok(())
    }

    fn give_up(&mut self, key: &KeyHash, session: Option<&SessionId>) {
        if let Some(places) = self.places.get_mut(key) {
            *places -= 1;
            if *places == 0 {
                self.places.remove(key);
            }
        }
        self.total -= 1;
        if let Some(session) = session {
            self.sessions.remove(session);
        }
    }
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
        self.sessions.lock().give_up(&self.key, self.session.as_ref());
        if self.session.is_some() {
            self.sessions.show();
        }
    }
}

#[cfg(test)]
mod tests;
