//! Ledger entries that name a payment, for receipts and for top-ups that are repeated.

use crate::access::account::Account;
use crate::chains::transaction::TxRef;
use crate::error::Error;
use crate::money::credits::Credits;
use crate::money::ledger::{LedgerEntry, PaymentRef};
use crate::service::Payments;

/// How many ledger entries are read at a time.
const PAGE: u32 = 1_000;

impl Payments<'_> {
    /// Calls `visit` with every ledger entry of the account that names a payment, oldest first, until it returns
    /// `false`.
    pub(super) async fn each_paid_entry(
        self,
        account: &Account,
        mut visit: impl FnMut(LedgerEntry, PaymentRef) -> bool,
    ) -> Result<(), Error> {
        let mut after = None;
        loop {
            let page = self.access.store.account_ledger(&account.id, after.as_ref(), PAGE).await?;
            for entry in page.items {
                let Some(payment) = entry.payment.clone() else { continue };
                if !visit(entry, payment) {
                    return Ok(());
                }
            }
            after = page.next;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    /// The credits that a payment added to the account when it was credited; zero if the ledger does not name it.
    pub(super) async fn added_by(self, account: &Account, tx: &TxRef) -> Result<Credits, Error> {
        let mut added = Credits::ZERO;
        self.each_paid_entry(account, |entry, payment| {
            let found = payment.tx == *tx;
            if found {
                added = entry.amount;
            }
            !found
        })
        .await?;
        Ok(added)
    }
}
