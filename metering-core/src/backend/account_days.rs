//! Adds up one account's daily totals by day and line.

use std::collections::BTreeMap;

use super::credits;
use crate::access::account::AccountId;
use crate::access::key_id::KeyNumber;
use crate::clock::Day;
use crate::store::StoreError;
use crate::usage::{DailyTotal, UsageLine};

/// The daily totals of one account, in the order of
/// [`Store::account_daily_totals`](crate::Store::account_daily_totals).
///
/// A backend may have a day's usage of a line in several places; the parts are added.
#[derive(Debug, Clone, Default)]
pub struct AccountDays {
    /// Calls and atoms. 128 bits wide, so charges and refunds can be added in any order.
    sums: BTreeMap<(Day, UsageLine, KeyNumber), (u64, i128)>,
}

impl AccountDays {
    /// Adds a total, or a part of one.
    pub fn add(&mut self, day: Day, line: UsageLine, key: KeyNumber, calls: u64, atoms: i128) {
        let sum = self.sums.entry((day, line, key)).or_default();
        *sum = (sum.0 + calls, sum.1 + atoms);
    }

    /// The totals.
    ///
    /// # Errors
    /// When a sum is more than [`Credits`](crate::Credits) can hold.
    pub fn totals(self, account: &AccountId) -> Result<Vec<DailyTotal>, StoreError> {
        let total = |((day, line, key), (calls, atoms))| {
            Ok(DailyTotal { account: account.clone(), day, line, key, calls, credits_used: credits(atoms)? })
        };
        self.sums.into_iter().map(total).collect()
    }
}
