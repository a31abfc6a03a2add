//! The payments that were credited, and the assignment of payments to accounts, for operators.

use std::collections::BTreeMap;

use metering_core::chains::TxRef;
use metering_core::money::{Credits, printed};
use metering_core::payments::{PaymentRecord, PaymentUse, Plan, ReceiptNumber};
use metering_core::store::{Cursor, Page};
use metering_core::wire::ValueDocument;
use serde::{Deserialize, Serialize};

use crate::payments::{Assigned, Token, named_amount, use_of};
use crate::wire::{AccountDocument, QuotedDocument};

/// The payments that were credited, in the order they were recorded.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PaymentRecordsDocument {
    /// The payments.
    pub payments: Vec<PaymentRecordDocument>,
    /// The names of their accounts, by the accounts' ids. Absent when the list is not newest first.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub agent_names: BTreeMap<String, String>,
    /// The cursor for the payments that follow; absent when there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A payment that was credited to an account.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PaymentRecordDocument {
    /// The chain's id (EIP-155).
    pub chain_id: u64,
    /// The transaction.
    pub tx_hash: String,
    /// The number of its block.
    pub block_number: u64,
    /// When the payment was mined, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub mined_at: String,
    /// The wallet that paid.
    pub payer_address: String,
    /// The address that was paid.
    pub recipient: String,
    /// The token's contract, in lower case; the zero address for the native coin.
    pub token_contract: String,
    /// The token's symbol; null when no plan is sold for it any longer.
    pub token_symbol: Option<String>,
    /// The amount in the token's smallest unit, as a string of digits.
    pub amount_atomic: String,
    /// The amount in tokens, as a string; null when the token's decimals are no longer known.
    pub amount_human: Option<String>,
    /// The account that has it.
    pub org_id: String,
    /// `pay_signup`, `topup`, `assigned`, `authorization`, `imported` or `processor`.
    pub used_as: String,
    /// The plan that was credited; null for a payment that was assigned without one.
    pub plan_id: Option<String>,
    /// When it was recorded, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub recorded_at: String,
    /// `unsettled`, `final` or `reversed`.
    pub state: String,
    /// When its credits were taken back, as RFC 3339; null unless it is `reversed`.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub reversed_at: Option<String>,
    /// Its value in the operator's currency when it was credited; null if the operator had set no currency, and for a
    /// processor's payment.
    #[serde(default)]
    pub value: Option<ValueDocument>,
    /// The reference of its receipt, for `GET /admin/accounts/{id}/receipt`; null for a payment that was imported, which
    /// has none.
    #[serde(default)]
    pub receipt: Option<String>,
    /// The processor that took it; absent for a payment on a chain. `chain_id` is then 0, and the token is the currency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor: Option<String>,
    /// The processor's id of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor_id: Option<String>,
}

/// The outcome of assigning a payment to an account. Has the field names of the response to `POST /credits/topup`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AssignmentDocument {
    /// The account's id.
    pub org_id: String,
    /// Its balance.
    #[serde(deserialize_with = "printed")]
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credit_balance: Credits,
    /// Credits added by this assignment: zero for a repeated one.
    #[serde(deserialize_with = "printed")]
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub amount_added: Credits,
    /// Credits bought in total.
    #[serde(deserialize_with = "printed")]
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub total_credits_purchased: Credits,
    /// The plan that was credited; null for a payment that was assigned without one.
    pub plan_id: Option<String>,
    /// The payment's transaction.
    pub tx_hash: String,
    /// The payment's chain.
    pub chain_id: u64,
    /// Whether the payment had already been credited to this account.
    pub already_credited: bool,
    /// More about it. Absent on the command line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<AssignmentDetails>,
}

