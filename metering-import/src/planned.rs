//! The planned import of one account, to compare with the store afterwards.

use metering_core::access::Totals;
use metering_core::imports::ImportedAccount;
use metering_core::money::Credits;

use crate::finding::ImportFinding;

/// An account to import, and its data at the source.
#[derive(Debug, Clone)]
pub struct PlannedAccount {
    /// The account's name at the source, for reports.
    pub subject: String,
    /// The account.
    pub account: ImportedAccount,
    /// The balance at the source. After the import, the store must have exactly this.
    pub balance: Credits,
    /// The entry that balances the rounding of amounts that the source stores as floating point.
    pub rounding: Credits,
    /// Findings about it.
    pub oddities: Vec<ImportFinding>,
}

impl PlannedAccount {
    /// Whether an account in the store has the balance of the source.
    #[must_use]
    pub fn is_proved_by(&self, totals: &Totals) -> bool {
        totals.held == Credits::ZERO && totals.balance == self.balance
    }
}
