//! The tail: the newest usage of an account, packed into its meter row.
//!
//! A charge rewrites that row anyway. Writing a row of recent activity and one of a daily total as well would each cost
//! as much again, so a new usage entry is written only to the tail. When the tail is full, it is folded: its entries
//! become one row of `activity` and are added to their totals in `usage_daily`. Those tables therefore lag behind, and
//! every reader must combine them with the tail, in one snapshot.
//!
//! A tail holds entries of one block and one day.

use std::collections::BTreeMap;
use std::mem::take;

use metering_core::access::KeyNumber;
use metering_core::usage::ACTIVITY_KEPT;
use tokio_postgres::Row;

use crate::charging::entry::{BLOCK, Entry, unpack, unpack_first};
use crate::error::{Result, corrupt};

/// How many blocks are kept per account. A new block overwrites the one that is this many before it.
const SLOTS: i64 = 64;

const _: () = assert!(
    (SLOTS - 1) * BLOCK >= ACTIVITY_KEPT as i64,
    "enough entries are kept even if the newest block has only one"
);

/// A tail with more bytes is folded, so that the meter row stays on its page.
const MAX_BYTES: usize = 1_024;
/// An entry with a larger amount, in atoms, is folded on its own. The limit is low enough that the sum of a block
/// always fits into 64 bits.
const LARGE: u64 = i64::MAX.unsigned_abs() / 64;

/// The entries of an account that are not folded yet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Tail {
    /// The UTC day of all entries, in days since the Unix epoch. If there are no entries, the day of the last ones.
    pub(crate) day: Option<i64>,
    /// Newest first: a new entry leaves the older ones unchanged at the end of the row, where they need not be logged
    /// again.
    pub(crate) packed: Vec<u8>,
}

impl Tail {
    /// From two columns of `meter`: `tail_day` and `tail`.
    pub(crate) fn of_row(row: &Row, first: usize) -> Result<Self> {
        Ok(Self { day: row.try_get(first)?, packed: row.try_get(first + 1)? })
    }

    /// Its entries, newest first.
    pub(crate) fn entries(&self) -> Result<Vec<Entry<'_>>> {
        unpack(&self.packed)
    }

    /// The calls and atoms that its entries add to the day's totals, by line and key.
    pub(crate) fn totals(&self) -> Result<BTreeMap<(i64, KeyNumber), (u64, i128)>> {
        let mut totals: BTreeMap<_, (u64, i128)> = BTreeMap::new();
        for entry in self.entries()? {
            let total = totals.entry((entry.line, entry.key)).or_default();
            *total = (total.0 + entry.added_calls(), total.1 - i128::from(entry.amount));
        }
        Ok(totals)
    }

    /// Adds new entries of one line, key and day, newest last, and folds what no longer fits.
    ///
    /// They are added together because their sum fits into 64 bits, but the sum of only some of them may not.
    pub(crate) fn push(&mut self, account: i64, day: i64, entries: &[Entry<'_>], folds: &mut Folds) -> Result<()> {
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else { return Ok(()) };
        let large = entries.iter().any(|entry| entry.amount.unsigned_abs() > LARGE);
        if large || self.day != Some(day) || self.block()?.is_some_and(|block| block != first.block()) {
            folds.fold(account, self)?;
        }
        self.day = Some(day);
        for entry in entries {
            let mut packed = entry.pack(Vec::with_capacity(64 + self.packed.len()))?;
            packed.append(&mut self.packed);
            self.packed = packed;
        }
        if large || first.block() != last.block() || self.packed.len() > MAX_BYTES {
            folds.fold(account, self)?;
        }
        Ok(())
    }

    /// The block of its entries, if there are any.
    fn block(&self) -> Result<Option<i64>> {
        if self.packed.is_empty() { Ok(None) } else { Ok(Some(unpack_first(&self.packed)?.0.block())) }
    }
}

/// The rows that a batch folds, at most one per key.
#[derive(Debug, PartialEq, Eq, Default)]
pub(crate) struct Folds {
    /// Rows of `activity` by account and slot: the block number and its entries, newest first.
    pub(crate) blocks: BTreeMap<(i64, i64), (i64, Vec<u8>)>,
    /// The additions to daily totals, in this order. Normally one element; more only if a sum does not fit into 64 bits
    /// although its parts do.
    pub(crate) usage: Vec<DailySums>,
}

/// Calls and atoms by day, account, line and key.
pub(crate) type DailySums = BTreeMap<DailyTotalKey, (i64, i64)>;

type DailyTotalKey = (i64, i64, i64, KeyNumber);

