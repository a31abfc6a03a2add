//! Recent activity: a ring of blocks of usage entries for each account.
//!
//! An account's usage entries are counted, and sixteen of them share a row. A new block takes the place of the one that
//! is 64 before it, so nothing has to be deleted. An account that was charged often in one [round of
//! folding](crate::journal::fold) has one or a few rows written for all of it.

use std::sync::Arc;

use metering_core::access::KeyNumber;
use metering_core::charging::UsageKind;
use metering_core::usage::{ACTIVITY_KEPT, Activity};
use metering_core::{ClientSource, Credits, Timestamp, UsageLine};
use metering_sql::WriteMode;
use rusqlite::{Connection, Statement, params};
use serde::{Deserialize, Serialize};

use crate::error::{Result, corrupt, store_error};
use crate::journal::{Change, Noted, Path};
use crate::rows::{all, first};
use crate::usage::kind;

/// How many entries share a row.
const BLOCK: i64 = 16;
/// How many rows an account has at most.
const SLOTS: i64 = 64;
/// How many entries those have at most.
pub(crate) const KEPT: usize = 1_024;

const _: () = assert!(SLOTS * BLOCK == KEPT as i64, "all slots are full");
const _: () = assert!(
    (SLOTS - 1) * BLOCK >= ACTIVITY_KEPT as i64,
    "enough entries are kept even if the newest block has only one"
);

/// The stored form of a usage entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// Its number in the sequence that it shares with ledger and journal.
    pub(crate) id: i64,
    pub(crate) line: i64,
    /// The change of the balance, in atoms: negative for usage, positive for refunds.
    pub(crate) amount: i64,
    #[serde(with = "kind")]
    pub(crate) kind: UsageKind,
    pub(crate) calls: u64,
    /// In milliseconds since the Unix epoch.
    pub(crate) created_at: i64,
    pub(crate) path: Path,
    /// The key that the requests came with; [`Stored`] has it.
    #[serde(skip)]
    pub(crate) key: KeyNumber,
}

/// An entry with a format version. A new format also needs a new schema version, so that an older program refuses the
/// whole database.
#[derive(Serialize, Deserialize)]
enum Stored<E> {
    /// An entry of the account's first key. Those of schema 8 and earlier all are.
    First(E),
    /// An entry of another key, and the key's number.
    OfKey(u32, E),
    /// The same as an earlier entry, with this many between them, except for id and time: these are stored as distances from
    /// the entry before it. Since schema 23.
    Again(u8, i64, i64),
}

impl Entry {
    /// The entry of an unfolded change, if it is usage.
    pub(crate) fn of(noted: Noted) -> Option<Self> {
        let Change::Usage(usage) = noted.change else { return None };
        Some(Self {
            id: noted.id,
            line: usage.line(),
            amount: -usage.added_atoms(),
            kind: usage.kind(),
            calls: usage.calls(),
            created_at: noted.at.unix_millis(),
            key: usage.key,
            path: usage.path,
        })
    }

    /// Replaces its path by the template of its route. Returns whether it had one.
    pub(crate) fn erase_path(&mut self) -> bool {
        let has_path = matches!(self.path, Path::Other(_));
        if has_path {
            self.path = Path::Template;
        }
        has_path
    }

    /// Whether the two entries differ only in id and time.
    fn repeats(&self, last: &Self) -> bool {
        let Self { id: _, line, amount, kind, calls, created_at: _, path, key } = self;
        (line, amount, kind, calls, path, key)
            == (&last.line, &last.amount, &last.kind, &last.calls, &last.path, &last.key)
    }

    /// The shown form of the entry, given its line.
    pub(crate) fn activity(self, line: UsageLine) -> Activity {
        Activity {
            id: format!("act_{}", self.id),
            kind: self.kind.into(),
            amount: Credits::from_atoms(self.amount),
            description: None,
            request_path: self.path.get(Arc::clone(&line.route_template)),
            line: Some(line),
            calls: self.calls,
            payment: None,
            key: Some(self.key),
            created_at: Timestamp::from_unix_millis(self.created_at),
        }
    }
}

/// Packed lists can be joined, because no entry refers to one outside its own list.
fn pack(entries: &[Entry]) -> Result<Vec<u8>> {
    let mut packed = Vec::with_capacity(16 + 8 * entries.len());
    for (place, entry) in entries.iter().enumerate() {
        let earlier = &entries[..place];
        let back = earlier.iter().rev().position(|earlier| entry.repeats(earlier));
        let stored = match back.and_then(|back| u8::try_from(back).ok()).zip(earlier.last()) {
            Some((back, last)) => {
                let (id, created_at) = (entry.id.wrapping_sub(last.id), entry.created_at.wrapping_sub(last.created_at));
                Stored::Again(back, id, created_at)
            }
            None if entry.key.is_first() => Stored::First(entry),
            None => Stored::OfKey(entry.key.get(), entry),
        };
        packed = postcard::to_extend(&stored, packed).map_err(|error| corrupt(format_args!("{error}: {entry:?}")))?;
    }
    Ok(packed)
}

