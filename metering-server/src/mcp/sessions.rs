//! Open MCP sessions and calls: their owners, limits and end. A subscription to changes of the tools is a session too.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use metering_core::access::{ClientAddress, KeyHash};
use metering_core::wire::ErrorCode;
use metering_core::{ApiKey, Randomness, SystemRandomness};
use rmcp::model::ClientJsonRpcMessage;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::backlog::Backlog;
use super::caller::{self, Accounts, Caller, NoCaller};
use super::fair_slots::{AccountKey, FairSlots, Holding, Refused};
use crate::config::McpConfig;
use crate::http::{Problem, Shutdown};
use crate::operations::metric::gauge;

/// `Retry-After` for a client with too many sessions, in seconds. A guess: when one will end is unknown.
const RETRY_SECONDS: u64 = 5;

/// How many keys are checked concurrently, so that a slow check does not delay the others.
const MAX_LOOKUPS: usize = 16;

/// Timeout of a key check.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);

/// The open sessions of this process, and its calls in progress outside of sessions.
#[derive(Debug)]
pub(crate) struct Sessions {
    session_shares: FairSlots,
    call_shares: FairSlots,
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

/// A session's id: 128 random bits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct SessionId(String);

/// The sender for a session's messages, and its backlog.
#[derive(Debug, Clone)]
pub(crate) struct Inbox {
    pub(crate) messages: mpsc::Sender<ClientJsonRpcMessage>,
    pub(crate) backlog: Arc<Backlog>,
}

#[derive(Debug)]
struct Session {
    /// `None` if it was opened without a key.
    key: Option<ApiKey>,
    address: Option<ClientAddress>,
    account: AccountKey,
    /// `None` for a subscription: it takes no messages, so it is never idle.
    inbox: Option<Inbox>,
    last_request: Instant,
    end: CancellationToken,
}

/// The slot of a session among those of its account. Dropping it releases the slot and ends the session.
#[derive(Debug)]
pub(crate) struct SessionPermit {
    sessions: Arc<Sessions>,
    id: SessionId,
    end: CancellationToken,
}

/// The slot of a call among those of its account, released on drop.
#[derive(Debug)]
pub(crate) struct CallPermit {
    sessions: Arc<Sessions>,
    account: AccountKey,
}

impl SessionId {
    pub(super) fn draw() -> Self {
        let mut bytes = [0; 16];
        SystemRandomness.fill(&mut bytes);
        Self(hex::encode(bytes))
    }

