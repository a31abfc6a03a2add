//! Batches wake-ups in both directions between a thread with callers and the committer.
//!
//! Waking a task of another thread's runtime costs a system call. A commit may complete hundreds of callers of one
//! thread, so the thread is woken once, and a task on it wakes the callers. The same task runs after the tasks that are
//! ready, and then notifies the committer of their postings, so these share one commit.

use std::cell::RefCell;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::runtime::{Handle, Id};

use crate::shown_fields::shown_fields;

thread_local! {
    /// Where callers on this thread are woken, while [`wake_together`] runs on it, and the runtime that runs it.
    static OF_THREAD: RefCell<Option<(Option<Id>, Arc<Wakes>)>> = const { RefCell::new(None) };
}

/// Wakes the callers of [`Meter`](crate::Meter) on this thread once per commit, instead of one by one, and commits
/// their postings of one turn of the runtime together. It never resolves.
///
/// Spawn it on each current-thread runtime that calls a meter from many tasks. Without it, everything works the same,
/// with more system calls and more commits; in a multi-thread runtime it is useless. Do not `block_on` a call of a
/// meter inside a task of that runtime: the task that wakes it could not run.
///
/// ```
/// use metering_core::charging::wake_together;
///
/// # let requests = async {};
/// let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
/// runtime.spawn(wake_together());
/// runtime.block_on(requests);
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use]
pub fn wake_together() -> WakeTogether {
    WakeTogether(Arc::default())
}

/// The future of [`wake_together`].
pub struct WakeTogether(Arc<Wakes>);

/// A committer that is notified when postings wait for it.
pub(super) trait Told: Send + Sync {
    /// Notifies it. Does nothing if no posting waits any more.
    fn tell(&self);
}

/// Notifies it once, after all tasks that are ready on this thread have run; immediately if [`wake_together`] does not run
/// here.
pub(super) fn tell_when_turn_ends<T: Told + 'static>(told: &Arc<T>) {
    if !Wakes::of_runtime().is_some_and(|wakes| wakes.tell_later(told)) {
        told.tell();
    }
}

/// The callers on one thread whose outcome is known, and the committers to notify of their postings.
#[derive(Default)]
struct Wakes(Mutex<State>);

#[derive(Default)]
struct State {
    ready: Vec<Waker>,
    /// At most once each.
    untold: Vec<Arc<dyn Told>>,
    /// The task that wakes and notifies them; `None` while it is being woken, or does not run.
    task: Option<Waker>,
    /// Whether the task has ended.
    has_ended: bool,
}

/// A caller that waits for an outcome.
pub(super) struct Caller {
    waker: Waker,
    together: Option<Arc<Wakes>>,
}

/// The callers of one commit.
#[derive(Default)]
pub(super) struct Round {
    threads: Vec<Arc<Wakes>>,
}

impl Caller {
    /// Keeps the waker of a caller that looked again.
    pub(super) fn update(caller: &mut Option<Self>, waker: &Waker) {
        match caller {
            Some(caller) if caller.waker.will_wake(waker) => {}
            _ => *caller = Some(Self { waker: waker.clone(), together: Wakes::of_runtime() }),
        }
    }

    /// Wakes it now.
    pub(super) fn wake(self) {
        self.waker.wake();
    }
}

impl Round {
    /// Wakes a caller when the round ends, or now if its thread wakes each on its own.
    pub(super) fn add(&mut self, caller: Caller) {
        let Some(wakes) = caller.together else { return caller.waker.wake() };
        let mut state = wakes.state();
        if state.has_ended {
            drop(state);
            return caller.waker.wake();
        }
        state.ready.push(caller.waker);
        let is_first = state.ready.len() == 1;
        drop(state);
        // If it is not the first, this round or another one will wake the thread.
        if is_first {
            self.threads.push(wakes);
        }
    }
}

impl Drop for Round {
    fn drop(&mut self) {
        for wakes in &self.threads {
            let task = wakes.state().task.take();
            if let Some(task) = task {
                task.wake();
            }
        }
    }
}

impl Wakes {
    /// The callers of the current runtime. Another runtime may run on the same thread, while this one is not driven.
    fn of_runtime() -> Option<Arc<Self>> {
        // A thread that is ending has no such variable any more.
        let found = OF_THREAD.try_with(|of_thread| {
            let of_thread = of_thread.try_borrow().ok()?;
            let (runtime, wakes) = of_thread.as_ref()?;
            (*runtime == runtime_id()).then(|| Arc::clone(wakes))
        });
        found.ok().flatten()
    }