impl Folds {
    fn fold(&mut self, account: i64, tail: &mut Tail) -> Result<()> {
        let Some(day) = tail.day else { return Ok(()) };
        for ((line, key), (calls, atoms)) in tail.totals()? {
            let atoms =
                i64::try_from(atoms).map_err(|_| corrupt(format_args!("{atoms} atoms in a tail are out of range")))?;
            self.add_usage((day, account, line, key), i64::try_from(calls).unwrap_or(i64::MAX), atoms);
        }
        let packed = take(&mut tail.packed);
        let (mut rest, mut oldest_first) = (packed.as_slice(), Vec::new());
        while !rest.is_empty() {
            let (entry, after) = unpack_first(rest)?;
            oldest_first.push((entry.block(), &rest[..rest.len() - after.len()]));
            rest = after;
        }
        oldest_first.reverse();
        for same in oldest_first.chunk_by(|a, b| a.0 == b.0) {
            let newest_first = same.iter().rev().flat_map(|(_, bytes)| *bytes).copied().collect();
            self.add(account, same[0].0, newest_first);
        }
        Ok(())
    }

    fn add_usage(&mut self, total: DailyTotalKey, calls: i64, atoms: i64) {
        let before = self.usage.last().map(|sums| sums.get(&total).copied().unwrap_or_default());
        match before.and_then(|before| Some((before.0 + calls, before.1.checked_add(atoms)?))) {
            Some(sum) => self.usage.last_mut().map(|sums| sums.insert(total, sum)),
            None => {
                self.usage.push(DailySums::from([(total, (calls, atoms))]));
                None
            }
        };
    }

    /// Adds entries that are newer than all earlier ones.
    pub(crate) fn add(&mut self, account: i64, block: i64, mut packed: Vec<u8>) {
        let (before, bytes) = self.blocks.entry((account, block.rem_euclid(SLOTS))).or_default();
        if *before == block {
            packed.append(bytes);
        }
        (*before, *bytes) = (block, packed);
    }
}

#[cfg(test)]
mod tests {
    use metering_core::charging::UsageKind;
    use proptest::prelude::*;

    use super::*;
    use crate::charging::entry::Path;
    use crate::charging::entry::tests::entry;

    const ACCOUNT: i64 = 7;

    /// Pushes entries one by one, all on the same day.
    fn pushed(entries: impl IntoIterator<Item = (i64, i64)>) -> (Tail, Folds) {
        let (mut tail, mut folds) = (Tail::default(), Folds::default());
        for (number, amount) in entries {
            tail.push(ACCOUNT, 1, &[entry(number, amount)], &mut folds).unwrap();
        }
        (tail, folds)
    }

    fn numbers(packed: &[u8]) -> Vec<i64> {
        unpack(packed).unwrap().iter().map(|entry| entry.number).collect()
    }

    #[test]
    fn a_full_block_is_folded_by_what_comes_after_it() {
        let (tail, folds) = pushed((1..16).map(|number| (number, -2)));
        assert_eq!((numbers(&tail.packed), folds), ((1..16).rev().collect(), Folds::default()));
        let (tail, folds) = pushed((1..17).map(|number| (number, -2)));
        assert_eq!(numbers(&tail.packed), [16]);
        assert_eq!(folds.usage, [DailySums::from([((1, ACCOUNT, entry(0, 0).line, KeyNumber::FIRST), (15, 30))])]);
        let blocks: Vec<_> =
            folds.blocks.iter().map(|(place, (block, entries))| (*place, *block, numbers(entries))).collect();
        assert_eq!(blocks, [((ACCOUNT, 0), 0, (1..16).rev().collect())]);
    }

    #[test]
    fn numbers_of_the_ledger_leave_gaps() {
        let (tail, folds) = pushed([(3, -1), (14, -1), (40, -1)]);
        assert_eq!(numbers(&tail.packed), [40]);
        assert_eq!(numbers(&folds.blocks[&(ACCOUNT, 0)].1), [14, 3]);
    }

    #[test]
    fn another_day_is_another_tail() {
        let (mut tail, mut folds) = pushed([(1, -1), (2, -1)]);
        tail.push(ACCOUNT, 2, &[entry(3, -1)], &mut folds).unwrap();
        assert_eq!((tail.day, numbers(&tail.packed)), (Some(2), vec![3]));
        tail.push(ACCOUNT, 1, &[entry(4, 5)], &mut folds).unwrap();
        assert_eq!((tail.day, numbers(&tail.packed)), (Some(1), vec![4]));
        // One row per block, no matter how often it is folded.
        assert_eq!(numbers(&folds.blocks[&(ACCOUNT, 0)].1), [3, 2, 1]);
        assert_eq!(folds.usage[0].len(), 2);
    }