    /// An id as sent by a client.
    pub(crate) fn read(text: &str) -> Self {
        Self(text.to_owned())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Sessions {
    /// No sessions yet. All sessions end at shutdown; one that is opened later ends immediately.
    pub(crate) fn new(config: &McpConfig, shutdown: &Shutdown) -> Self {
        Self {
            session_shares: FairSlots {
                max: config.max_sessions.get(),
                max_per_account: config.max_sessions_per_key.get(),
                max_without_credit: config.max_without_credit.get(),
            },
            call_shares: FairSlots {
                max: config.max_calls.get(),
                max_per_account: config.max_calls_per_key.get(),
                max_without_credit: config.max_without_credit.get(),
            },
            idle_timeout: config.idle_timeout.duration(),
            shutdown: shutdown.clone(),
            open: Mutex::default(),
        }
    }

    /// Reserves a slot for a call without a session.
    pub(crate) fn reserve(self: &Arc<Self>, caller: &Caller) -> Result<CallPermit, Problem> {
        let mut open = self.lock();
        let count = open.calls.get(&caller.account).copied().unwrap_or_default();
        let own = Holding { count, has_credit: caller.has_credit };
        self.call_shares
            .call(own, open.calls_total)
            .map_err(|refused| too_many("calls in progress", caller.key.is_some(), own, refused))?;
        open.calls.insert(Arc::clone(&caller.account), count + 1);
        open.calls_total += 1;
        Ok(CallPermit { sessions: Arc::clone(self), account: Arc::clone(&caller.account) })
    }

    /// Opens a session for a caller, and returns its id and slot.
    pub(crate) fn open(
        self: &Arc<Self>,
        caller: Caller,
        inbox: Option<Inbox>,
    ) -> Result<(SessionId, SessionPermit), Problem> {
        let (id, end) = (SessionId::draw(), self.shutdown.child_token());
        let Caller { key, address, account, has_credit, token: _ } = caller;
        let mut open = self.lock();
        let count = open.holdings.get(&account).map_or(0, |holding| holding.count);
        let own = Holding { count, has_credit };
        let verdict = self.session_shares.session(own, open.sessions.len(), &open.holdings);
        if let Some(heaviest) = verdict.map_err(|refused| too_many("sessions open", key.is_some(), own, refused))? {
            open.end_stalest(&heaviest);
        }
        // Count again: the session that was ended may have been the caller's own.
        let holding = open.holdings.entry(Arc::clone(&account)).or_insert(Holding { count: 0, has_credit });
        *holding = Holding { count: holding.count + 1, has_credit };
        let session = Session { key, address, account, inbox, last_request: Instant::now(), end: end.clone() };
        open.sessions.insert(id.clone(), session);
        drop(open);
        self.update_gauge();
        let permit = SessionPermit { sessions: Arc::clone(self), id: id.clone(), end };
        Ok((id, permit))
    }

    /// The inbox of a session, if it belongs to this key or was opened without one. Resets the session's idle time.
    pub(crate) fn inbox(&self, id: &SessionId, key: Option<&ApiKey>) -> Option<Inbox> {
        let mut open = self.lock();
        // A session of another key is reported as unknown, so an unauthenticated client cannot probe for sessions.
        let hash = key.map(ApiKey::hash);
        let session = open.sessions.get_mut(id).filter(|session| session.key.as_ref().map(ApiKey::hash) == hash)?;
        session.last_request = Instant::now();
        session.inbox.clone()
    }

    /// Ends idle sessions, and sessions of keys that are no longer live or may no longer be used from where the session
    /// was opened. Returns at shutdown, which ends all sessions.
    pub(crate) async fn watch(&self, accounts: &Accounts, interval: Duration) {
        self.update_gauge();
        let watching = async {
            loop {
                tokio::time::sleep(interval).await;
                self.check_keys(accounts).await;
            }
        };
        // A check in progress must not delay the shutdown.
        tokio::select! {
            () = watching => {}
            () = self.shutdown.cancelled() => {}
        }
    }

    /// Checks every session once.
    async fn check_keys(&self, accounts: &Accounts) {
        let lookups = self.end_idle().into_iter().map(|(key, address)| async move {
            match tokio::time::timeout(LOOKUP_TIMEOUT, caller::look_up(accounts, &key, address)).await {
                Ok(Ok(caller)) => self.record_credit(&caller),
                Ok(Err(NoCaller::Refused(_))) => self.end_of(&key.hash(), address),
                // Checked again next time.
                Ok(Err(NoCaller::Unknown(_))) | Err(_) => return 1,
            }
            0
        });
        let lookups = stream::iter(lookups).buffer_unordered(MAX_LOOKUPS);
        let unknown = lookups.fold(0, |sum, unknown| std::future::ready(sum + unknown)).await;
        if unknown > 0 {
            tracing::warn!(keys = unknown, "could not check whether the keys of open MCP sessions are live");
        }
    }

    /// Ends idle sessions, and returns the keys of the others, with the addresses that they are used from.
    fn end_idle(&self) -> Vec<(ApiKey, Option<ClientAddress>)> {
        let open = self.lock();
        let mut keys: HashMap<(KeyHash, Option<IpAddr>), (ApiKey, Option<ClientAddress>)> = HashMap::new();
        for session in open.sessions.values() {
            if session.inbox.is_some() && session.last_request.elapsed() >= self.idle_timeout {
                session.end.cancel();
            } else if let Some(key) = &session.key {
                let place = (key.hash(), session.address.map(|client| client.0));
                keys.entry(place).or_insert_with(|| (key.clone(), session.address));
            }
        }
        keys.into_values().collect()
    }

    fn record_credit(&self, caller: &Caller) {
        if let Some(holding) = self.lock().holdings.get_mut(&caller.account) {
            holding.has_credit = caller.has_credit;
        }
    }

    fn end_of(&self, key: &KeyHash, address: Option<ClientAddress>) {
        let open = self.lock();
        let is_ended = |session: &&Session| {
            session.key.as_ref().is_some_and(|own| own.hash() == *key) && session.address == address
        };
        let sessions: Vec<_> = open.sessions.values().filter(is_ended).collect();
        tracing::info!(?key, sessions = sessions.len(), "ended the MCP sessions of a key that may no longer be used");
        sessions.iter().for_each(|session| session.end.cancel());
    }

    /// Updates the metric of open sessions.
    fn update_gauge(&self) {
        let open = self.lock();
        // Set while holding the lock; otherwise an older value could be set last.
        gauge!("metering_mcp_sessions", "Open MCP sessions (HTTP+SSE) and subscriptions on this node")
            .set(u32::try_from(open.sessions.len()).map_or(f64::INFINITY, f64::from));
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// Ends the session of an account that has been idle for the longest.
    fn end_stalest(&mut self, account: &AccountKey) {
        let sessions = self.sessions.iter().filter(|(_, session)| session.account == *account);
        let stalest = sessions.min_by_key(|(_, session)| session.last_request).map(|(id, _)| id.clone());
        if let Some(id) = stalest {
            tracing::info!(%account, "ended an MCP session to make room for a new one");
            self.remove(&id);
        }
    }

    /// Ends a session and removes it, unless that was done before.
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

/// The error for a refused session or call.
fn too_many(what: &str, has_key: bool, own: Holding, refused: Refused) -> Problem {
    let message = match refused {
        Refused::Account if !has_key => {
            format!(
                "Your network already has {} MCP {what} without a key, its maximum; send a key for more.",
                own.count
            )
        }
        Refused::Account if own.has_credit => {
            format!("This account already has {} MCP {what}, its maximum; end one.", own.count)
        }
        Refused::Account => {
            format!("This account already has {} MCP {what}, the maximum without credit; top up for more.", own.count)
        }
        Refused::Server => format!("The server has as many MCP {what} as it allows; try again later."),
    };
    Problem::new(ErrorCode::TooManySessions, message).retry_after(RETRY_SECONDS)
}

impl SessionPermit {
    /// The token that ends the session.
    pub(crate) fn end(&self) -> &CancellationToken {
        &self.end
    }
}

impl Drop for SessionPermit {
    fn drop(&mut self) {
        self.end.cancel();
        self.sessions.lock().remove(&self.id);
        self.sessions.update_gauge();
    }
}

impl Drop for CallPermit {
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
