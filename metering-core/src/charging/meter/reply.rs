//! Reply slots: a commit writes an outcome into its posting's slot, and the caller awaits it.
//!
//! Most callers get the outcome when it is on disk. A caller with an early slot may get it when it is decided, and
//! learns later whether it got to disk.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use super::MeterError;
use super::views::Started;
use super::wakes::{Caller, Round};
use crate::charging::posting::Outcome;
use crate::store::StoreError;

type Answer = Result<Outcome, MeterError>;

/// A new slot: the sending end, and the waiting end.
pub(super) fn slot() -> (ReplySender, Reply) {
    new_slot(false, None)
}

/// A new slot for a caller that proceeds once it has the outcome ([`Reply::decided`]).
pub(super) fn early_slot() -> (ReplySender, Reply) {
    new_slot(true, None)
}

/// A new slot for a caller that proceeded before the outcome.
pub(super) fn started_slot(started: Started) -> (ReplySender, Reply) {
    new_slot(false, Some(Box::new(started)))
}

fn new_slot(is_early: bool, started: Option<Box<Started>>) -> (ReplySender, Reply) {
    let slot = Arc::new(Slot(Mutex::new(State::Waiting(None))));
    (ReplySender { slot: Arc::clone(&slot), is_early, started, is_sent: false }, Reply(slot))
}

struct Slot(Mutex<State>);

enum State {
    /// The sending end of a slot. The caller is known once it has looked.
    Waiting(Option<Caller>),
    /// An outcome that is not on disk yet, and that the caller has not taken.
    Decided(Outcome),
    /// The caller has taken the outcome. It is known here once it waits for the flush.
    Flushing(Option<Caller>),
    /// Whether an outcome that the caller took early got to disk.
    Flushed(Result<(), MeterError>),
    Answered(Answer),
    /// One end is gone, or the outcome was taken.
    Ended,
}

/// Answers a posting.
pub(super) struct ReplySender {
    slot: Arc<Slot>,
    is_early: bool,
    /// The request, if its caller proceeded before the outcome. Boxed, because few do, and each posting is moved with
    /// this.
    started: Option<Box<Started>>,
    is_sent: bool,
}

/// The future outcome.
pub(super) struct Reply(Arc<Slot>);

impl Slot {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReplySender {
    /// Whether the caller wants the outcome before it is on disk.
    pub(super) const fn is_early(&self) -> bool {
        self.is_early
    }

    /// Sends an outcome that is not on disk yet; call [`flushed`](Self::flushed) afterwards. The caller is woken when
    /// `round` ends.
    pub(super) fn decide(&self, outcome: Outcome, round: &mut Round) {
        let mut state = self.slot.state();
        // A charge whose caller has gone is still recorded.
        let State::Waiting(caller) = &mut *state else { return };
        let caller = caller.take();
        *state = State::Decided(outcome);
        drop(state);
        if let Some(caller) = caller {
            round.add(caller);
        }
    }

    /// Reports whether the outcome that was handed over is on disk. An outcome that did not get to disk, and that the
    /// caller has not taken yet, is dropped.
    pub(super) fn flushed(mut self, flushed: Result<(), MeterError>, round: &mut Round) {
        self.is_sent = true;
        let mut state = self.slot.state();
        let (next, caller) = match std::mem::replace(&mut *state, State::Ended) {
            State::Decided(outcome) => (State::Answered(flushed.map(|()| outcome)), None),
            State::Flushing(caller) => (State::Flushed(flushed), caller),
            other => (other, None),
        };
        *state = next;
        drop(state);
        if let Some(caller) = caller {
            round.add(caller);
        }
    }

    /// Answers. The caller is woken when `round` ends.
    ///
    /// # Errors
    /// The outcome, if the caller has gone.
    #[expect(clippy::result_large_err, reason = "the answer is handed back")]
    pub(super) fn send(mut self, answer: Answer, round: &mut Round) -> Result<(), Answer> {
        self.is_sent = true;
        if let Some(started) = self.started.take() {
            started.ended(&answer);
        }
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
    /// If no outcome is sent, the caller learns that there will be none.
    fn drop(&mut self) {
        if self.is_sent {
            return;
        }
        let state = std::mem::replace(&mut *self.slot.state(), State::Ended);
        if let State::Waiting(Some(caller)) | State::Flushing(Some(caller)) = state {
            caller.wake();
        }
    }
}

impl Reply {
    /// Waits for the outcome.
    ///
    /// # Errors
    /// When the posting was not recorded, or that is unknown.
    pub(super) async fn outcome(mut self) -> Answer {
        poll_fn(|context| self.poll_outcome(context)).await
    }

    /// Polls for the outcome, as [`Reply::outcome`] does.
    pub(super) fn poll_outcome(&mut self, context: &mut Context<'_>) -> Poll<Answer> {
        Pin::new(self).poll(context).map(|answer| answer.and_then(recorded))
    }

    /// Waits for the outcome of an [early slot](early_slot). If it is not on disk yet, the reply is returned with it,
    /// and [resolves when it is](Self::flushed).
    ///
    /// # Errors
    /// See [`Reply::outcome`].
    pub(super) async fn decided(mut self) -> Result<(Outcome, Option<Self>), MeterError> {
        let (outcome, is_on_disk) = poll_fn(|context| self.poll_decided(context)).await?;
        Ok((recorded(outcome)?, (!is_on_disk).then_some(self)))
    }

