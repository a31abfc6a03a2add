//! The sections whose records are rows of a table each.

use std::sync::Arc;

use metering_core::access::{AccountAction, BrowserSession, Invitation, Member, SecretRecord, SignInProof};
use metering_core::events::{Event, SentUsage, UsageSink, Webhook};
use metering_core::money::{LedgerEntry, Refill};
use metering_core::oauth::{Grant, OAuthClient};
use metering_core::offers::AuthorizationRecord;
use metering_core::operators::{AuditId, AuditOutcome, NewAuditEntry, Operator};
use metering_core::payments::{
    AutoTopUp, BuyerRecord, Challenge, IssuedReceipt, PaymentRecord, Plan, ProcessorReversal, Quote,
    ReceiptTermsRecord, RecipientRecord, TopUpCharge, UnclaimedPayment, UnreadableArrival,
};
use metering_core::prices::PriceVersion;
use metering_core::signups::{EmailLink, SignupSession};
use metering_core::store::{ChildAccount, CreditMove};

use crate::executor::Executor;
use crate::fault::Result;
use crate::keys;
use crate::record::Record as Stored;
use crate::row::Row;
use crate::table::Table;
use crate::transfer::record::{
    DeliveryRecord, GasPlacesRecord, IdempotencyRecord, ScanMark, SolutionRecord, VolumeRecord, WalletLink,
};
use crate::transfer::section::{Record, Section};
use crate::value::Value;

/// A section whose records are rows of a table.
pub(super) struct Rows {
    pub(super) table: Table,
    /// The columns that the section is ordered by; together they are unique for each row.
    pub(super) keys: &'static [&'static str],
    pub(super) read: fn(&mut dyn Executor, &Row) -> Result<Record>,
    /// The columns of a record; `None` if it is of another section.
    pub(super) values: fn(&Record) -> Option<Result<Vec<Value>>>,
}

macro_rules! rows {
    ($kind:ident, $record:ty, $keys:expr) => {
        Some(Rows {
            table: <$record as Stored>::TABLE,
            keys: &$keys,
            read: |_, row| Ok(Record::$kind(<$record as Stored>::of_row(row)?.into())),
            values: |record| match record {
                Record::$kind(record) => Some(<$record as Stored>::values(record)),
                _ => None,
            },
        })
    };
}

/// A version with its catalogue.
type Price = (PriceVersion, Arc<str>);

