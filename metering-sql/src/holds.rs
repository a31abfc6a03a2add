//! Reads holds. Commits write them.

use std::sync::Arc;

use metering_core::charging::{Hold, HoldId, SettledHold};
use metering_core::{AccountId, ClientSource, Timestamp, UsageLine};

use crate::executor::Executor;
use crate::fault::Result;
use crate::row::Row;
use crate::value::Value;
use crate::values;

/// The columns of a hold: from `hold h`, its account `a` and its usage line `n`.
pub const COLUMNS: &str = "h.id, a.org_id, h.key, h.amount, h.fallback, n.route_template, n.http_method, n.source, \
     h.request_path, h.created_at, h.expires_at, h.captured, h.reason, h.settled_at, h.tokens, h.upstream";

/// Holds with their accounts and usage lines.
pub(crate) const TABLES: &str = "hold h {join} account a ON a.id = h.account {join} usage_line n ON n.id = h.line";

/// The condition for one hold.
pub const BY_ID: &str = "h.id = ?1";

/// The condition for the open holds of an account, newest first.
pub const NEWEST_OPEN: &str = "h.account = (SELECT id FROM account WHERE org_id = ?1) AND h.settled_at IS NULL \
     ORDER BY h.created_at DESC, h.id DESC LIMIT ?2";

/// The condition for the open holds whose lease has ended, in the order in which the leases ended.
pub const EXPIRED: &str = "h.expires_at <= ?1 AND h.settled_at IS NULL ORDER BY h.expires_at, h.id LIMIT ?2";

/// The query for the holds that match. The row numbers of their accounts are the last column.
#[must_use]
pub fn select(condition: &str) -> String {
    format!("SELECT {COLUMNS}, h.account FROM {TABLES} WHERE {condition}")
}

async fn list(db: &mut dyn Executor, condition: &str, values: &[Value]) -> Result<Vec<Hold>> {
    db.query(&select(condition), values).await?.iter().map(hold).collect()
}

/// The hold with this id, open or settled.
pub async fn by_id(db: &mut dyn Executor, id: &HoldId) -> Result<Option<Hold>> {
    Ok(list(db, BY_ID, &values![id]).await?.pop())
}

/// The open holds of an account, newest first, at most `limit`.
pub async fn newest_open(db: &mut dyn Executor, account: &AccountId, limit: u32) -> Result<Vec<Hold>> {
    list(db, NEWEST_OPEN, &values![account, limit]).await
}

/// The open holds whose lease has ended at `now`, in the order in which the leases ended, at most `limit`.
pub async fn expired(db: &mut dyn Executor, now: Timestamp, limit: u32) -> Result<Vec<Hold>> {
    list(db, EXPIRED, &values![now, limit]).await
}

pub(crate) fn hold(row: &Row) -> Result<Hold> {
    let text = |column| Ok::<Arc<str>, crate::Fault>(row.get::<String>(column)?.into());
    let source = ClientSource::from_name(&text(7)?);
    let line = UsageLine { route_template: text(5)?, http_method: text(6)?, source };
    // PostgreSQL stores no path that is the template of the route.
    let path: Option<String> = row.get(8)?;
    let request_path = path.map_or_else(|| Arc::clone(&line.route_template), Into::into);
    // The schema ensures that all three are set or none is.
    let settled = match (row.get(11)?, row.get(12)?, row.get(13)?) {
        (Some(captured), Some(reason), Some(at)) => Some(SettledHold { captured, reason, at }),
        _ => None,
    };
    Ok(Hold {
        id: row.get(0)?,
        account: row.get(1)?,
        key: row.get(2)?,
        amount: row.get(3)?,
        fallback: row.get(4)?,
        line,
        request_path,
        created_at: row.get(9)?,
        expires_at: row.get(10)?,
        settled,
        tokens: row.get(14)?,
        upstream: row.get::<Option<String>>(15)?.map(Into::into),
    })
}
