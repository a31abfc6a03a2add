//! The waker with which a task polls its connection to the upstream.
//!
//! hyper's connection and the body that it sends wake each other. Here one task polls both, in turn, so such a wake would
//! only make that task, with the client's whole connection, run once more for nothing: with every event of a stream.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// The task waits to be woken.
const WAITING: u8 = 0;
/// The task is polling.
const POLLING: u8 = 1;
/// The task was woken while it was polling.
const WOKEN: u8 = 2;

/// Wakes the task that last polled with it. A wake during a poll counts only if the poll is not ready: the task polls
/// again after one that is.
pub(super) struct TaskWaker {
    shared: Arc<Shared>,
    waker: Waker,
}

struct Shared {
    state: AtomicU8,
    task: Mutex<Waker>,
}

impl TaskWaker {
    pub(super) fn new() -> Self {
        let task = Mutex::new(Waker::noop().clone());
        let shared = Arc::new(Shared { state: AtomicU8::new(WAITING), task });
        Self { waker: Waker::from(Arc::clone(&shared)), shared }
    }

    /// Polls for the task of `context`.
    pub(super) fn poll<T>(&self, context: &mut Context<'_>, poll: impl FnOnce(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        self.shared.task().clone_from(context.waker());
        self.shared.state.store(POLLING, Ordering::Release);
        let polled = poll(&mut Context::from_waker(&self.waker));
        let woken = self.shared.state.swap(WAITING, Ordering::AcqRel) == WOKEN;
        if woken && polled.is_pending() {
            context.waker().wake_by_ref();
        }
        polled
    }
}

impl Shared {
    fn task(&self) -> MutexGuard<'_, Waker> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Shared {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let state = self.state.compare_exchange(POLLING, WOKEN, Ordering::AcqRel, Ordering::Acquire);
        if state == Err(WAITING) {
            self.task().wake_by_ref();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// A task that counts how often it is woken.
    #[derive(Default)]
    struct Task(AtomicUsize);

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A poll that is woken while it runs this often, and then ends with `polled`.
    fn poll(waker: &TaskWaker, task: &Arc<Task>, wakes: usize, polled: Poll<()>) -> Waker {
        let (mut kept, task) = (None, Waker::from(Arc::clone(task)));
        let outcome = waker.poll(&mut Context::from_waker(&task), |context| {
            (0..wakes).for_each(|_| context.waker().wake_by_ref());
            kept = Some(context.waker().clone());
            polled
        });
        assert_eq!(outcome, polled);
        kept.unwrap()
    }

    #[test]
    fn wake_during_a_poll_counts_once_and_only_if_it_is_pending() {
        // wakes, outcome, how often the task is woken
        let table = [(0, Poll::Pending, 0), (1, Poll::Pending, 1), (3, Poll::Pending, 1), (3, Poll::Ready(()), 0)];
        for (wakes, polled, expected) in table {
            let task = Arc::<Task>::default();
            poll(&TaskWaker::new(), &task, wakes, polled);
            assert_eq!(task.0.load(Ordering::Relaxed), expected, "{wakes} {polled:?}");
        }
    }

    #[test]
    fn wake_after_a_poll_wakes_the_task_that_polled_last() {
        let (waker, [first, last]) = (TaskWaker::new(), [(); 2].map(|()| Arc::<Task>::default()));
        let kept = poll(&waker, &first, 0, Poll::Pending);
        assert!(kept.will_wake(&poll(&waker, &last, 1, Poll::Ready(()))), "so that it need not be registered again");
        kept.wake();
        assert_eq!([first, last].map(|task| task.0.load(Ordering::Relaxed)), [0, 1]);
    }
}