    /// Notifies it with the next poll of the task. Returns `false` if there will be none.
    fn tell_later<T: Told + 'static>(&self, told: &Arc<T>) -> bool {
        let mut state = self.state();
        if state.has_ended {
            return false;
        }
        if !state.untold.iter().any(|known| std::ptr::addr_eq(Arc::as_ptr(known), Arc::as_ptr(told))) {
            state.untold.push(Arc::clone(told) as Arc<dyn Told>);
        }
        let task = state.task.take();
        drop(state);
        if let Some(task) = task {
            task.wake();
        }
        true
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Wakes and notifies all. Unlocks first, because both run other code.
    fn settle(mut state: MutexGuard<'_, Self>) {
        let (ready, untold) = (std::mem::take(&mut state.ready), std::mem::take(&mut state.untold));
        drop(state);
        ready.into_iter().for_each(Waker::wake);
        untold.into_iter().for_each(|told| told.tell());
    }
}

fn runtime_id() -> Option<Id> {
    Handle::try_current().ok().map(|handle| handle.id())
}

impl Future for WakeTogether {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        OF_THREAD.with_borrow_mut(|of_thread| {
            if !of_thread.as_ref().is_some_and(|(_, wakes)| Arc::ptr_eq(wakes, &self.0)) {
                *of_thread = Some((runtime_id(), Arc::clone(&self.0)));
            }
        });
        let mut state = self.0.state();
        state.task = Some(context.waker().clone());
        State::settle(state);
        Poll::Pending
    }
}

impl Drop for WakeTogether {
    fn drop(&mut self) {
        // A thread that is ending has no such variable any more.
        let _ = OF_THREAD.try_with(|of_thread| {
            of_thread.borrow_mut().take_if(|(_, wakes)| Arc::ptr_eq(wakes, &self.0));
        });
        let mut state = self.0.state();
        state.has_ended = true;
        State::settle(state);
    }
}

shown_fields!(WakeTogether:);

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Counted(AtomicUsize);

    impl Wake for Counted {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn counted() -> (Arc<Counted>, Waker) {
        let counted = Arc::<Counted>::default();
        (Arc::clone(&counted), Waker::from(counted))
    }

    fn caller(waker: &Waker) -> Caller {
        let mut caller = None;
        Caller::update(&mut caller, waker);
        caller.unwrap()
    }

    #[test]
    fn thread_is_woken_once_for_all_callers_of_a_round() {
        let (task_wakes, task) = counted();
        let (caller_wakes, waker) = counted();
        let mut together = wake_together();
        let run = |together: &mut WakeTogether| Pin::new(together).poll(&mut Context::from_waker(&task));
        assert!(run(&mut together).is_pending());
        let mut round = Round::default();
        (0..3).for_each(|_| round.add(caller(&waker)));
        drop(round);
        assert_eq!(task_wakes.0.load(Ordering::Relaxed), 1);
        assert_eq!(caller_wakes.0.load(Ordering::Relaxed), 0, "the task on their thread has not run yet");
        assert!(run(&mut together).is_pending());
        assert_eq!(caller_wakes.0.load(Ordering::Relaxed), 3);
    }

    #[derive(Default)]
    struct TimesTold(AtomicUsize);

    impl Told for TimesTold {
        fn tell(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn committer_is_notified_once_when_the_turn_ends() {
        let (task_wakes, task) = counted();
        let told = Arc::<TimesTold>::default();
        let times = || told.0.load(Ordering::Relaxed);
        tell_when_turn_ends(&told);
        assert_eq!(times(), 1, "no task runs here, so at once");
        let mut together = wake_together();
        let run = |together: &mut WakeTogether| Pin::new(together).poll(&mut Context::from_waker(&task));
        assert!(run(&mut together).is_pending());
        (0..3).for_each(|_| tell_when_turn_ends(&told));
        assert_eq!((times(), task_wakes.0.load(Ordering::Relaxed)), (1, 1), "the turn has not ended");
        assert!(run(&mut together).is_pending());
        assert_eq!(times(), 2);
        tell_when_turn_ends(&told);
        drop(together);
        assert_eq!(times(), 3, "no turn follows, so at once");
        tell_when_turn_ends(&told);
        assert_eq!(times(), 4);
        assert_eq!(Arc::strong_count(&told), 1);
    }

    #[test]
    fn callers_are_woken_when_the_task_of_their_thread_ends() {
        let (_, task) = counted();
        let (caller_wakes, waker) = counted();
        let mut together = wake_together();
        let _ = Pin::new(&mut together).poll(&mut Context::from_waker(&task));
        let (before, after) = (caller(&waker), caller(&waker));
        let mut round = Round::default();
        round.add(before);
        drop(together);
        assert_eq!(caller_wakes.0.load(Ordering::Relaxed), 1);
        round.add(after);
        assert_eq!(caller_wakes.0.load(Ordering::Relaxed), 2, "at once");
        round.add(caller(&waker));
        assert_eq!(caller_wakes.0.load(Ordering::Relaxed), 3, "the thread wakes each on its own again");
    }
}
