//! A receipt as the service sends it, and as people read it.

use std::fmt::Display;
use std::io::Write;

use metering_core::wire::{CreditNoteDocument, TaxDocument, ValueDocument};
use serde::Deserialize;

use crate::client::money::amount::Amount;
use crate::failure::Failure;
use crate::table::write_pairs;

const ABSENT: &str = "-";

/// The fields read from a receipt.
#[derive(Debug, Deserialize)]
pub(super) struct Receipt {
    pub(super) number: String,
    pub(super) status: String,
    pub(super) issued_at: String,
    seller: Seller,
    customer: Customer,
    /// Services without billing details omit it.
    buyer: Option<Buyer>,
    plan_id: Option<String>,
    plan_label: Option<String>,
    pub(super) credits: Amount,
    bonus_credits: Option<Amount>,
    pub(super) payment: Payment,
    /// Services without tax omit it.
    tax: Option<TaxDocument>,
    /// Services without credit notes omit it.
    #[serde(default)]
    credit_notes: Vec<CreditNoteDocument>,
}

#[derive(Debug, Deserialize)]
struct Seller {
    name: String,
    #[serde(default)]
    address: Vec<String>,
    tax_id: Option<String>,
    contact: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Buyer {
    name: String,
    #[serde(default)]
    address: Vec<String>,
    tax_id: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Customer {
    org_id: String,
    agent_name: String,
    email: Option<String>,
}

/// The payment of a receipt.
#[derive(Debug, Deserialize)]
pub(super) struct Payment {
    chain_id: u64,
    chain_name: Option<String>,
    tx_hash: String,
    explorer_url: Option<String>,
    payer: String,
    recipient: String,
    token_symbol: Option<String>,
    token_contract: String,
    token_amount: Option<String>,
    amount_atomic: String,
    mined_at: String,
    /// Services without exchange rates omit it.
    pub(super) value: Option<ValueDocument>,
}

impl Payment {
    /// The amount paid: in tokens, or in their smallest unit if their decimals are no longer known.
    pub(super) fn paid(&self) -> String {
        let token = self.token_symbol.as_ref().unwrap_or(&self.token_contract);
        match &self.token_amount {
            Some(amount) => format!("{amount} {token}"),
            None => format!("{} units of {token}", self.amount_atomic),
        }
    }
}

impl Receipt {
    /// The plan that was bought, by its name for people.
    pub(super) fn plan(&self) -> &str {
        self.plan_label.as_deref().or(self.plan_id.as_deref()).unwrap_or(ABSENT)
    }

    /// Writes it for people.
    pub(super) fn write(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let Self { seller, customer, buyer, payment, .. } = self;
        let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| ABSENT.to_owned());
        let chain = payment.chain_name.as_ref();
        let chain = chain.map_or_else(|| payment.chain_id.to_string(), |name| format!("{name} ({})", payment.chain_id));
        let (address, paid) = (seller.address.join(", "), payment.paid());
        let value = payment.value.as_ref().map(|value| value.in_words(payment.token_symbol.as_deref()));
        let value = or_none(&value);
        let tax = or_none(&self.tax.as_ref().map(|tax| format!("{} {}", tax.name, tax.in_words())));
        let bonus = self.bonus_credits.as_ref().map_or_else(|| ABSENT.to_owned(), Amount::to_string);
        let (tax_id, contact, email) = (or_none(&seller.tax_id), or_none(&seller.contact), or_none(&customer.email));
        let explorer = or_none(&payment.explorer_url);
        let (buyer, buyer_address, buyer_tax_id) = match buyer {
            Some(buyer) => (buyer.name.as_str(), buyer.address.join(", "), or_none(&buyer.tax_id)),
            None => (ABSENT, ABSENT.to_owned(), ABSENT.to_owned()),
        };
        let plan = self.plan();
        let notes: Vec<String> = self.credit_notes.iter().map(|note| in_words(note, payment)).collect();
        let mut pairs: Vec<(&str, &dyn Display)> = vec![
            ("Receipt", &self.number),
            ("Status", &self.status),
            ("Issued", &self.issued_at),
            ("Seller", &seller.name),
            ("Address", &address),
            ("Tax number", &tax_id),
            ("Contact", &contact),
            ("Buyer", &buyer),
            ("Buyer address", &buyer_address),
            ("Buyer tax number", &buyer_tax_id),
            ("Account", &customer.org_id),
            ("Agent name", &customer.agent_name),
            ("Email", &email),
            ("Plan", &plan),
            ("Credits", &self.credits),
            ("Of these, bonus", &bonus),
            ("Paid", &paid),
            ("Value", &value),
            ("Tax", &tax),
            ("Chain", &chain),
            ("Transaction", &payment.tx_hash),
            ("Explorer", &explorer),
            ("Payer", &payment.payer),
            ("Recipient", &payment.recipient),
            ("Mined", &payment.mined_at),
        ];
        pairs.extend(notes.iter().map(|note| ("Credit note", note as &dyn Display)));
        write_pairs(out, &pairs)
    }
}

/// A credit note in one line: `C-... of 2026-12-01T12:00:00.000Z, 2.5 USDC: Ticket 17`.
fn in_words(note: &CreditNoteDocument, payment: &Payment) -> String {
    let CreditNoteDocument { number, issued_at, reason, cancelled_at, .. } = note;
    let credited = note.credited(payment.token_symbol.as_deref(), &payment.paid());
    let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    let cancelled = cancelled_at.as_ref().map_or_else(String::new, |at| format!(" (cancelled {at})"));
    format!("{number} of {issued_at}, {credited}{why}{cancelled}")
}
