//! Pure queueing logic: the items waiting in each lane, and when to start a commit.
//!
//! A commit takes all items waiting in one or more lanes and holds those lanes until it ends. If no commit is running,
//! the next one takes whatever is waiting. A second concurrent commit only pays off with many charges: small batches
//! are slower in parallel than one after the other, because each costs a transaction.
//!
//! A slow commit blocks only its own lanes.

/// How many charges justify a concurrent commit. A commit takes no more lanes once it has this many postings.
const MIN_CONCURRENT_BATCH: usize = 64;

/// Waiting items, by lane.
#[derive(Debug)]
pub(super) struct Lanes<T> {
    lanes: Vec<Lane<T>>,
    /// The lane where the next commit starts: lanes take turns.
    next: usize,
    /// Running commits, without slow ones.
    in_progress: usize,
}

#[derive(Debug)]
struct Lane<T> {
    waiting: Vec<T>,
    state: LaneState,
}

/// The holder of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LaneState {
    Free,
    Committing,
    SlowCommit,
}

/// The items of a commit, and the lanes it holds until it ends.
#[derive(Debug)]
pub(super) struct Batch<T> {
    pub(super) items: Vec<T>,
    pub(super) lanes: Vec<usize>,
}

impl<T> Lanes<T> {
    /// Makes `count` empty lanes, at least one.
    pub(super) fn new(count: usize) -> Self {
        let lane = |_| Lane { waiting: Vec::new(), state: LaneState::Free };
        Self { lanes: (0..count.max(1)).map(lane).collect(), next: 0, in_progress: 0 }
    }

    /// The lane for `name`.
    pub(super) fn of(&self, name: &[u8]) -> usize {
        // Use the last bytes: all bytes of a hash are evenly distributed, but ids share a prefix.
        let last = name.iter().rev().take(8);
        let number = last.fold(0_usize, |sum, byte| sum.wrapping_mul(251).wrapping_add(usize::from(*byte)));
        number % self.lanes.len()
    }

    /// Adds an item to a lane.
    pub(super) fn push(&mut self, lane: usize, item: T) {
        self.lanes[lane].waiting.push(item);
    }

    /// Whether the postings of a lane wait for a slow commit.
    pub(super) fn is_slow(&self, lane: usize) -> bool {
        self.lanes[lane].state == LaneState::SlowCommit
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.lanes.iter().all(|lane| lane.waiting.is_empty())
    }

    /// Whether the waiting items justify a commit of at most `max_batch`.
    pub(super) fn is_due(&self, max_batch: usize) -> bool {
        let free = self.lanes.iter().filter(|lane| lane.state == LaneState::Free);
        let waiting: usize = free.map(|lane| lane.waiting.len()).sum();
        waiting > 0 && (self.in_progress == 0 || waiting >= MIN_CONCURRENT_BATCH.min(max_batch))
    }

    /// The next commit, with at most `max_batch` items; `None` when none is due.
    pub(super) fn take(&mut self, max_batch: usize) -> Option<Batch<T>> {
        if !self.is_due(max_batch) {
            return None;
        }
        let (count, first, min_batch) = (self.lanes.len(), self.next, MIN_CONCURRENT_BATCH.min(max_batch));
        let mut batch = Batch { items: Vec::new(), lanes: Vec::new() };
        for number in (0..count).map(|step| (first + step) % count) {
            if batch.items.len() >= min_batch {
                break;
            }
            if !self.is_free(number) {
                continue;
            }
            let lane = &mut self.lanes[number];
            let room = max_batch - batch.items.len();
            if batch.items.is_empty() && lane.waiting.len() <= room {
                // The next batch is likely of this size: it then need not grow, and move, while others wait to add to
                // it.
                let next = Vec::with_capacity(lane.waiting.len());
                batch.items = std::mem::replace(&mut lane.waiting, next);
            } else {
                batch.items.extend(lane.waiting.drain(..room.min(lane.waiting.len())));
            }
            lane.state = LaneState::Committing;
            batch.lanes.push(number);
            self.next = (number + 1) % count;
        }
        self.in_progress += 1;
        Some(batch)
    }

    /// Frees the lanes of a finished commit.
    pub(super) fn free(&mut self, lanes: &[usize]) {
        if lanes.iter().any(|lane| self.lanes[*lane].state == LaneState::Committing) {
            self.in_progress -= 1;
        }
        for lane in lanes {
            self.lanes[*lane].state = LaneState::Free;
        }
    }

    /// Marks the commit of these lanes as slow.
    pub(super) fn mark_slow(&mut self, lanes: &[usize]) {
        for lane in lanes {
            self.lanes[*lane].state = LaneState::SlowCommit;
        }
        self.in_progress -= 1;
    }