    /// Waits until the outcome that was taken is on disk. The future can be dropped, and another one awaited.
    ///
    /// # Errors
    /// When it did not get to disk, or that is unknown.
    pub(super) async fn flushed(&mut self) -> Result<(), MeterError> {
        poll_fn(|context| self.poll_flushed(context)).await
    }

    fn poll_decided(&mut self, context: &mut Context<'_>) -> Poll<Result<(Outcome, bool), MeterError>> {
        let mut state = self.0.state();
        if let State::Waiting(caller) = &mut *state {
            Caller::update(caller, context.waker());
            return Poll::Pending;
        }
        Poll::Ready(match std::mem::replace(&mut *state, State::Ended) {
            State::Decided(outcome) => {
                *state = State::Flushing(None);
                Ok((outcome, false))
            }
            State::Answered(answer) => answer.map(|outcome| (outcome, true)),
            _ => Err(no_answer()),
        })
    }

    fn poll_flushed(&mut self, context: &mut Context<'_>) -> Poll<Result<(), MeterError>> {
        let mut state = self.0.state();
        if let State::Flushing(caller) = &mut *state {
            Caller::update(caller, context.waker());
            return Poll::Pending;
        }
        Poll::Ready(match std::mem::replace(&mut *state, State::Ended) {
            State::Flushed(flushed) => {
                *state = State::Flushed(flushed.clone());
                flushed
            }
            _ => Err(no_answer()),
        })
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
            _ => Err(no_answer()),
        })
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        *self.0.state() = State::Ended;
    }
}

/// The outcome, unless it is that the posting was not recorded.
fn recorded(outcome: Outcome) -> Answer {
    match outcome {
        Outcome::Failed(reason) => Err(store_error(StoreError::Unavailable(reason.into()))),
        outcome => Ok(outcome),
    }
}

/// The commit ended without a result, for example because it panicked.
fn no_answer() -> MeterError {
    store_error(StoreError::OutcomeUnknown("the commit ended without a result".to_owned()))
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

    /// Sends the outcome; returns it if the caller has gone.
    fn answer(sender: ReplySender) -> Option<Answer> {
        sender.send(Ok(Outcome::Settled), &mut Round::default()).err()
    }

    #[test]
    fn answer_reaches_its_caller_once() {
        let (sender, mut reply) = slot();
        assert!(look(&mut reply).is_pending());
        assert!(answer(sender).is_none());
        assert!(matches!(look(reply), Poll::Ready(Ok(Outcome::Settled))));
    }

    #[test]
    fn answer_comes_back_when_its_caller_has_gone() {
        let (sender, reply) = slot();
        drop(reply);
        assert!(matches!(answer(sender), Some(Ok(Outcome::Settled))));
    }

    fn decided(sender: &ReplySender) {
        sender.decide(Outcome::Settled, &mut Round::default());
    }

    fn failed() -> MeterError {
        store_error(StoreError::Unavailable("full".into()))
    }

    #[test]
    fn early_outcome_comes_before_its_flush() {
        for flushed in [Ok(()), Err(failed())] {
            let (sender, reply) = early_slot();
            let mut deciding = pin!(reply.decided());
            assert!(look(deciding.as_mut()).is_pending());
            decided(&sender);
            let Poll::Ready(Ok((Outcome::Settled, Some(mut reply)))) = look(deciding.as_mut()) else { panic!("early") };
            assert!(look(reply.flushed()).is_pending());
            let is_on_disk = flushed.is_ok();
            sender.flushed(flushed, &mut Round::default());
            assert!(matches!(look(reply.flushed()), Poll::Ready(flushed) if flushed.is_ok() == is_on_disk));
        }
    }

    #[test]
    fn early_outcome_is_not_given_after_a_failed_flush() {
        for flushed in [Ok(()), Err(failed())] {
            let (sender, reply) = early_slot();
            decided(&sender);
            let is_on_disk = flushed.is_ok();
            sender.flushed(flushed, &mut Round::default());
            match look(reply.decided()) {
                Poll::Ready(Ok((Outcome::Settled, None))) => assert!(is_on_disk),
                Poll::Ready(Err(_)) => assert!(!is_on_disk),
                _ => panic!("{is_on_disk}"),
            }
        }
    }

    #[test]
    fn early_outcome_is_unknown_when_nobody_tells_of_its_flush() {
        let (sender, reply) = early_slot();
        decided(&sender);
        let Poll::Ready(Ok((_, Some(mut reply)))) = look(reply.decided()) else { panic!("early") };
        drop(sender);
        let flushed = look(reply.flushed());
        assert!(matches!(&flushed, Poll::Ready(Err(error)) if error.outcome_is_unknown()), "{flushed:?}");
    }

    #[test]
    fn outcome_is_unknown_when_nobody_answers() {
        let (sender, reply) = slot();
        drop(sender);
        let outcome = look(reply.outcome());
        assert!(matches!(&outcome, Poll::Ready(Err(error)) if error.outcome_is_unknown()), "{outcome:?}");
    }
}
