//! Lists for operators, newest first.

use metering_core::backend::{one_more_than, page_of_rows};
use metering_core::money::LedgerEntry;
use metering_core::operators::{AccountFilter, AccountState, PaymentFilter, PaymentState, Period};
use metering_core::payments::PaymentRecord;
use metering_core::store::{Cursor, Page};
use metering_core::{Account, AccountId};

use crate::conditions::Conditions;
use crate::executor::Executor;
use crate::fault::Result;
use crate::record::{Record, list};
use crate::row::{Row, only};
use crate::{accounts, events, values};

/// How many accounts a page with a filter reads. No index has times of creation, and many accounts may share a name.
const WINDOW: i64 = 50_000;

/// The oldest of the accounts that a page with a filter reads before a given one, and their number.
const OLDEST_OF_WINDOW: &str =
    "SELECT min(id), count(*) FROM (SELECT id FROM account WHERE id < ?1 ORDER BY id DESC LIMIT ?2) newest";

/// At most this many accounts are found by their name alone. If more have it, some of them are among the newest accounts.
const FEW: u32 = 1_000;

/// The accounts before one whose names are in a range. The `+` keeps databases from using the index of ids.
pub const NAMED: &str = "SELECT a.id FROM account a WHERE lower(a.agent_name {bytes}) >= ?1 \
     AND lower(a.agent_name {bytes}) < ?2 AND +a.id < ?3 LIMIT ?4";

/// Accounts before a cursor, at most `limit`.
pub async fn accounts(
    db: &mut dyn Executor,
    filter: &AccountFilter,
    after: Option<&Cursor>,
    limit: u32,
) -> Result<Page<Account>> {
    let before = events::before(after)?;
    let mut conditions = Conditions::new("a.id < ?1", values![before, one_more_than(limit)]);
    let mut rest = None;
    if let Some(ids) = few_named(db, filter, before).await? {
        conditions.one_of("a.id", &ids);
    } else if !filter.is_open() {
        let rows = db.query(OLDEST_OF_WINDOW, &values![before, WINDOW]).await?;
        let row = only(&rows)?;
        let (oldest, count): (Option<i64>, i64) = (row.get(0)?, row.get(1)?);
        let Some(oldest) = oldest else { return Ok(page_of_rows(Vec::new(), limit)) };
        conditions.and(&format!("a.id >= {oldest}"));
        rest = (count == WINDOW).then(|| Cursor::new(oldest.to_string()));
    }
    if let Some(prefix) = &filter.name_prefix {
        // Names are ASCII. The length is a literal, because PostgreSQL wants another type there than that of parameters.
        let start = format!("lower(substr(a.agent_name, 1, {}))", prefix.chars().count());
        conditions.equals(&start, Some(&prefix.to_lowercase()));
    }
    conditions.within("a.created_at", filter.created);
    match filter.state {
        None => {}
        Some(AccountState::Active) => conditions.and("a.revoked_at IS NULL"),
        Some(AccountState::Revoked) => conditions.and("a.revoked_at IS NOT NULL"),
    }
    let condition = format!("{} ORDER BY a.id DESC LIMIT ?2", conditions.sql());
    let Page { items, next } = page_of_rows(accounts::select(db, &condition, conditions.values()).await?, limit);
    Ok(Page { items, next: next.or(rest) })
}

/// The accounts before one whose names start with the filter's prefix; `None` without a prefix, or if there are many.
async fn few_named(db: &mut dyn Executor, filter: &AccountFilter, before: i64) -> Result<Option<Vec<i64>>> {
    let Some(prefix) = &filter.name_prefix else { return Ok(None) };
    let first = prefix.to_lowercase();
    // Names are ASCII, so all that start with it are below this.
    let end = format!("{first}\u{7f}");
    let rows = db.query(NAMED, &values![first, end, before, FEW + 1]).await?;
    let ids = rows.iter().map(|row| row.get(0)).collect::<Result<Vec<i64>>>()?;
    Ok(u32::try_from(ids.len()).is_ok_and(|count| count <= FEW).then_some(ids))
}

/// Credited payments before a cursor, at most `limit`.
pub async fn payments(
    db: &mut dyn Executor,
    filter: &PaymentFilter,
    after: Option<&Cursor>,
    limit: u32,
) -> Result<Page<PaymentRecord>> {
    let mut conditions = Conditions::new("id < ?1", values![events::before(after)?, one_more_than(limit)]);
    conditions.within("recorded_at", filter.recorded);
    match filter.state {
        None => {}
        // In the words of the partial index of payments that are not final.
        Some(PaymentState::Unsettled) => conditions.and("settlement <> 'final' AND settlement = 'unsettled'"),
        Some(PaymentState::Reversed) => conditions.and("settlement <> 'final' AND settlement = 'reversed'"),
        Some(PaymentState::Final) => conditions.and("settlement = 'final'"),
    }
    conditions.of_account("account", filter.account.as_ref());
    conditions.equals("chain_id", filter.chain_id.as_ref());
    let (columns, condition) = (PaymentRecord::TABLE.column_list(), conditions.sql());
    let sql = format!("SELECT {columns}, id FROM payment WHERE {condition} ORDER BY id DESC LIMIT ?2");
    let read = |row: &Row| Ok((row.get(PaymentRecord::TABLE.columns.len())?, PaymentRecord::of_row(row)?));
    let rows = db.query(&sql, conditions.values()).await?.iter().map(read).collect::<Result<_>>()?;
    Ok(page_of_rows(rows, limit))
}

/// Payments of processors that were credited when their accounts were revoked already, and are not reversed.
const OF_REVOKED: &str = "WHERE payment.chain_id = 0 AND payment.processor IS NOT NULL AND payment.settlement = 'final' AND EXISTS ( \
       SELECT 1 FROM account a WHERE a.id = payment.account AND a.revoked_at <= payment.recorded_at) \
     ORDER BY payment.id DESC LIMIT ?1";

/// The newest payments to refund, because their accounts are revoked, at most `limit`.
pub async fn payments_of_revoked(db: &mut dyn Executor, limit: u32) -> Result<Vec<PaymentRecord>> {
    list(db, OF_REVOKED, &values![limit]).await
}

/// Entries of one account before an id, at most `limit`. As in [`LISTED`](crate::ledger::LISTED), the account's own numbers
/// of its entries are in an index.
pub async fn entries(
    db: &mut dyn Executor,
    account: &AccountId,
    written: Period,
    after: Option<&Cursor>,
    limit: u32,
) -> Result<Page<LedgerEntry>> {
    let listed = "ledger.account = (SELECT a.id FROM account a WHERE a.org_id = ?1) AND ledger.id < ?2 \
         AND ledger.{entry} < coalesce((SELECT e.{entry} FROM ledger e WHERE e.id = ?2 \
           AND e.account = (SELECT a.id FROM account a WHERE a.org_id = ?1)), 9223372036854775807)";
    let mut conditions = Conditions::new(listed, values![account, events::before(after)?, one_more_than(limit)]);
    conditions.within("ledger.created_at", written);
    let rest = format!("WHERE {} ORDER BY ledger.{{entry}} DESC LIMIT ?3", conditions.sql());
    let found: Vec<LedgerEntry> = list(db, &rest, conditions.values()).await?;
    Ok(page_of_rows(found.into_iter().map(|entry| (entry.id, entry)).collect(), limit))
}