/// More about an assignment.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AssignmentDetails {
    /// The account afterwards.
    pub account: AccountDocument,
    /// The amount paid, such as `5 USDC`; null if it had already been credited.
    pub paid: Option<String>,
    /// If it had already been credited: its use, such as `top-up of org_..., plan starter`.
    pub used_for: Option<String>,
    /// Another customer's open quote that was waiting for the payment, and can no longer be claimed with it.
    pub quote: Option<QuotedDocument>,
}

impl PaymentRecordsDocument {
    /// Adds a page that follows.
    pub fn append(&mut self, page: Self) {
        self.payments.extend(page.payments);
        self.next = page.next;
    }

    /// Lists a page of payments. The names of their tokens come from `plans`.
    #[must_use]
    pub fn new(page: &Page<PaymentRecord>, plans: &[Plan]) -> Self {
        let payments = page.items.iter().map(|record| PaymentRecordDocument::new(record, plans)).collect();
        Self {
            payments,
            agent_names: BTreeMap::new(),
            next: page.next.as_ref().map(Cursor::as_str).map(ToOwned::to_owned),
        }
    }
}

impl PaymentRecordDocument {
    /// The amount paid, with its unit: `5 USDC`.
    #[must_use]
    pub fn paid(&self) -> String {
        let named = self.amount_human.as_deref().zip(self.token_symbol.as_deref());
        named_amount(named, &self.amount_atomic, &self.token_contract)
    }

    fn new(record: &PaymentRecord, plans: &[Plan]) -> Self {
        let payment = &record.payment;
        let token = Token::of(plans, &payment.target());
        Self {
            chain_id: payment.tx.chain_id,
            tx_hash: payment.tx.hash.to_string(),
            block_number: payment.block_number,
            mined_at: payment.mined_at.to_string(),
            payer_address: payment.payer.to_string(),
            recipient: payment.recipient.to_string(),
            token_contract: payment.token.to_string(),
            token_symbol: token.symbol().map(ToOwned::to_owned),
            amount_atomic: payment.amount.to_string(),
            amount_human: token.human(payment.amount),
            org_id: record.account.to_string(),
            used_as: record.used_as.as_str().to_owned(),
            plan_id: record.plan_id.clone(),
            recorded_at: record.recorded_at.to_string(),
            state: record.settlement.as_str().to_owned(),
            reversed_at: record.settlement.reversed_at().map(|at| at.to_string()),
            value: record.value.as_ref().map(Into::into),
            receipt: (record.used_as != PaymentUse::Imported).then(|| ReceiptNumber::of(&payment.tx).to_string()),
            processor: record.processor.as_ref().map(|processor| processor.processor().to_owned()),
            processor_id: record.processor.as_ref().map(|processor| processor.id().to_owned()),
        }
    }
}

impl From<&Assigned> for AssignmentDocument {
    fn from(assigned: &Assigned) -> Self {
        let account = assigned.account();
        let (TxRef { chain_id, hash }, plan_id, amount_added, already_credited) = match assigned {
            Assigned::Credited(credited) => (credited.payment.tx, &credited.plan_id, credited.amount, false),
            Assigned::AlreadyCredited(_, record) => (record.payment.tx, &record.plan_id, Credits::ZERO, true),
        };
        Self {
            org_id: account.id.to_string(),
            credit_balance: account.totals.balance,
            amount_added,
            total_credits_purchased: account.totals.purchased,
            plan_id: plan_id.clone(),
            tx_hash: hash.to_string(),
            chain_id,
            already_credited,
            details: None,
        }
    }
}

impl AssignmentDocument {
    /// The document with its details.
    #[must_use]
    pub fn with_details(assigned: &Assigned) -> Self {
        let (paid, used_for, quote) = match assigned {
            Assigned::Credited(credited) => (Some(credited.paid.clone()), None, credited.quote.as_ref()),
            Assigned::AlreadyCredited(_, record) => (None, Some(use_of(record)), None),
        };
        let account = assigned.account().into();
        let details = AssignmentDetails { account, paid, used_for, quote: quote.map(QuotedDocument::from) };
        Self { details: Some(details), ..Self::from(assigned) }
    }
}