impl Rows {
    /// The rows of a section; `None` if its records are more than rows of one table.
    pub(super) fn of(section: Section) -> Option<Self> {
        match section {
            Section::Idempotency => rows!(Idempotency, IdempotencyRecord, ["account", "request_id {bytes}"]),
            Section::Volumes => {
                rows!(Volume, VolumeRecord, ["account", "route_template {bytes}", "http_method {bytes}"])
            }
            Section::Refills => rows!(Refill, Refill, ["id"]),
            Section::Plans => rows!(Plan, Plan, ["chain_id", "id {bytes}"]),
            Section::Payments => rows!(Payment, PaymentRecord, ["id"]),
            Section::Reversals => {
                rows!(Reversal, ProcessorReversal, ["processor {bytes}", "reversal_id {bytes}"])
            }
            Section::ReceiptTerms => rows!(ReceiptTerms, ReceiptTermsRecord, ["id"]),
            Section::IssuedReceipts => rows!(IssuedReceipt, IssuedReceipt, ["chain_id", "tx_hash", "part"]),
            Section::Buyers => rows!(Buyer, BuyerRecord, ["account", "since"]),
            Section::AutoTopUps => rows!(AutoTopUp, AutoTopUp, ["account"]),
            Section::TopUpCharges => rows!(TopUpCharge, TopUpCharge, ["id"]),
            Section::Authorizations => {
                rows!(Authorization, AuthorizationRecord, ["chain_id", "token", "payer", "nonce"])
            }
            Section::GasPlaces => rows!(GasPlaces, GasPlacesRecord, ["chain_id", "wallet"]),
            Section::Quotes => rows!(Quote, Quote, ["nonce"]),
            Section::Links => rows!(Link, WalletLink, ["id"]),
            Section::Challenges => rows!(Challenge, Challenge, ["nonce {bytes}"]),
            Section::ScanMarks => rows!(ScanMark, ScanMark, ["chain_id"]),
            Section::Recipients => rows!(Recipient, RecipientRecord, ["chain_id", "recipient"]),
            Section::Unreadable => rows!(Unreadable, UnreadableArrival, ["chain_id", "block", "tx_hash"]),
            Section::Unclaimed => {
                rows!(Unclaimed, UnclaimedPayment, ["chain_id", "tx_hash", "token", "recipient", "block"])
            }
            // The operator's own one comes first.
            Section::Webhooks => rows!(Webhook, Webhook, ["coalesce(webhook.account, 0)", "webhook.id"]),
            Section::Events => rows!(Event, Event, ["number"]),
            Section::Deliveries => rows!(Delivery, DeliveryRecord, ["id"]),
            Section::UsageSinks => rows!(UsageSink, UsageSink, ["name {bytes}"]),
            Section::SentUsage => rows!(
                SentUsage,
                SentUsage,
                [
                    "sink {bytes}",
                    "day",
                    "account",
                    "route_template {bytes}",
                    "http_method {bytes}",
                    "source {bytes}",
                    "key"
                ]
            ),
            Section::Signups => rows!(Signup, SignupSession, ["token"]),
            Section::Solutions => rows!(Solution, SolutionRecord, ["solution"]),
            Section::EmailLinks => rows!(EmailLink, EmailLink, ["token"]),
            Section::BrowserSessions => rows!(BrowserSession, BrowserSession, ["token"]),
            Section::Members => rows!(Member, Member, ["account_member.id"]),
            Section::Invitations => rows!(Invitation, Invitation, ["invitation.id"]),
            Section::SignIns => rows!(SignIn, SignInProof, ["token"]),
            Section::AccountLogs => rows!(AccountAction, AccountAction, ["account", "number"]),
            Section::ChildAccounts => rows!(Child, ChildAccount, ["account"]),
            Section::CreditMoves => rows!(Move, CreditMove, ["parent", "request"]),
            Section::OAuthClients => rows!(OAuthClient, OAuthClient, ["id {bytes}"]),
            Section::OAuthGrants => rows!(OAuthGrant, Grant, ["id"]),
            Section::Operators => rows!(Operator, Operator, ["name {bytes}"]),
            Section::Prices => Some(Rows {
                table: Price::TABLE,
                keys: &["number"],
                read: |_, row| Price::of_row(row).map(|(version, text)| Record::Price(Box::new(version), text)),
                values: |record| match record {
                    Record::Price(version, text) => Some((PriceVersion::clone(version), Arc::clone(text)).values()),
                    _ => None,
                },
            }),
            Section::Secrets => rows!(Secret, SecretRecord, ["hash"]),
            Section::Accounts
            | Section::Keys
            | Section::Ledger
            | Section::Usage
            | Section::Activity
            | Section::Holds
            | Section::AuditLog => None,
        }
    }
}

/// The tables with a store's data, except usage lines: unused ones are harmless.
#[must_use]
pub fn tables() -> Vec<&'static str> {
    let of_section = |section| match section {
        Section::Accounts => vec!["account", "meter"],
        Section::Keys => keys::TABLE_NAMES.to_vec(),
        Section::Ledger => vec![LedgerEntry::TABLE.name],
        Section::Usage => vec!["usage_daily"],
        Section::Activity => vec!["{activity}"],
        Section::Holds => vec!["hold"],
        Section::Authorizations => vec![AuthorizationRecord::TABLE.name, "authorization_submission"],
        Section::GasPlaces => vec![GasPlacesRecord::TABLE.name, "free_gas_place"],
        Section::AuditLog => {
            vec![<(AuditId, NewAuditEntry)>::TABLE.name, <(AuditId, AuditOutcome)>::TABLE.name]
        }
        section => Rows::of(section).map(|rows| rows.table.name).into_iter().collect(),
    };
    Section::ALL.into_iter().flat_map(of_section).collect()
}