/// The entries in these bytes, oldest first.
pub(crate) fn unpack(packed: &[u8]) -> Result<Vec<Entry>> {
    let broken = |problem: &dyn std::fmt::Display| {
        corrupt(format_args!("cannot read {} bytes of recent activity: {problem}", packed.len()))
    };
    let (mut entries, mut rest): (Vec<Entry>, _) = (Vec::new(), packed);
    while !rest.is_empty() {
        let (stored, after) = postcard::take_from_bytes(rest).map_err(|error| broken(&error))?;
        let entry = match stored {
            Stored::First(entry) => entry,
            Stored::OfKey(number, entry) => Entry { key: KeyNumber::new(number), ..entry },
            Stored::Again(back, id, created_at) => {
                let repeated = entries.iter().rev().nth(back.into()).cloned().zip(entries.last());
                let (repeated, last) = repeated.ok_or_else(|| broken(&"no entry to repeat"))?;
                let (id, created_at) = (last.id.wrapping_add(id), last.created_at.wrapping_add(created_at));
                Entry { id, created_at, ..repeated }
            }
        };
        entries.push(entry);
        rest = after;
    }
    Ok(entries)
}

/// The statement of [`append`]. Two blobs joined are text to SQLite.
pub(crate) const APPEND: &str = "INSERT INTO recent_activity (account, slot, block, entries) VALUES (?1, ?2, ?3, ?4) \
     ON CONFLICT DO UPDATE SET block = excluded.block, entries = CASE WHEN block = excluded.block \
     THEN CAST(entries || excluded.entries AS BLOB) ELSE excluded.entries END";

/// Writes the newest entries of an account that has had `count` with them. `insert` is [`APPEND`].
pub(crate) fn append(insert: &mut Statement<'_>, account: i64, count: i64, entries: &[Entry]) -> Result<()> {
    let (mut number, mut rest) = (count - i64::try_from(entries.len()).unwrap_or(i64::MAX), entries);
    while !rest.is_empty() {
        let room = usize::try_from(BLOCK - number % BLOCK).unwrap_or(1).min(rest.len());
        let (same, after) = rest.split_at(room);
        let block = number / BLOCK;
        insert.execute(params![account, block % SLOTS, block, pack(same)?]).map_err(store_error)?;
        (number, rest) = (number + i64::try_from(room).unwrap_or(i64::MAX), after);
    }
    Ok(())
}

/// Replaces the paths of an account's entries of `until` or earlier, or only counts those that have one.
pub(crate) fn erase_paths(connection: &Connection, account: i64, until: Timestamp, mode: WriteMode) -> Result<u64> {
    let sql = "SELECT slot, entries FROM recent_activity WHERE account = ?1";
    let mut read = connection.prepare_cached(sql).map_err(store_error)?;
    let slots: Vec<(i64, Vec<u8>)> =
        all(&mut read, [account], |row| Ok(Ok((row.get(0)?, row.get_ref(1)?.as_blob()?.to_vec()))))?;
    let sql = "UPDATE recent_activity SET entries = ?3 WHERE account = ?1 AND slot = ?2";
    let mut write = connection.prepare_cached(sql).map_err(store_error)?;
    let mut erased = 0;
    for (slot, packed) in slots {
        let mut entries = unpack(&packed)?;
        let old = entries.iter_mut().filter(|entry| entry.created_at <= until.unix_millis());
        let found = old.map(|entry| u64::from(entry.erase_path())).sum::<u64>();
        if found > 0 && mode == WriteMode::Write {
            write.execute(params![account, slot, pack(&entries)?]).map_err(store_error)?;
        }
        erased += found;
    }
    Ok(erased)
}

/// Checks that all entries can be read, and that the blocks of an account are those of its newest entries.
pub(crate) fn verify(connection: &Connection) -> Result<()> {
    let sql = "SELECT r.account, r.slot, r.block, r.entries, m.activity_count \
               FROM recent_activity r JOIN meter m ON m.account = r.account";
    let mut blocks = connection.prepare_cached(sql).map_err(store_error)?;
    let checked = all(&mut blocks, [], |row| {
        let [account, slot, block, count] = [row.get::<_, i64>(0)?, row.get(1)?, row.get(2)?, row.get(4)?];
        let entries = unpack(row.get_ref(3)?.as_blob()?);
        Ok(entries.and_then(|entries| {
            let expected = (count - block * BLOCK).min(BLOCK);
            let is_newest = (0..SLOTS).contains(&((count - 1) / BLOCK - block)) && slot == block % SLOTS;
            if is_newest && i64::try_from(entries.len()) == Ok(expected) {
                return Ok(());
            }
            Err(corrupt(format_args!(
                "block {block} of the recent activity of account {account} is not as it should be"
            )))
        }))
    });
    checked.map(drop)
}

