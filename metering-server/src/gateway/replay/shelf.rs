//! The recordings that are kept, within a bound on their memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use metering_core::charging::{Progress, ReplayKey, Retry};

use super::recording::Recording;

/// The size of a recording without its body: its head and its entry.
const ENTRY_BYTES: usize = 4 << 10;

/// One recording may take this part of all memory.
const SHARE: usize = 8;

#[derive(Debug)]
pub(super) struct Shelf {
    most: usize,
    kept: Mutex<Kept>,
}

/// Recordings by their key, each with its number: lower ones are older. Equal requests that are not retries have
/// separate recordings.
#[derive(Debug, Default)]
struct Kept {
    by_key: HashMap<ReplayKey, Vec<(u64, Arc<Recording>)>>,
    next: u64,
    bytes: usize,
}

impl Shelf {
    pub(super) fn new(most: usize) -> Self {
        Self { most, kept: Mutex::default() }
    }

    /// The recording that a retry gets: preferably one whose client has gone, and preferably the oldest.
    pub(super) fn find(&self, key: &ReplayKey, retry: Retry) -> Option<Arc<Recording>> {
        let kept = self.lock();
        let recordings = kept.by_key.get(key)?.iter().map(|(_, recording)| recording);
        let fits = |recording: &&Arc<Recording>| retry.joins(recording.progress()) && recording.can_be_replayed();
        let fitting = recordings.filter(fits);
        fitting.min_by_key(|recording| recording.is_being_read()).cloned()
    }

    /// Keeps a new recording, if there is room.
    pub(super) fn add(&self, recording: &Arc<Recording>) {
        let mut kept = self.lock();
        let number = kept.next;
        kept.next += 1;
        kept.by_key.entry(recording.key).or_default().push((number, Arc::clone(recording)));
        kept.bytes += ENTRY_BYTES;
        self.fit(kept, recording);
    }

    /// A recording takes more bytes. Returns `false` if it is dropped for that.
    pub(super) fn grow(&self, recording: &Arc<Recording>, bytes: usize) -> bool {
        let mut kept = self.lock();
        if !kept.has(recording) {
            return true;
        }
        kept.bytes += bytes;
        let is_too_large = recording.bytes() + bytes + ENTRY_BYTES > self.most / SHARE;
        if is_too_large {
            // `remove` subtracts what the recording has so far.
            kept.bytes -= bytes;
            drop(kept);
            let _ = self.remove(recording);
            return false;
        }
        // It is counted before it is recorded.
        self.fit_growing(kept, recording, bytes)
    }

    /// Drops a recording. Returns whether it was kept until now.
    pub(super) fn remove(&self, recording: &Arc<Recording>) -> bool {
        let was_kept = self.lock().remove(recording);
        recording.drop_from_shelf();
        was_kept
    }

    fn fit(&self, kept: MutexGuard<'_, Kept>, recording: &Arc<Recording>) {
        let _ = self.fit_growing(kept, recording, 0);
    }

    /// Makes room: drops responses that their clients have received first, oldest first. Returns `false` if that was
    /// not enough, and the recording is dropped.
    fn fit_growing(&self, mut kept: MutexGuard<'_, Kept>, recording: &Arc<Recording>, bytes: usize) -> bool {
        while kept.bytes > self.most {
            let Some(victim) = kept.oldest_delivered() else { break };
            kept.remove(&victim);
            victim.drop_from_shelf();
        }
        if kept.bytes <= self.most {
            return true;
        }
        kept.bytes -= bytes;
        kept.remove(recording);
        drop(kept);
        recording.drop_from_shelf();
        false
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.lock().bytes
    }
}

impl Kept {
    fn has(&self, recording: &Arc<Recording>) -> bool {
        let same = self.by_key.get(&recording.key);
        same.is_some_and(|same| same.iter().any(|(_, kept)| Arc::ptr_eq(kept, recording)))
    }

    /// Returns whether it was there.
    fn remove(&mut self, recording: &Arc<Recording>) -> bool {
        let Some(same) = self.by_key.get_mut(&recording.key) else { return false };
        let Some(place) = same.iter().position(|(_, kept)| Arc::ptr_eq(kept, recording)) else { return false };
        same.remove(place);
        self.bytes = self.bytes.saturating_sub(recording.bytes() + ENTRY_BYTES);
        if same.is_empty() {
            self.by_key.remove(&recording.key);
        }
        true
    }

    fn oldest_delivered(&self) -> Option<Arc<Recording>> {
        let all = self.by_key.values().flatten();
        let finished = all.filter(|(_, kept)| kept.is_finished() && kept.progress() == Progress::Delivered);
        finished.min_by_key(|(number, _)| *number).map(|(_, recording)| Arc::clone(recording))
    }
}
