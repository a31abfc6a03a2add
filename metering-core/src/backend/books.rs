//! Checks an account's recorded totals against the sums of its ledger and usage.

use super::credits;
use crate::access::account::{AccountId, Totals};
use crate::access::budget::Spent;
use crate::access::issued_key::Key;
use crate::money::credits::Credits;
use crate::money::ledger::LedgerKind;
use crate::store::{Discrepancy, StoreError};

/// Sums of an account's ledger and usage, in atoms. 128 bits wide, so no order of additions overflows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Books {
    purchased: i128,
    granted: i128,
    used: i128,
    held: i128,
}

impl Books {
    /// Adds ledger entries of one kind.
    pub fn add_entries(&mut self, kind: LedgerKind, atoms: i128) {
        *(if kind.is_purchase() { &mut self.purchased } else { &mut self.granted }) += atoms;
    }

    /// Adds usage, net of refunds.
    pub fn add_usage(&mut self, atoms: i128) {
        self.used += atoms;
    }

    /// Adds the amounts of open holds.
    pub fn add_held(&mut self, atoms: i128) {
        self.held += atoms;
    }

    /// Every amount of `recorded` that differs from the sums.
    ///
    /// # Errors
    /// When a sum is more than [`Credits`](crate::Credits) can hold.
    pub fn discrepancies(self, account: &AccountId, recorded: Totals) -> Result<Vec<Discrepancy>, StoreError> {
        let Self { purchased, granted, used, held } = self;
        let amounts = [
            ("balance", recorded.balance, purchased + granted - used - held),
            ("purchased", recorded.purchased, purchased),
            ("granted", recorded.granted, granted),
            ("used", recorded.used, used),
            ("held", recorded.held, held),
        ];
        let wrong = amounts.into_iter().filter(|(_, recorded, computed)| i128::from(recorded.atoms()) != *computed);
        let discrepancy = |(amount, recorded, computed)| {
            Ok(Discrepancy { account: account.clone(), amount, recorded, computed: credits(computed)? })
        };
        wrong.map(discrepancy).collect()
    }
}

/// A key whose recorded budget spending is less than the daily totals and open holds of the key and its child keys
/// since the period began. The cause: a clock was set back by more than a day ([`Spent::at`]), and the period began
/// again. More may have been taken: a node whose clock lags at the beginning of a period books on the day before, and a
/// refund of such a charge is not counted.
#[must_use]
pub fn restarted_budget(key: &Key, spent: Spent, computed: Credits) -> Option<Discrepancy> {
    let is_short = key.terms.budget.is_some() && spent.amount < computed;
    is_short.then(|| Discrepancy {
        account: key.account.clone(),
        amount: "key_spent",
        recorded: spent.amount,
        computed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differing_sums_are_named_with_both_amounts() {
        let account: AccountId = "org_xxxxxxxxxxxxxxxxxxxx".parse().unwrap();
        let mut books = Books::default();
        books.add_entries(LedgerKind::PurchaseTopup, 70);
        books.add_entries(LedgerKind::SignupBonus, 40);
        books.add_entries(LedgerKind::Adjustment, -10);
        books.add_usage(25);
        let atoms = Credits::from_atoms;
        let right =
            Totals { balance: atoms(75), purchased: atoms(70), granted: atoms(30), used: atoms(25), held: atoms(0) };
        assert_eq!(books.discrepancies(&account, right).unwrap(), []);
        let wrong = Totals { balance: atoms(76), used: atoms(24), ..right };
        let found: Vec<_> = books.discrepancies(&account, wrong).unwrap();
        let found: Vec<_> = found.iter().map(|found| (found.amount, found.recorded, found.computed)).collect();
        assert_eq!(found, [("balance", atoms(76), atoms(75)), ("used", atoms(24), atoms(25))]);
        books.add_held(5);
        let held = Totals { balance: atoms(70), held: atoms(5), ..right };
        assert_eq!(books.discrepancies(&account, held).unwrap(), []);
        let amounts: Vec<_> = books.discrepancies(&account, right).unwrap().iter().map(|found| found.amount).collect();
        assert_eq!(amounts, ["balance", "held"]);
        books.add_usage(i128::from(i64::MAX));
        assert!(matches!(books.discrepancies(&account, right), Err(StoreError::Corrupt(_))));
    }
}
