//! Limits what a session owes its client: calls in progress, and responses that the client has not read.
//!
//! A client may post calls and never read the responses, which are kept until they are read. So both count until a
//! response is on its way out. Cancelling a call that already has its response does not free its slot.

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
pub(crate) struct Backlog(Mutex<Owed>);

#[derive(Debug)]
struct Owed {
    under_way: HashSet<RequestId>,
    unread: usize,
    last_read: Instant,
}

impl Backlog {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Owed { under_way: HashSet::new(), unread: 0, last_read: Instant::now() }))
    }

    /// Records a client's message before it is accepted.
    ///
    /// # Errors
    /// 429 for a call above the limit; 400 for a call that reuses the id of a call in progress, since their responses
    /// could not be told apart.
    pub(crate) fn note(&self, message: &ClientJsonRpcMessage) -> Result<(), Problem> {
        let mut owed = self.lock();
        match message {
            JsonRpcMessage::Request(call) if owed.under_way.contains(&call.id) => {
                let message = "A call with this id is in progress in this session; use a new id for each call.";
                Err(Problem::new(ErrorCode::ValidationFailed, message))
            }
            JsonRpcMessage::Request(_) if owed.under_way.len() + owed.unread >= CALLS_MAX => Err(busy(format!(
                "{CALLS_MAX} calls of this session are in progress or have unread responses; read those first."
            ))),
            JsonRpcMessage::Request(call) => {
                owed.under_way.insert(call.id.clone());
                Ok(())
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    owed.under_way.remove(id);
                }
                Ok(())
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => Ok(()),
        }
    }

    /// Removes a call that was recorded but not accepted.
    pub(crate) fn forget(&self, call: &RequestId) {
        self.lock().under_way.remove(call);
    }

    /// Records a message that now waits to be read.
    pub(crate) fn waits(&self, message: &ServerJsonRpcMessage) {
        let mut owed = self.lock();
        owed.unread += 1;
        match message {
            JsonRpcMessage::Response(answer) => drop(owed.under_way.remove(&answer.id)),
            JsonRpcMessage::Error(error) => drop(error.id.as_ref().map(|id| owed.under_way.remove(id))),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => {}
        }
    }

    /// Records that one such message is on its way out.
    pub(crate) fn read(&self) {
        let mut owed = self.lock();
        owed.unread = owed.unread.saturating_sub(1);
        owed.last_read = Instant::now();
    }

    /// How long nothing has been read.
    pub(crate) fn unread_for(&self) -> Duration {
        self.lock().last_read.elapsed()
    }

    fn lock(&self) -> MutexGuard<'_, Owed> {
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

    const MOST: i64 = 64;

    fn call(id: i64) -> ClientJsonRpcMessage {
        serde_json::from_value(json!({"jsonrpc": "2.0", "id": id, "method": "ping"})).unwrap()
    }

    fn cancel(id: i64) -> ClientJsonRpcMessage {
        let params = json!({"requestId": id});
        let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        serde_json::from_value(cancelled).unwrap()
    }

    fn answer(id: i64) -> ServerJsonRpcMessage {
        serde_json::from_value(json!({"jsonrpc": "2.0", "id": id, "result": {}})).unwrap()
    }

    fn code(result: Result<(), Problem>) -> Option<ErrorCode> {
        result.err().map(|problem| problem.code())
    }

    fn full() -> Backlog {
        let backlog = Backlog::new();
        assert!((0..MOST).all(|id| backlog.note(&call(id)).is_ok()));
        assert_eq!(code(backlog.note(&call(MOST))), Some(ErrorCode::TooManySessions));
        backlog
    }

    #[test]
    fn an_answer_makes_room_once_it_is_read_and_not_before() {
        let backlog = full();
        backlog.waits(&answer(3));
        assert_eq!(code(backlog.note(&call(MOST))), Some(ErrorCode::TooManySessions));
        backlog.read();
        assert!(backlog.note(&call(MOST)).is_ok());
    }

    #[test]
    fn a_cancelled_call_makes_room_but_not_its_answer_that_waits() {
        let backlog = full();
        backlog.note(&cancel(1)).unwrap();
        assert!(backlog.note(&call(MOST)).is_ok());
        backlog.waits(&answer(2));
        backlog.note(&cancel(2)).unwrap();
        assert_eq!(code(backlog.note(&call(MOST + 1))), Some(ErrorCode::TooManySessions));
    }

    #[test]
    fn two_calls_with_one_id_are_not_taken_and_a_forgotten_one_is() {
        let backlog = Backlog::new();
        backlog.note(&call(1)).unwrap();
        assert_eq!(code(backlog.note(&call(1))), Some(ErrorCode::ValidationFailed));
        backlog.forget(&RequestId::Number(1));
        assert!(backlog.note(&call(1)).is_ok());
    }
}
