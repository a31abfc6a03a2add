//! The newest usage entries among changes that come oldest first, so that the others need not be kept.

use std::collections::VecDeque;

use crate::journal::Noted;
use crate::usage::activity::Entry;

/// The newest usage entries of an account, so far.
#[derive(Debug)]
pub(crate) struct Newest {
    most: usize,
    /// Whether the account is erased: its entries keep no path.
    is_erased: bool,
    /// Oldest first.
    entries: VecDeque<Entry>,
    /// How many there were in all.
    added: i64,
}

impl Newest {
    /// At most this many are kept.
    pub(crate) const fn new(most: usize, is_erased: bool) -> Self {
        Self { most, is_erased, entries: VecDeque::new(), added: 0 }
    }

    /// Adds a change, if it is usage, that is newer than all others.
    pub(crate) fn add(&mut self, noted: Noted) {
        let Some(mut entry) = Entry::of(noted) else { return };
        if self.is_erased {
            entry.erase_path();
        }
        self.added += 1;
        self.entries.push_back(entry);
        if self.entries.len() > self.most {
            self.entries.pop_front();
        }
    }

    /// How many entries were added, whether or not they were kept.
    pub(crate) const fn added(&self) -> i64 {
        self.added
    }

    /// The newest ones, oldest first.
    pub(crate) fn into_entries(self) -> Vec<Entry> {
        self.entries.into()
    }
}
