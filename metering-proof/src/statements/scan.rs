//! Finds the lines of an account among the leaves of a period.

use metering_core::Timestamp;
use metering_core::clock::CalendarPeriod;

use crate::bundle::{BUNDLE_LEAVES, Bundle, ChainHead, Leaf};

/// Scans bundles in order.
#[derive(Debug)]
pub(super) struct Scan {
    account: u32,
    from: Timestamp,
    until: Timestamp,
    after: Option<u64>,
    /// The tree's size. Later leaves are not in any statement yet.
    size: u64,
    /// How many lines a page has.
    most: usize,
    /// The index of the next bundle.
    next: u64,
    has_begun: bool,
    /// The page is full, or the period over.
    has_ended: bool,
    found: Found,
}

/// The lines of a page.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The account before them.
    pub(super) opening: Option<ChainHead>,
    /// Positions and leaves.
    pub(super) lines: Vec<(u64, Leaf)>,
    /// Whether others follow.
    pub(super) has_more: bool,
}

/// The bundle is not the expected next one: earlier ones were pruned in the meantime.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Gap;

impl Scan {
    /// `first` is the index of the first bundle, and `has_begun` says whether it is entirely in the period.
    pub(super) fn new(
        account: u32,
        period: CalendarPeriod,
        after: Option<u64>,
        (size, most): (u64, usize),
        (first, has_begun): (u64, bool),
    ) -> Self {
        let (from, until, found) = (period.start(), period.end(), Found::default());
        Self { account, from, until, after, size, most, next: first, has_begun, has_ended: false, found }
    }

    pub(super) fn is_done(&self) -> bool {
        self.has_ended && self.found.opening.is_some()
    }

    pub(super) fn finish(self) -> Found {
        self.found
    }

    pub(super) fn take(&mut self, index: u64, bundle: &Bundle) -> Result<(), Gap> {
        if index != self.next {
            return Err(Gap);
        }
        self.next = index.saturating_add(1);
        for (position, leaf) in (index.saturating_mul(BUNDLE_LEAVES as u64)..).zip(bundle.leaves()) {
            if self.is_done() {
                break;
            }
            self.has_begun |= leaf.at() >= self.from;
            self.has_ended |= position >= self.size || leaf.at() >= self.until;
            let Leaf::Posted { account, before, amount, .. } = leaf else { continue };
            if *account != self.account {
                continue;
            }
            if self.has_ended {
                self.found.opening.get_or_insert(*before);
            } else if !self.has_begun || self.after.is_some_and(|after| position <= after) {
                self.found.opening = before.after(*amount);
            } else if self.found.lines.len() == self.most {
                (self.has_ended, self.found.has_more) = (true, true);
            } else {
                self.found.opening.get_or_insert(*before);
                self.found.lines.push((position, leaf.clone()));
            }
        }
        Ok(())
    }
}

impl Found {
    /// The account after the lines.
    pub(super) fn closing(&self) -> Option<ChainHead> {
        match self.lines.last() {
            Some((_, Leaf::Posted { before, amount, .. })) => before.after(*amount),
            _ => self.opening,
        }
    }

    /// Where the next page continues.
    pub(super) fn next(&self) -> Option<u64> {
        self.lines.last().map(|(position, _)| *position).filter(|_| self.has_more)
    }
}

#[cfg(test)]
mod tests {
    use metering_core::Credits;

    use super::*;
    use crate::leaf::Posting;

    const DAY_START: i64 = 1_795_219_200_000;
    const HOUR: i64 = 3_600_000;

    /// Leaves of the accounts 1 and 2, at hours from the start of 21 November 2026.
    fn bundle(leaves: &[(u32, i64)]) -> Bundle {
        let mut bundle = Bundle::default();
        for (account, hour) in leaves {
            let start = ChainHead { leaves: 7, funds: Credits::from_atoms(100) };
            let before = bundle.heads().get(account).copied().unwrap_or(start);
            let at = Timestamp::from_unix_millis(DAY_START + hour * HOUR);
            let amount = Credits::from_atoms(-1);
            bundle.push(Leaf::Posted { account: *account, before, at, amount, posting: Posting::Imported }).unwrap();
        }
        bundle
    }

    fn scan(leaves: &[(u32, i64)], after: Option<u64>, size: u64) -> (Option<u64>, Vec<u64>, Option<u64>, Option<u64>) {
        let period = "2026-11-21".parse().unwrap();
        let mut scan = Scan::new(1, period, after, (size, 3), (0, false));
        scan.take(0, &bundle(leaves)).unwrap();
        assert_eq!(scan.take(2, &bundle(leaves)), Err(Gap), "lines could be missing");
        let found = scan.finish();
        let number = |head: Option<ChainHead>| head.map(|head| head.leaves);
        let positions = found.lines.iter().map(|(position, _)| *position).collect();
        (number(found.opening), positions, number(found.closing()), found.next())
    }

    #[test]
    fn a_statement_has_the_leaves_between_two_cuts_of_the_log() {
        let yesterday = [(1, -2), (2, -1)];
        let today = [(1, 0), (1, 5), (2, 6), (1, 4)];
        let tomorrow = [(2, 24), (1, 23), (1, 25)];
        let all = [&yesterday[..], &today, &tomorrow].concat();
        assert_eq!(scan(&all, None, 9), (Some(8), vec![2, 3, 5], Some(11), None));
        // The tree ends within the day, and a leaf after it shows only the state before it.
        assert_eq!(scan(&all, None, 3), (Some(8), vec![2], Some(9), None));
        assert_eq!(scan(&[(2, 24), (1, 25)], None, 9), (Some(7), vec![], Some(7), None));
        assert_eq!(scan(&yesterday, None, 9), (Some(8), vec![], Some(8), None));
        assert_eq!(scan(&[(2, 1)], None, 9), (None, vec![], None, None));
    }

    #[test]
    fn long_statements_have_pages() {
        let leaves = [(1, 1), (1, 2), (2, 2), (1, 3), (1, 4)];
        assert_eq!(scan(&leaves, None, 9), (Some(7), vec![0, 1, 3], Some(10), Some(3)));
        assert_eq!(scan(&leaves, Some(3), 9), (Some(10), vec![4], Some(11), None));
    }
}
