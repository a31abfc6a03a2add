//! Limits the backlog of a session: calls in progress, and responses that the client has not read.
//!
//! A client may post calls and never read the responses, which are kept until they are read. So both count until a
//! response is being sent. Cancelling a call that already has its response does not free its slot.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use metering_core::wire::ErrorCode;
use rmcp::model::{ClientJsonRpcMessage, ClientNotification, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use tokio::time::Instant;

use crate::http::Problem;

/// How many calls of one session may be in progress or have unread responses.
const CALLS_MAX: usize = 64;

/// The calls and responses of one session.
#[derive(Debug)]
pub(crate) struct Backlog(Mutex<State>);

#[derive(Debug)]
struct State {
    in_progress: HashSet<RequestId>,
    unread: usize,
    last_read: Instant,
}

impl Backlog {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(State { in_progress: HashSet::new(), unread: 0, last_read: Instant::now() }))
    }

    /// Records a client's message before it is accepted.
    ///
    /// # Errors
    /// 429 for a call above the limit; 400 for a call that reuses the id of a call in progress, since their responses
    /// would be indistinguishable.
    pub(crate) fn record(&self, message: &ClientJsonRpcMessage) -> Result<(), Problem> {
        let mut state = self.lock();
        match message {
            JsonRpcMessage::Request(call) if state.in_progress.contains(&call.id) => {
                let message = "A call with this id is in progress in this session; use a new id for each call.";
                Err(Problem::new(ErrorCode::ValidationFailed, message))
            }
            JsonRpcMessage::Request(_) if state.in_progress.len() + state.unread >= CALLS_MAX => Err(busy(format!(
                "{CALLS_MAX} calls of this session are in progress or have unread responses; read those first."
            ))),
            JsonRpcMessage::Request(call) => {
                state.in_progress.insert(call.id.clone());
                Ok(())
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    state.in_progress.remove(id);
                }
                Ok(())
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => Ok(()),
        }
    }

    /// Removes a call that was recorded but not accepted.
    pub(crate) fn forget(&self, call: &RequestId) {
        self.lock().in_progress.remove(call);
    }

    /// Records a message that now waits to be read.
    pub(crate) fn queued(&self, message: &ServerJsonRpcMessage) {
        let mut state = self.lock();
        state.unread += 1;
        match message {
            JsonRpcMessage::Response(response) => drop(state.in_progress.remove(&response.id)),
            JsonRpcMessage::Error(error) => drop(error.id.as_ref().map(|id| state.in_progress.remove(id))),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => {}
        }
    }

    /// Records that one such message is being sent.
    pub(crate) fn read(&self) {
        let mut state = self.lock();
        state.unread = state.unread.saturating_sub(1);
        state.last_read = Instant::now();
    }

    /// How long nothing has been read.
    pub(crate) fn unread_for(&self) -> Duration {
        self.lock().last_read.elapsed()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The error when a session cannot accept more at the moment.
pub(crate) fn busy(message: String) -> Problem {
    Problem::new(ErrorCode::TooManySessions, message).retry_after(1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const MAX: i64 = 64;

    fn call(id: i64) -> ClientJsonRpcMessage {
        serde_json::from_value(json!({"jsonrpc": "2.0", "id": id, "method": "ping"})).unwrap()
    }

    fn cancel(id: i64) -> ClientJsonRpcMessage {
        let params = json!({"requestId": id});
        let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        serde_json::from_value(cancelled).unwrap()
    }

    fn response(id: i64) -> ServerJsonRpcMessage {
        serde_json::from_value(json!({"jsonrpc": "2.0", "id": id, "result": {}})).unwrap()
    }

    fn code(result: Result<(), Problem>) -> Option<ErrorCode> {
        result.err().map(|problem| problem.code())
    }

    fn full() -> Backlog {
        let backlog = Backlog::new();
        assert!((0..MAX).all(|id| backlog.record(&call(id)).is_ok()));
        assert_eq!(code(backlog.record(&call(MAX))), Some(ErrorCode::TooManySessions));
        backlog
    }

    #[test]
    fn response_frees_its_slot_once_it_is_read() {
        let backlog = full();
        backlog.queued(&response(3));
        assert_eq!(code(backlog.record(&call(MAX))), Some(ErrorCode::TooManySessions));
        backlog.read();
        assert!(backlog.record(&call(MAX)).is_ok());
    }

    #[test]
    fn cancelled_call_frees_its_slot_unless_its_response_is_queued() {
        let backlog = full();
        backlog.record(&cancel(1)).unwrap();
        assert!(backlog.record(&call(MAX)).is_ok());
        backlog.queued(&response(2));
        backlog.record(&cancel(2)).unwrap();
        assert_eq!(code(backlog.record(&call(MAX + 1))), Some(ErrorCode::TooManySessions));
    }

    #[test]
    fn duplicate_call_id_is_rejected_until_forgotten() {
        let backlog = Backlog::new();
        backlog.record(&call(1)).unwrap();
        assert_eq!(code(backlog.record(&call(1))), Some(ErrorCode::ValidationFailed));
        backlog.forget(&RequestId::Number(1));
        assert!(backlog.record(&call(1)).is_ok());
    }
}
