//! The columns of each export: a heading and how to get its value.

use std::fmt::Display;

use metering_admin::wire::AccountDocument;
use metering_core::money::LedgerEntry;
use metering_core::payments::{ConvertedAmount, PaymentRecord, ProcessorRef};
use metering_core::{Account, Credits};

use super::keyed::KeyedTotal;

/// A record that can be exported as a row.
pub(crate) trait Exported: Sized + 'static {
    /// The columns, in order. They are part of the interface: append new ones at the end.
    const COLUMNS: &'static [Column<Self>];
}

/// A heading and the function that returns its value.
pub(crate) type Column<T> = (&'static str, fn(&T) -> Value);

/// A value before it is formatted as CSV or JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    /// Text that may come from a client.
    Text(String),
    /// A whole number.
    Signed(i64),
    /// A whole number.
    Unsigned(u64),
    /// An amount in credits.
    Credits(Credits),
    /// A JSON document.
    Json(String),
    /// No value.
    Absent,
}

fn text(value: &impl Display) -> Value {
    Value::Text(value.to_string())
}

fn optional(value: Option<&impl Display>) -> Value {
    value.map_or(Value::Absent, text)
}

fn atoms(amount: Credits) -> Value {
    Value::Signed(amount.atoms())
}

impl Exported for Account {
    const COLUMNS: &'static [Column<Self>] = &[
        ("org_id", |account| text(&account.id)),
        ("agent_name", |account| text(&account.agent_name)),
        ("email", |account| optional(account.email.as_ref())),
        ("email_status", |account| optional(AccountDocument::from(account).email_status.as_ref())),
        ("payer_address", |account| optional(account.payer.map(|payer| payer.address).as_ref())),
        ("status", |account| text(&AccountDocument::from(account).status)),
        ("credit_balance", |account| Value::Credits(account.totals.balance)),
        ("credit_balance_atoms", |account| atoms(account.totals.balance)),
        ("total_credits_purchased", |account| Value::Credits(account.totals.purchased)),
        ("total_credits_purchased_atoms", |account| atoms(account.totals.purchased)),
        ("total_credits_granted", |account| Value::Credits(account.totals.granted)),
        ("total_credits_granted_atoms", |account| atoms(account.totals.granted)),
        ("total_credits_used", |account| Value::Credits(account.totals.used)),
        ("total_credits_used_atoms", |account| atoms(account.totals.used)),
        ("requests_per_minute", |account| Value::Unsigned(account.limits.requests_per_minute.into())),
        ("requests_per_day", |account| Value::Unsigned(account.limits.requests_per_day.into())),
        ("tokens_per_minute", |account| Value::Unsigned(account.tokens_per_minute.into())),
        ("created_at", |account| text(&account.created_at)),
        ("revoked_at", |account| optional(account.revoked_at.as_ref())),
        ("credits_held", |account| Value::Credits(account.totals.held)),
        ("credits_held_atoms", |account| atoms(account.totals.held)),
    ];
}

impl Exported for LedgerEntry {
    const COLUMNS: &'static [Column<Self>] = &[
        ("id", |entry| Value::Signed(entry.id)),
        ("org_id", |entry| text(&entry.account)),
        ("type", |entry| text(&entry.kind.as_str())),
        ("amount", |entry| Value::Credits(entry.amount)),
        ("amount_atoms", |entry| atoms(entry.amount)),
        ("description", |entry| text(&entry.description)),
        ("created_at", |entry| text(&entry.created_at)),
        ("tx_hash", |entry| optional(entry.payment.as_ref().map(|paid| paid.tx.hash).as_ref())),
        ("chain_id", |entry| entry.payment.as_ref().map_or(Value::Absent, |paid| Value::Unsigned(paid.tx.chain_id))),
        ("plan_id", |entry| optional(entry.payment.as_ref().and_then(|paid| paid.plan_id.as_ref()))),
    ];
}

impl Exported for KeyedTotal {
    const COLUMNS: &'static [Column<Self>] = &[
        ("org_id", |row| text(&row.total.account)),
        ("day", |row| text(&row.total.day)),
        ("route_template", |row| text(&row.total.line.template())),
        ("http_method", |row| text(&row.total.line.http_method)),
        ("client_source", |row| text(&row.total.line.source.as_str())),
        ("calls", |row| Value::Unsigned(row.total.calls)),
        ("credits_used", |row| Value::Credits(row.total.credits_used)),
        ("credits_used_atoms", |row| atoms(row.total.credits_used)),
        ("key_id", |row| text(&row.key.id)),
        ("key_name", |row| text(&row.key.name)),
        ("model", |row| optional(row.total.line.model().as_ref())),
    ];
}

fn converted(record: &PaymentRecord) -> Option<&ConvertedAmount> {
    record.value.as_ref()?.converted.as_ref()
}

impl Exported for PaymentRecord {
    const COLUMNS: &'static [Column<Self>] = &[
        ("chain_id", |record| Value::Unsigned(record.payment.tx.chain_id)),
        ("tx_hash", |record| text(&record.payment.tx.hash)),
        ("block_number", |record| Value::Unsigned(record.payment.block_number)),
        ("mined_at", |record| text(&record.payment.mined_at)),
        ("payer_address", |record| text(&record.payment.payer)),
        ("recipient", |record| text(&record.payment.recipient)),
        ("token_contract", |record| text(&record.payment.token)),
        // As text, because it has more digits than other programs' number types.
        ("amount_atomic", |record| text(&record.payment.amount)),
        ("org_id", |record| text(&record.account)),
        ("used_as", |record| text(&record.used_as.as_str())),
        ("plan_id", |record| optional(record.plan_id.as_ref())),
        ("recorded_at", |record| text(&record.recorded_at)),
        ("state", |record| text(&record.settlement.as_str())),
        ("reversed_at", |record| optional(record.settlement.reversed_at().as_ref())),
        ("value_currency", |record| optional(record.value.as_ref().map(|value| value.currency).as_ref())),
        ("value_amount", |record| optional(converted(record).map(|converted| converted.amount).as_ref())),
        ("value_rate", |record| optional(converted(record).map(|converted| converted.rate).as_ref())),
        ("value_rate_source", |record| optional(converted(record).map(|converted| &converted.source))),
        ("value_rate_as_of", |record| optional(converted(record).map(|converted| converted.as_of).as_ref())),
        ("processor", |record| optional(record.processor.as_ref().map(ProcessorRef::processor).as_ref())),
        ("processor_id", |record| optional(record.processor.as_ref().map(ProcessorRef::id).as_ref())),
    ];
}
