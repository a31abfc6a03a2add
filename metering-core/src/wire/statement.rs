//! Statements: an account's ledger, and its usage by day, route and source. Each is a list that clients page through.

use serde::Serialize;

use crate::access::account::AccountId;
use crate::money::credits::Credits;
use crate::money::ledger::LedgerEntry;
use crate::usage::{DailyTotal, KeyLabels};

/// The response to `GET /credits/ledger`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LedgerDocument {
    /// The account's id.
    pub org_id: String,
    /// Every change of the balance except usage, oldest first.
    pub entries: Vec<LedgerEntryDocument>,
    /// The value of `after` for the entries that follow; null when there are none.
    pub next: Option<i64>,
}

/// An entry of the ledger.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LedgerEntryDocument {
    /// The entry's number; numbers increase with time.
    pub id: i64,
    /// When it was written, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub created_at: String,
    /// `signup_bonus`, `purchase_pay_signup`, `purchase_topup`, `purchase_imported`, `refill`, `adjustment`,
    /// `payment_reversed`, `payment_restored`, `transfer_in` or `transfer_out`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The change of the balance.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub amount: Credits,
    /// A sentence about it.
    pub description: String,
    /// The plan, for purchases.
    pub plan_id: Option<String>,
    /// The payment's chain, for purchases.
    pub chain_id: Option<u64>,
    /// The payment's transaction, for purchases.
    pub tx_hash: Option<String>,
}

/// The response to `GET /credits/usage/daily`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DailyUsageDocument {
    /// The account's id.
    pub org_id: String,
    /// The first UTC day, `YYYY-MM-DD`.
    #[cfg_attr(feature = "openapi", schema(format = Date))]
    pub from: String,
    /// The last UTC day, `YYYY-MM-DD`.
    #[cfg_attr(feature = "openapi", schema(format = Date))]
    pub to: String,
    /// Usage by day, route, method, source and key, oldest day first.
    pub usage: Vec<DailyUsageEntry>,
    /// The value of `from` for the days that follow; null when there are none. A day is never split.
    #[cfg_attr(feature = "openapi", schema(format = Date))]
    pub next: Option<String>,
}

/// The usage of one route on one day, by one kind of client with one key.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DailyUsageEntry {
    /// The UTC day, `YYYY-MM-DD`.
    #[cfg_attr(feature = "openapi", schema(format = Date))]
    pub day: String,
    /// The route's template.
    pub route_template: String,
    /// The model, or the pattern that its price is listed under; only on routes whose models have their own prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The HTTP method.
    pub http_method: String,
    /// Which kind of client made the requests.
    pub client_source: String,
    /// The public id of the key that the requests came with.
    pub key_id: String,
    /// Its name.
    pub key_name: String,
    /// Accepted requests.
    pub calls: u64,
    /// Credits used, minus refunds.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credits_used: Credits,
}

impl LedgerDocument {
    /// Lists some of an account's entries.
    #[must_use]
    pub fn new(account: &AccountId, entries: Vec<LedgerEntry>, next: Option<i64>) -> Self {
        let entries = entries.into_iter().map(LedgerEntryDocument::from).collect();
        Self { org_id: account.to_string(), entries, next }
    }
}

impl From<LedgerEntry> for LedgerEntryDocument {
    fn from(entry: LedgerEntry) -> Self {
        let payment = entry.payment;
        Self {
            id: entry.id,
            created_at: entry.created_at.to_string(),
            kind: entry.kind.as_str().to_owned(),
            amount: entry.amount,
            description: entry.description,
            chain_id: payment.as_ref().map(|payment| payment.tx.chain_id),
            tx_hash: payment.as_ref().map(|payment| payment.tx.hash.to_string()),
            plan_id: payment.and_then(|payment| payment.plan_id),
        }
    }
}

impl DailyUsageEntry {
    /// Converts a daily total. `keys` names its key.
    #[must_use]
    pub fn new(total: DailyTotal, keys: &KeyLabels) -> Self {
        let (key_id, key_name) = keys.id_and_name(total.key);
        Self {
            key_id,
            key_name,
            day: total.day.to_string(),
            route_template: total.line.template().to_owned(),
            model: total.line.model().map(str::to_owned),
            http_method: total.line.http_method.to_string(),
            client_source: total.line.source.as_str().to_owned(),
            calls: total.calls,
            credits_used: total.credits_used,
        }
    }
}
