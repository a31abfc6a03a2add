//! The result of an assignment, as it is printed.

use std::io::Write;

use metering_core::chains::{TxHash, TxRef};
use metering_core::payments::{PaymentRecord, PaymentUse};
use metering_core::{Account, AccountId, Credits};
use serde::Serialize;

use super::super::status::use_of;
use crate::admin::account::document;
use crate::failure::Failure;
use crate::output::json_line;

/// An account and its payment, credited now or before.
#[derive(Debug)]
pub(super) struct Outcome<'a> {
    account: &'a Account,
    headline: String,
    document: Document<'a>,
}

/// Has the field names of the response to `POST /credits/topup`.
#[derive(Debug, Serialize)]
struct Document<'a> {
    org_id: &'a AccountId,
    credit_balance: Credits,
    amount_added: Credits,
    total_credits_purchased: Credits,
    plan_id: Option<&'a str>,
    tx_hash: TxHash,
    chain_id: u64,
    already_credited: bool,
}

impl<'a> Outcome<'a> {
    /// Credited now.
    pub(super) fn credited(
        account: &'a Account,
        tx: TxRef,
        plan_id: Option<&'a str>,
        amount: Credits,
        paid: &str,
    ) -> Self {
        let headline = format!("Added {amount} credits for {paid}.");
        Self { account, headline, document: Document::new(account, tx, plan_id, amount, false) }
    }

    /// Credited before. `None` if the account is another one, or if the payment paid for the account's signup.
    pub(super) fn of_record(account: &'a Account, record: &'a PaymentRecord) -> Option<Self> {
        if record.account != account.id || record.used_as == PaymentUse::PaySignup {
            return None;
        }
        let headline = format!("The account already has this payment ({}); nothing was credited.", use_of(record));
        let document = Document::new(account, record.payment.tx, record.plan_id.as_deref(), Credits::ZERO, true);
        Some(Self { account, headline, document })
    }

    pub(super) fn write(self, out: &mut dyn Write, json: bool) -> Result<(), Failure> {
        if json {
            return json_line(out, &self.document);
        }
        document::write(out, false, &self.headline, self.account)
    }
}

impl<'a> Document<'a> {
    fn new(account: &'a Account, tx: TxRef, plan_id: Option<&'a str>, amount: Credits, already: bool) -> Self {
        Self {
            org_id: &account.id,
            credit_balance: account.totals.balance,
            amount_added: amount,
            total_credits_purchased: account.totals.purchased,
            plan_id,
            tx_hash: tx.hash,
            chain_id: tx.chain_id,
            already_credited: already,
        }
    }
}
