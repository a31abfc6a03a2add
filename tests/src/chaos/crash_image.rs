//! The possible contents of a disk after a power loss: everything that was flushed, and any part of the rest.
//!
//! Each unflushed write is kept, dropped, or torn into sectors of 512 bytes, some of which are kept. Kept writes are
//! applied in any order. A truncation may be lost. So may the deletion of a file, until a file of the same name is
//! created.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::journal::{Change, Entry};
use super::rng::Rng;

const SECTOR: usize = 512;

/// The fate of unflushed changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unflushed {
    Dropped,
    AnyPart,
}

/// The files of a folder, on the disk and in its cache.
#[derive(Debug, Clone, Default)]
pub(super) struct Disk(BTreeMap<String, File>);

#[derive(Debug, Clone, Default)]
struct File {
    /// The flushed content; `None` if there is no such file.
    safe: Option<Vec<u8>>,
    pending: Vec<Change>,
    /// The flushes in progress, with the number of pending changes that preceded each.
    syncs: Vec<(u32, u64, usize)>,
}

impl Disk {
    /// The files of a folder, all flushed.
    pub(super) fn of(folder: &Path) -> Self {
        let mut disk = Self::default();
        for entry in fs::read_dir(folder).expect("the folder can be read").flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.ends_with("-shm") || !entry.path().is_file() {
                continue;
            }
            let safe = Some(fs::read(entry.path()).expect("the file can be read"));
            disk.0.insert(name, File { safe, ..File::default() });
        }
        disk
    }

    pub(super) fn apply(&mut self, entry: &Entry) {
        self.0.entry(entry.file.clone()).or_default().apply(&entry.change);
    }

    /// Writes a possible state of the disk after a power loss at this moment.
    pub(super) fn crash_into(&self, folder: &Path, unflushed: Unflushed, rng: &mut Rng) {
        for (name, file) in &self.0 {
            if let Some(bytes) = file.after_crash(unflushed, rng) {
                fs::write(folder.join(name), bytes).expect("the folder can be written to");
            }
        }
    }
}

impl File {
    fn apply(&mut self, change: &Change) {
        match change {
            Change::SyncBegin { process, token } => self.syncs.push((*process, *token, self.pending.len())),
            Change::SyncEnd { process, token } => {
                let Some(index) = self.syncs.iter().position(|sync| (sync.0, sync.1) == (*process, *token)) else {
                    return;
                };
                let (_, _, count) = self.syncs.remove(index);
                self.flush(count);
            }
            // The file systems in use keep the order of names, so this also makes the preceding deletion durable.
            Change::Create => *self = Self { pending: vec![Change::Create], ..Self::default() },
            change => self.pending.push(change.clone()),
        }
    }

    /// Marks the first `count` pending changes as flushed.
    fn flush(&mut self, count: usize) {
        let rest = self.pending.split_off(count.min(self.pending.len()));
        let flushed = std::mem::replace(&mut self.pending, rest);
        for change in &flushed {
            apply_change(&mut self.safe, change, None);
        }
        for sync in &mut self.syncs {
            sync.2 = sync.2.saturating_sub(flushed.len());
        }
    }

    fn after_crash(&self, unflushed: Unflushed, rng: &mut Rng) -> Option<Vec<u8>> {
        let mut bytes = self.safe.clone();
        if unflushed == Unflushed::Dropped {
            return bytes;
        }
        let mut kept: Vec<&Change> = self.pending.iter().filter(|_| !rng.one_in(3)).collect();
        if !kept.iter().any(|change| matches!(change, Change::Unlink)) {
            rng.shuffle(&mut kept);
        }
        for change in kept {
            apply_change(&mut bytes, change, rng.one_in(3).then_some(&mut *rng));
        }
        bytes
    }
}

/// Applies a change; with `torn`, only some sectors of a write.
fn apply_change(bytes: &mut Option<Vec<u8>>, change: &Change, mut torn: Option<&mut Rng>) {
    match change {
        Change::Create => {
            bytes.get_or_insert_with(Vec::new);
        }
        Change::Truncate { length } => bytes.get_or_insert_with(Vec::new).resize(*length, 0),
        Change::Unlink => *bytes = None,
        Change::Write { offset, data } => {
            let bytes = bytes.get_or_insert_with(Vec::new);
            if bytes.len() < offset + data.len() {
                bytes.resize(offset + data.len(), 0);
            }
            for (number, sector) in data.chunks(SECTOR).enumerate() {
                if torn.as_mut().is_some_and(|rng| rng.one_in(2)) {
                    continue;
                }
                let at = offset + number * SECTOR;
                bytes[at..at + sector.len()].copy_from_slice(sector);
            }
        }
        Change::SyncBegin { .. } | Change::SyncEnd { .. } => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(offset: usize, data: &[u8]) -> Change {
        Change::Write { offset, data: data.to_vec() }
    }

    fn file(changes: &[Change]) -> File {
        let mut file = File::default();
        changes.iter().for_each(|change| file.apply(change));
        file
    }

    fn sync(token: u64) -> [Change; 2] {
        [Change::SyncBegin { process: 1, token }, Change::SyncEnd { process: 1, token }]
    }

    #[test]
    fn flushed_data_survives_and_unflushed_may_be_dropped() {
        let [begin, end] = sync(1);
        let file = file(&[Change::Create, write(0, b"safe"), begin, end, write(4, b" lost")]);
        assert_eq!(file.after_crash(Unflushed::Dropped, &mut Rng::new(1)), Some(b"safe".to_vec()));
    }

    #[test]
    fn a_write_during_a_flush_is_not_safe() {
        let [begin, end] = sync(1);
        let file = file(&[Change::Create, write(0, b"safe"), begin, write(4, b" late"), end]);
        assert_eq!(file.after_crash(Unflushed::Dropped, &mut Rng::new(1)), Some(b"safe".to_vec()));
    }

    #[test]
    fn unflushed_writes_may_be_torn_dropped_or_intact() {
        let file = file(&[Change::Create, write(0, &[7; 4 * SECTOR])]);
        let images: Vec<_> = (0..200).map(|seed| file.after_crash(Unflushed::AnyPart, &mut Rng::new(seed))).collect();
        let intact = |image: &Option<Vec<u8>>| image.as_ref().is_some_and(|bytes| *bytes == [7; 4 * SECTOR]);
        let torn =
            |image: &Option<Vec<u8>>| image.as_ref().is_some_and(|bytes| bytes.contains(&7) && bytes.contains(&0));
        assert!(images.iter().any(intact) && images.iter().any(torn) && images.iter().any(Option::is_none));
    }

    #[test]
    fn deletion_may_be_lost_until_the_name_is_reused() {
        let [begin, end] = sync(1);
        let mut deleted = file(&[Change::Create, write(0, b"old"), begin, end, Change::Unlink]);
        let images: Vec<_> = (0..50).map(|seed| deleted.after_crash(Unflushed::AnyPart, &mut Rng::new(seed))).collect();
        assert!(images.contains(&None) && images.contains(&Some(b"old".to_vec())), "{images:?}");
        deleted.apply(&Change::Create);
        assert_eq!(deleted.after_crash(Unflushed::Dropped, &mut Rng::new(1)), None);
    }
}
