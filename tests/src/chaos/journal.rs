//! The shim's log of writes, truncations, flushes and deletions, in order.

use std::fs;
use std::path::Path;

const MAGIC: u32 = 0x5341_4843;
const HEADER: usize = 32;

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    Create,
    Write {
        offset: usize,
        data: Vec<u8>,
    },
    Truncate {
        length: usize,
    },
    /// A flush began; everything before it is durable once it ends.
    SyncBegin {
        process: u32,
        token: u64,
    },
    SyncEnd {
        process: u32,
        token: u64,
    },
    Unlink,
}

/// A change of a file, and where its record ends in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) file: String,
    pub(super) change: Change,
    pub(super) end: u64,
}

/// Reads a whole log, except an incomplete last record of a killed process.
pub(super) fn read(path: &Path) -> Vec<Entry> {
    let bytes = fs::read(path).unwrap_or_default();
    let (mut entries, mut at) = (Vec::new(), 0);
    while let Some((entry, end)) = entry(&bytes, at) {
        entries.push(entry);
        at = end;
    }
    entries
}

fn entry(bytes: &[u8], at: usize) -> Option<(Entry, usize)> {
    let header = bytes.get(at..at + HEADER)?;
    let word = |from: usize| u32::from_ne_bytes(header[from..from + 4].try_into().expect("four bytes"));
    let long = |from: usize| u64::from_ne_bytes(header[from..from + 8].try_into().expect("eight bytes"));
    assert_eq!(word(0), MAGIC, "the shim's log is corrupt at byte {at}");
    let (kind, first, length, process) = (word(4), long(8), long(16), word(28));
    let data_at = at + HEADER + usize::try_from(word(24)).ok()?;
    let file = String::from_utf8(bytes.get(at + HEADER..data_at)?.to_vec()).ok()?;
    let (offset, length) = (usize::try_from(first).ok()?, usize::try_from(length).ok()?);
    let (change, end) = match kind {
        1 => (Change::Write { offset, data: bytes.get(data_at..data_at + length)?.to_vec() }, data_at + length),
        2 => (Change::Truncate { length: offset }, data_at),
        3 => (Change::SyncBegin { process, token: first }, data_at),
        4 => (Change::SyncEnd { process, token: first }, data_at),
        5 => (Change::Unlink, data_at),
        6 => (Change::Create, data_at),
        other => panic!("the shim's log has a record of unknown kind {other}"),
    };
    Some((Entry { file, change, end: u64::try_from(end).ok()? }, end))
}