/// The usage line with this id.
pub(crate) fn usage_line(connection: &Connection, id: i64) -> Result<UsageLine> {
    let sql = "SELECT route_template, http_method, source FROM usage_line WHERE id = ?1";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    let line = first(&mut statement, [id], |row| {
        let text = |index| row.get::<_, String>(index);
        let source = ClientSource::from_name(&text(2)?);
        Ok(Ok(UsageLine { route_template: text(0)?.into(), http_method: text(1)?.into(), source }))
    })?;
    line.ok_or_else(|| corrupt(format_args!("usage line {id} is missing")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: i64) -> Entry {
        let path = Path::Template;
        let (kind, created_at, key) = (UsageKind::Charged, 1_795_262_400_000, KeyNumber::FIRST);
        Entry { id, line: 3, amount: -1_000_000, kind, calls: 1, created_at, path, key }
    }

    #[test]
    fn entries_come_back_as_they_were() {
        for path in [Path::Several, Path::Template, Path::Other("/mpp/gas/%C3%84".repeat(100).into())] {
            for extreme in [0, 1, -1, i64::MIN, i64::MAX] {
                let entry = Entry { amount: extreme, created_at: extreme, path: path.clone(), ..entry(extreme) };
                let mut entries = vec![Entry { key: KeyNumber::new(u32::MAX), ..entry.clone() }];
                entries.extend(UsageKind::ALL.map(|kind| Entry { kind, ..entry.clone() }));
                assert_eq!(unpack(&pack(&entries).unwrap()).unwrap(), entries);
            }
        }
    }

    /// A charge and a refund of another key that a program of schema 9 wrote.
    #[test]
    fn entries_of_schema_9_are_read_and_would_be_written_again() {
        let charged = [0, 10, 6, 0xff, 0x88, 0x7a, 0, 1, 0x80, 0x98, 0xd2, 0xdf, 0xbf, 0x68, 1];
        let refunded = [1, 2, 12, 6, 0x80, 0x89, 0x7a, 1, 1, 0x80, 0x98, 0xd2, 0xdf, 0xbf, 0x68, 0];
        let of_key = Entry { amount: 1_000_000, kind: UsageKind::Refunded, key: KeyNumber::new(2), ..entry(6) };
        let expected = [entry(5), Entry { path: Path::Several, ..of_key }];
        let written = [&charged[..], &refunded].concat();
        assert_eq!(pack(&expected).unwrap(), written);
        assert_eq!(unpack(&written).unwrap(), expected);
    }

    #[test]
    fn a_typical_entry_takes_few_bytes() {
        let later = |number: i64| Entry {
            created_at: entry(0).created_at + 5_000 * number,
            ..entry(1_000_000_000 + 100_000 * number)
        };
        let packed = [1, BLOCK].map(|count| pack(&(0..count).map(later).collect::<Vec<_>>()).unwrap().len());
        assert!(packed[0] <= 24 && packed[1] <= 24 + 15 * 8, "{packed:?} bytes");
    }

    #[test]
    fn repeated_entry_is_packed_as_a_reference() {
        let other = |id| Entry { path: Path::Other("/a".into()), ..entry(id) };
        let of_key = |id| Entry { key: KeyNumber::new(7), ..entry(id) };
        let entries = [entry(9), entry(10), entry(i64::MIN), other(3), other(5), of_key(7), of_key(8), entry(9)];
        let packed = pack(&entries).unwrap();
        assert_eq!(unpack(&packed).unwrap(), entries);
        assert!(packed.len() < entries.len() * 15, "{} bytes", packed.len());
        // As SQLite joins what is added to a block.
        let joined = [&packed[..], &pack(&[entry(10), entry(12)]).unwrap()].concat();
        assert_eq!(unpack(&joined).unwrap(), [&entries[..], &[entry(10), entry(12)]].concat());
        let again = postcard::to_allocvec(&Stored::<Entry>::Again(0, 1, 0)).unwrap();
        assert!(unpack(&again).is_err(), "nothing to repeat");
    }

    #[test]
    fn paths_of_old_entries_are_erased() {
        let mut connection = Connection::open_in_memory().unwrap();
        crate::migrations::migrate(&mut connection).unwrap();
        let with_path = |id, path: &str| Entry { path: Path::Other(path.into()), created_at: id, ..entry(id) };
        let entries = [with_path(1, "/a"), with_path(2, "/b"), with_path(3, "/c")];
        append(&mut connection.prepare(APPEND).unwrap(), 7, 3, &entries).unwrap();
        let erase = |mode| erase_paths(&connection, 7, Timestamp::from_unix_millis(2), mode).unwrap();
        assert_eq!([WriteMode::DryRun, WriteMode::DryRun, WriteMode::Write, WriteMode::Write].map(erase), [2, 2, 2, 0]);
        let sql = "SELECT entries FROM recent_activity";
        let stored: Vec<u8> = connection.query_row(sql, [], |row| row.get(0)).unwrap();
        let paths: Vec<_> = unpack(&stored).unwrap().into_iter().map(|entry| entry.path).collect();
        assert_eq!(paths, [Path::Template, Path::Template, Path::Other("/c".into())]);
    }

    #[test]
    fn an_invalid_entry_is_an_error() {
        let packed = pack(&[entry(5)]).unwrap();
        for length in 1..packed.len() {
            assert!(unpack(&packed[..length]).is_err(), "{length} bytes");
        }
        assert!(unpack(&[&[3], &packed[1..]].concat()).is_err(), "a later format");
    }
}
