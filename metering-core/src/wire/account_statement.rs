//! The statement of an account: its lines in the log, each with its proof. Receipts of requests are checked against it.

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;

/// A page of a statement: the response to `GET /statements/{period}`.
///
/// Amounts are whole numbers of atoms, as text: a credit has 7,200,000,000.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AccountStatementDocument {
    /// The account's id.
    pub org_id: String,
    /// The requested day or month.
    pub period: String,
    /// The start of the period, or of the log if that is later.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub from: Timestamp,
    /// The gap between the start of the period and `from`, because the log began in between and follows another one;
    /// absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<StatementGapDocument>,
    /// Until when postings are in it: the end of the period, or the time of the log's last posting.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub until: Timestamp,
    /// Whether the period is over, and all of its postings are in the log.
    pub complete: bool,
    /// The position after which its lines begin; null for the first page.
    pub after: Option<u64>,
    /// The account before the first line; null if there are no lines, and the log does not have it immediately.
    pub opening: Option<AccountStateDocument>,
    /// At most 1,000, in the order of the log.
    pub lines: Vec<StatementLineDocument>,
    /// The account after the last line.
    pub closing: Option<AccountStateDocument>,
    /// The amount held now. Funds are the balance plus held credits.
    pub held: String,
    /// The signed checkpoint of the log (C2SP `tlog-checkpoint`) whose tree has the lines.
    pub checkpoint: String,
    /// A JWS by a key of receipts, over the whole content of the page.
    pub signature: String,
    /// The value of `after` for the lines that follow; null when there are none.
    pub next: Option<u64>,
}

/// The part of a period that is not in a statement: its postings are in the log before, or in none. The first line has
/// the funds after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StatementGapDocument {
    /// The start of the period.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub from: Timestamp,
    /// When the log of the statement began.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub until: Timestamp,
    /// The reason: the store was `restored` from a backup, or `moved` to another database.
    pub reason: String,
    /// The log before, as it ended; null if that is not known.
    pub previous: Option<PreviousLogDocument>,
}

/// A log as it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PreviousLogDocument {
    /// Its origin, as in its checkpoints.
    pub origin: String,
    /// How many entries it had.
    pub size: u64,
    /// The root of their tree, in base64.
    pub root: String,
}

/// An account at a place in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AccountStateDocument {
    /// How many lines it has had: the number of the next one.
    pub number: u64,
    /// Its balance and held credits, in atoms.
    pub funds: String,
}

/// A line of a statement: a leaf of the log. The fields before it repeat the content of `opening`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StatementLineDocument {
    /// Its number in the account: from 0, without gaps.
    pub number: u64,
    /// When it was committed, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub at: String,
    /// `opening` for the funds that the log begins with, `imported` for earlier usage of an imported account, the type of
    /// a ledger entry, or for usage `charged`, `refunded`, `expired` or `released`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The change of the funds, in atoms: below zero for charges.
    pub atoms: String,
    /// The funds after it, in atoms.
    pub funds: String,
    /// The number of the ledger entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<i64>,
    /// The chain of the payment behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain_id: Option<u64>,
    /// The transaction of that payment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tx_hash: Option<String>,
    /// The UTC day that usage is booked on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(format = Date))]
    pub day: Option<String>,
    /// The number of the key, as receipts have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_number: Option<u32>,
    /// How many requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// Method and template of the route, and its model if models have their own prices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
    /// Which kind of client made the requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The committed data, in base64url.
    pub opening: String,
    /// Its salt, in base64url.
    pub salt: String,
    /// Its position in the log.
    pub position: u64,
    /// The inclusion proof (RFC 6962, section 2.1.1): hashes of 32 bytes, in base64url.
    pub path: String,
}
