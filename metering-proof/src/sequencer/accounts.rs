//! The ends of accounts' leaf chains that the store does not have yet, and the sweeps that write them there.
//!
//! Steps do not write account states: busy accounts would be written in every step. A sweep writes all states that
//! changed before it began, a few with each step. So the current states are those of the last complete sweep plus the
//! changes in later bundles.

use std::collections::{BTreeMap, HashMap};

use metering_core::store::{AccountRow, LoggedAccount};

use crate::bundle::ChainHead;

/// The accounts whose states in the store are out of date, and the log numbers of those in use.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    numbers: HashMap<AccountRow, u32>,
    /// Accounts that changed since the current sweep began, or else the last one.
    changed: HashMap<u32, ChainHead>,
    /// Accounts that the sweep has not written yet.
    sweeping: BTreeMap<u32, ChainHead>,
}

impl Accounts {
    /// The log number of an account, if it is known here.
    pub(super) fn number(&self, row: AccountRow) -> Option<u32> {
        self.numbers.get(&row).copied()
    }

    /// The end of an account's leaf chain; `None` if the store has it.
    pub(super) fn head(&self, number: u32) -> Option<ChainHead> {
        self.changed.get(&number).or_else(|| self.sweeping.get(&number)).copied()
    }

    /// Records a leaf of an account.
    pub(super) fn set_head(&mut self, number: u32, head: ChainHead) {
        self.changed.insert(number, head);
    }

    /// Adds an account with its state in the store, which is used unless a later one is known.
    pub(super) fn add(&mut self, account: &LoggedAccount, number: u32) {
        self.numbers.insert(account.row, number);
        if self.head(number).is_none() {
            self.changed.insert(number, ChainHead { leaves: account.leaves, funds: account.funds });
        }
    }

    /// Whether a new sweep would write anything that the current one does not.
    pub(super) fn have_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Whether a sweep is in progress.
    pub(super) fn are_swept(&self) -> bool {
        !self.sweeping.is_empty()
    }

    /// Begins a sweep of everything that has changed so far. This also forgets log numbers, so memory stays bounded.
    pub(super) fn begin_sweep(&mut self) {
        self.numbers.clear();
        self.sweeping.extend(self.changed.drain());
    }

    /// The next accounts to write, at most `most`, in order. They count as written.
    pub(super) fn sweep(&mut self, most: usize) -> Vec<(u32, ChainHead)> {
        let mut swept = Vec::new();
        while swept.len() < most
            && let Some((number, head)) = self.sweeping.pop_first()
        {
            swept.push((number, self.changed.get(&number).copied().unwrap_or(head)));
        }
        swept
    }
}

#[cfg(test)]
mod tests {
    use metering_core::Credits;

    use super::*;

    fn head(leaves: u64) -> ChainHead {
        ChainHead { leaves, funds: Credits::ZERO }
    }

    #[test]
    fn a_sweep_writes_latest_states_and_leaves_later_changes_to_the_next() {
        let mut accounts = Accounts::default();
        for number in 0..3 {
            accounts.set_head(number, head(1));
        }
        accounts.begin_sweep();
        accounts.set_head(1, head(2));
        accounts.set_head(7, head(1));
        assert_eq!(accounts.sweep(2), [(0, head(1)), (1, head(2))]);
        assert_eq!(
            [0, 1, 2, 7].map(|number| accounts.head(number)),
            [None, Some(head(2)), Some(head(1)), Some(head(1))]
        );
        assert!(accounts.are_swept());
        assert_eq!(accounts.sweep(2), [(2, head(1))]);
        assert!(!accounts.are_swept() && accounts.have_changed());
    }
}