    /// Removes the items that wait for slow commits, or all that wait, if `may_remove` allows it.
    pub(super) fn remove_waiting(&mut self, all: bool, may_remove: impl Fn(&T) -> bool) -> Vec<T> {
        let slow = self.lanes.iter_mut().filter(|lane| all || lane.state == LaneState::SlowCommit);
        slow.flat_map(|lane| lane.waiting.extract_if(.., |item| may_remove(item))).collect()
    }

    /// Removes all waiting items, to end without another commit.
    pub(super) fn take_all(&mut self) -> Vec<T> {
        self.lanes.iter_mut().flat_map(|lane| std::mem::take(&mut lane.waiting)).collect()
    }

    fn is_free(&self, lane: usize) -> bool {
        self.lanes[lane].state == LaneState::Free && !self.lanes[lane].waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With `counts` items in each lane: the name of lane n ends with the byte n.
    fn lanes(counts: &[usize]) -> Lanes<usize> {
        let mut lanes = Lanes::new(counts.len());
        for (lane, count) in counts.iter().enumerate() {
            (0..*count).for_each(|_| lanes.push(lane, lane));
        }
        lanes
    }

    fn sizes(lanes: &mut Lanes<usize>, max_batch: usize) -> Vec<(usize, Vec<usize>)> {
        std::iter::from_fn(|| lanes.take(max_batch)).map(|batch| (batch.items.len(), batch.lanes)).collect()
    }

    #[test]
    fn concurrent_commits_have_a_minimum_size() {
        // waiting in each lane, the commits that run at once
        type Commit = (usize, &'static [usize]);
        let table: [(&[usize], &[Commit]); 8] = [
            (&[0], &[]),
            (&[1], &[(1, &[0])]),
            (&[1_000], &[(100, &[0])]),
            (&[1, 0, 2, 3], &[(6, &[0, 2, 3])]),
            (&[16, 16, 16, 15], &[(63, &[0, 1, 2, 3])]),
            (&[64, 63, 0, 0], &[(64, &[0])]),
            (&[64, 64, 40, 30], &[(64, &[0]), (64, &[1]), (70, &[2, 3])]),
            (&[99, 99, 99, 99], &[(99, &[0]), (99, &[1]), (99, &[2]), (99, &[3])]),
        ];
        for (waiting, commits) in table {
            let commits: Vec<_> = commits.iter().map(|(size, lanes)| (*size, lanes.to_vec())).collect();
            assert_eq!(sizes(&mut lanes(waiting), 100), commits, "{waiting:?}");
        }
    }

    #[test]
    fn lane_belongs_to_one_commit_until_it_ends() {
        let mut lanes = lanes(&[70, 70]);
        let (first, second) = (lanes.take(64).unwrap(), lanes.take(64).unwrap());
        assert_eq!((&*first.lanes, &*second.lanes), (&[0][..], &[1][..]));
        assert!(lanes.take(64).is_none(), "six more are waiting in each");
        lanes.free(&first.lanes);
        assert!(lanes.take(64).is_none(), "too few for a concurrent commit");
        lanes.free(&second.lanes);
        let last = lanes.take(64).unwrap();
        assert_eq!((last.items.len(), last.lanes), (12, vec![0, 1]));
    }

    #[test]
    fn lanes_are_served_in_rotation() {
        let mut lanes = Lanes::new(3);
        for round in 0..9_usize {
            (0..3).for_each(|lane| (0..100).for_each(|_| lanes.push(lane, lane)));
            let batch = lanes.take(100).unwrap();
            assert_eq!(batch.lanes, [round % 3]);
            lanes.free(&batch.lanes);
        }
    }

    #[test]
    fn slow_commit_blocks_only_its_own_lanes() {
        let mut lanes = lanes(&[64, 2]);
        let stuck = lanes.take(100).unwrap();
        assert!(lanes.take(100).is_none(), "too few for a concurrent commit");
        lanes.mark_slow(&stuck.lanes);
        assert!(lanes.remove_waiting(false, |_| true).is_empty(), "nothing is waiting behind it");
        [(0, 10), (0, 11), (1, 20)].into_iter().for_each(|(lane, item)| lanes.push(lane, item));
        assert_eq!(lanes.remove_waiting(false, |item| *item != 10), [11]);
        let other = lanes.take(100).unwrap();
        assert_eq!((&*other.lanes, &*other.items), (&[1][..], &[1, 1, 20][..]));
        lanes.free(&stuck.lanes);
        assert!(lanes.take(100).is_none(), "too few for a concurrent commit");
        lanes.free(&other.lanes);
        assert_eq!(lanes.take(100).unwrap().items, [10]);
    }

    #[test]
    fn small_configured_batches_still_run_concurrently() {
        assert_eq!(sizes(&mut lanes(&[2, 2, 2]), 2), [(2, vec![0]), (2, vec![1]), (2, vec![2])]);
    }
}
