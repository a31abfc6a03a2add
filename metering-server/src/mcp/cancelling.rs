//! Calls over Streamable HTTP that their client may cancel with `notifications/cancelled`, which is a separate request
//! (MCP 2025-11-25 and older; with newer versions, clients close the response instead).
//!
//! The ids of calls are unique only within a session of their client, so `initialize` gives such clients a session id.
//! Nothing is stored about a session: any node serves its calls, it never ends, and an id that this service did not
//! make is as good. A cancellation only finds calls of the node that it reaches.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::{HeaderMap, HeaderValue};
use metering_core::ApiKey;
use metering_core::access::KeyHash;
use rmcp::model::RequestId;
use tokio_util::sync::CancellationToken;

use super::caller::Caller;
use super::fair_slots::AccountKey;
use super::sessions::SessionId;

/// The header with the session id.
const SESSION_HEADER: &str = "mcp-session-id";

/// The longest session id to accept, in bytes. A call with a longer one cannot be cancelled.
const SESSION_ID_MAX: usize = 128;

/// The calls in progress, by session and id.
#[derive(Debug, Clone, Default)]
pub(super) struct Cancelling(Arc<Mutex<HashMap<CallId, InProgress>>>);

/// A session of a caller. Others cannot cancel its calls, even if they know its id.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct CallSession {
    account: AccountKey,
    key: Option<KeyHash>,
    id: SessionId,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct CallId {
    session: CallSession,
    request: RequestId,
}

/// The calls with one id. A client should not have more than one.
#[derive(Debug, Default)]
struct InProgress {
    calls: usize,
    cancelled: CancellationToken,
}

/// A call in progress. Dropping it ends the registration.
#[derive(Debug)]
pub(super) struct Cancellable {
    calls: Cancelling,
    id: CallId,
    cancelled: CancellationToken,
}

impl CallSession {
    /// The session that a request of this caller names.
    pub(super) fn read(caller: &Caller, headers: &HeaderMap) -> Option<Self> {
        let id = headers.get(SESSION_HEADER)?.to_str().ok().filter(|id| (1..=SESSION_ID_MAX).contains(&id.len()))?;
        let key = caller.key.as_ref().map(ApiKey::hash);
        Some(Self { account: Arc::clone(&caller.account), key, id: SessionId::read(id) })
    }

    /// Gives the client of a response to `initialize` a new session id.
    pub(super) fn offer(headers: &mut HeaderMap) {
        if let Ok(id) = HeaderValue::try_from(SessionId::draw().as_str()) {
            headers.insert(SESSION_HEADER, id);
        }
    }
}

impl Cancelling {
    /// Registers a call.
    pub(super) fn begin(&self, session: CallSession, request: RequestId) -> Cancellable {
        let id = CallId { session, request };
        let mut calls = self.lock();
        let in_progress = calls.entry(id.clone()).or_default();
        in_progress.calls += 1;
        let cancelled = in_progress.cancelled.clone();
        drop(calls);
        Cancellable { calls: self.clone(), id, cancelled }
    }

    /// Cancels a call of the session, if it is in progress here.
    pub(super) fn cancel(&self, session: CallSession, request: RequestId) {
        if let Some(in_progress) = self.lock().get(&CallId { session, request }) {
            in_progress.cancelled.cancel();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<CallId, InProgress>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cancellable {
    /// Resolves when the call is cancelled.
    pub(super) async fn cancelled(&self) {
        self.cancelled.cancelled().await;
    }
}

impl Drop for Cancellable {
    fn drop(&mut self) {
        let mut calls = self.calls.lock();
        if let Some(in_progress) = calls.get_mut(&self.id) {
            in_progress.calls -= 1;
            if in_progress.calls == 0 {
                calls.remove(&self.id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use metering_core::SystemRandomness;

    use super::*;

    fn caller() -> Caller {
        let key = Some(ApiKey::generate(&SystemRandomness));
        Caller { key, address: None, account: "org_1".into(), has_credit: true, token: None }
    }

    fn session(caller: &Caller, id: &str) -> CallSession {
        let headers = std::iter::once((SESSION_HEADER.parse().unwrap(), HeaderValue::try_from(id).unwrap())).collect();
        CallSession::read(caller, &headers).unwrap()
    }

    fn is_cancelled(call: &Cancellable) -> bool {
        call.cancelled.is_cancelled()
    }

    #[test]
    fn only_the_named_call_of_the_same_session_and_key_is_cancelled() {
        let (calls, caller, other) = (Cancelling::default(), caller(), caller());
        let begin = |caller: &Caller, id: &str, request| calls.begin(session(caller, id), RequestId::Number(request));
        let own = begin(&caller, "a", 1);
        let others = [begin(&caller, "a", 2), begin(&caller, "b", 1), begin(&other, "a", 1)];
        calls.cancel(session(&caller, "a"), RequestId::Number(1));
        assert!(is_cancelled(&own) && !others.iter().any(is_cancelled));
        drop((own, others));
        assert!(calls.lock().is_empty());
        // The id is free again.
        assert!(!is_cancelled(&begin(&caller, "a", 1)));
    }

    #[test]
    fn each_initialization_has_a_session_id_of_its_own() {
        let [mut one, mut other] = [(); 2].map(|()| HeaderMap::new());
        CallSession::offer(&mut one);
        CallSession::offer(&mut other);
        assert_ne!(one[SESSION_HEADER], other[SESSION_HEADER]);
        assert!(
            CallSession::read(&caller(), &one).is_some() && CallSession::read(&caller(), &HeaderMap::new()).is_none()
        );
        one.insert(SESSION_HEADER, HeaderValue::try_from("x".repeat(SESSION_ID_MAX + 1)).unwrap());
        assert!(CallSession::read(&caller(), &one).is_none());
    }
}