    #[test]
    fn long_tail_is_folded() {
        let (path, mut tail, mut folds) = ("x".repeat(300), Tail::default(), Folds::default());
        for number in 1..=4 {
            let entry = Entry { path: Path::Other(&path), ..entry(number, -1) };
            tail.push(ACCOUNT, 1, &[entry], &mut folds).unwrap();
            assert!(tail.packed.len() <= MAX_BYTES);
        }
        assert_eq!(numbers(&folds.blocks[&(ACCOUNT, 0)].1), [4, 3, 2, 1]);
        assert_eq!(tail, Tail { day: Some(1), packed: Vec::new() });
    }

    #[test]
    fn a_charge_and_its_refund_are_folded_together() {
        let (mut tail, mut folds) = pushed([(15, -1)]);
        tail.push(ACCOUNT, 1, &[entry(31, -9), entry(32, 9)], &mut folds).unwrap();
        assert!(tail.packed.is_empty());
        let blocks: Vec<_> = folds.blocks.values().map(|(block, entries)| (*block, numbers(entries))).collect();
        assert_eq!(blocks, [(0, vec![15]), (1, vec![31]), (2, vec![32])]);
        assert_eq!(folds.usage, [DailySums::from([((1, ACCOUNT, entry(0, 0).line, KeyNumber::FIRST), (2, 1))])]);
    }

    #[test]
    fn a_large_amount_is_added_by_itself() {
        let (tail, folds) = pushed([(1, -50), (2, -i64::MAX), (3, -1)]);
        let atoms: Vec<i64> = folds.usage.iter().flat_map(|sums| sums.values().map(|(_, atoms)| *atoms)).collect();
        assert_eq!((atoms, numbers(&tail.packed)), (vec![50, i64::MAX], vec![3]));
    }

    #[test]
    fn block_replaces_the_one_64_earlier() {
        let (_, folds) = pushed((1..=1_100).map(|number| (number, -1)));
        assert_eq!(folds.blocks.len(), 64);
        assert_eq!(folds.blocks[&(ACCOUNT, 3)].0, 67);
        assert_eq!(folds.blocks[&(ACCOUNT, 5)].0, 5);
    }

    proptest! {
        /// For any input, the tail and the folded entries together have every entry exactly once.
        #[test]
        fn nothing_is_lost_or_reported_twice(
            pushes in prop::collection::vec((0_i64..3, 0_i64..8, 1_usize..3, -100_i64..100, 0_usize..500), 0..200)
        ) {
            let (mut tail, mut folds, mut number) = (Tail::default(), Folds::default(), 0);
            let (mut totals, mut all) = (BTreeMap::<_, (i64, i64)>::new(), Vec::new());
            let paths: Vec<String> = pushes.iter().map(|push| "p".repeat(push.4)).collect();
            for ((day, line_and_key, count, amount, _), path) in pushes.iter().zip(&paths) {
                let gap = amount.rem_euclid(3);
                let (line, key) = (line_and_key / 2, KeyNumber::new(u32::from(line_and_key % 2 == 1)));
                let of_line = |number| Entry { line, key, path: Path::Other(path), ..entry(number, *amount) };
                let entries: Vec<Entry<'_>> = (1..=*count as i64).map(|step| of_line(number + gap + step)).collect();
                number += gap + *count as i64;
                for entry in &entries {
                    let total = totals.entry((*day, ACCOUNT, line, key)).or_default();
                    *total = (total.0 + i64::from(entry.kind != UsageKind::Refunded), total.1 - entry.amount);
                }
                all.extend(entries.iter().copied());
                tail.push(ACCOUNT, *day, &entries, &mut folds).unwrap();
                prop_assert!(tail.packed.len() <= MAX_BYTES);
            }
            let mut found: BTreeMap<_, (i64, i64)> = folds.usage.first().cloned().unwrap_or_default();
            prop_assert!(folds.usage.len() <= 1);
            for ((line, key), (calls, atoms)) in tail.totals().unwrap() {
                let total = found.entry((tail.day.unwrap(), ACCOUNT, line, key)).or_default();
                *total = (total.0 + i64::try_from(calls).unwrap(), total.1 + i64::try_from(atoms).unwrap());
            }
            prop_assert_eq!(found, totals);
            let mut newest_first = tail.packed.clone();
            let blocks: BTreeMap<i64, &Vec<u8>> = folds.blocks.values().map(|(block, bytes)| (*block, bytes)).collect();
            blocks.values().rev().for_each(|bytes| newest_first.extend_from_slice(bytes));
            let kept = unpack(&newest_first).unwrap();
            all.reverse();
            let recent: Vec<_> = all.iter().copied().filter(|entry| entry.number > number - 1_000).collect();
            prop_assert!(kept.len() >= recent.len());
            prop_assert_eq!(&kept[..recent.len()], &recent[..]);
        }
    }
}
