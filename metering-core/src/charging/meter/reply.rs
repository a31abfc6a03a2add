//! The way back: the outcome of a posting is written into a slot that its caller looks at.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use super::MeterError;
use super::wakes::{Caller, Round};
use crate::charging::posting::Outcome;
use crate::store::StoreError;

type Answer = Result<Outcome, MeterError>;

/// A new slot: the end that answers, and the end that waits.
pub(super) fn slot() -> (ReplySender, Reply) {
    let slot = Arc::new(Slot(Mutex::new(State::Waiting(None))));
    (ReplySender { slot: Arc::clone(&slot), is_sent: false }, Reply(slot))
}

struct Slot(Mutex<State>);

enum State {
    /// For an answer. The caller is known once it has looked.
    Waiting(Option<Caller>),
    Answered(Answer),
    /// One end is gone, or the answer was taken.
    Ended,
}

/// Answers a posting.
pub(super) struct ReplySender {
    slot: Arc<Slot>,
    is_sent: bool,
}

/// The outcome that will come.
pub(super) struct Reply(Arc<Slot>);

impl Slot {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReplySender {
    /// Answers. The caller is woken when `round` ends.
    ///
    /// # Errors
    /// The answer, if the caller has gone.
    pub(super) fn send(mut self, answer: Answer, round: &mut Round) -> Result<(), Answer> {
        self.is_sent = true;
        let mut state = self.slot.state();
        let State::Waiting(caller) = &mut *state else { return Err(answer) };
        let caller = caller.take();
        *state = State::Answered(answer);
        drop(state);
        if let Some(caller) = caller {
            round.add(caller);
        }
        Ok(())
    }
}

impl Drop for ReplySender {
    /// Without an answer, the caller learns that there will be none.
    fn drop(&mut self) {
        if self.is_sent {
            return;
        }
        if let State::Waiting(Some(caller)) = std::mem::replace(&mut *self.slot.state(), State::Ended) {
            caller.wake();
        }
    }
}

impl Reply {
    /// Waits for the outcome.
    ///
    /// # Errors
    /// When the posting was not recorded, or that is not known.
    pub(super) async fn outcome(self) -> Answer {
        match self.await? {
            Outcome::Failed(reason) => Err(store_error(StoreError::Unavailable(reason.into()))),
            outcome => Ok(outcome),
        }
    }
}

impl Future for Reply {
    type Output = Answer;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Answer> {
        let mut state = self.0.state();
        if let State::Waiting(caller) = &mut *state {
            Caller::update(caller, context.waker());
            return Poll::Pending;
        }
        Poll::Ready(match std::mem::replace(&mut *state, State::Ended) {
            State::Answered(answer) => answer,
            // The commit ended without a result, for example because it panicked.
            _ => Err(store_error(StoreError::OutcomeUnknown("the commit ended without a result".to_owned()))),
        })
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        *self.0.state() = State::Ended;
    }
}

fn store_error(error: StoreError) -> MeterError {
    MeterError::Store(Arc::new(error))
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Waker;

    use super::*;

    fn look<F: Future>(future: F) -> Poll<F::Output> {
        pin!(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    fn answer(sender: ReplySender) -> Result<(), Answer> {
        sender.send(Ok(Outcome::Settled), &mut Round::default())
    }

    #[test]
    fn answer_reaches_its_caller_once() {
        let (sender, mut reply) = slot();
        assert!(look(&mut reply).is_pending());
        assert!(answer(sender).is_ok());
        assert!(matches!(look(reply), Poll::Ready(Ok(Outcome::Settled))));
    }

    #[test]
    fn answer_comes_back_when_its_caller_has_gone() {
        let (sender, reply) = slot();
        drop(reply);
        assert!(matches!(answer(sender), Err(Ok(Outcome::Settled))));
    }

    #[test]
    fn outcome_is_unknown_when_nobody_answers() {
        let (sender, reply) = slot();
        drop(sender);
        let outcome = look(reply.outcome());
        assert!(matches!(&outcome, Poll::Ready(Err(error)) if error.outcome_is_unknown()), "{outcome:?}");
    }
}
