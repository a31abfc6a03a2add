//! Reads the database of a service with the same wire protocol, to import its accounts (`metering admin import`).
//!
//! The file is opened read-only. Rows are read one at a time, in one snapshot.

use std::collections::HashSet;
use std::path::Path;

use metering_core::StoreError;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags, Params, Row, Statement, params};

use super::books::UsageSign;
use super::cell::Cell;
use super::quotes::AgentHubQuote;
use super::rows::{AgentHubKey, AgentHubTransaction};
use crate::finding::{ImportFinding, ImportFindingKind};

type Result<T> = std::result::Result<T, StoreError>;

/// The columns of `api_keys` that must exist.
const KEY_COLUMNS: [&str; 6] =
    ["id", "api_key_hash", "credit_balance", "total_credits_purchased", "total_credits_used", "created_at"];
/// The columns of `credit_transactions` that must exist.
const TRANSACTION_COLUMNS: [&str; 5] = ["id", "api_key_id", "amount", "type", "created_at"];
const OPTIONAL_TRANSACTION_COLUMNS: [&str; 7] =
    ["description", "http_method", "route_template", "client_source", "tx_hash", "chain_id", "plan_id"];
/// The table of payment quotes, and the columns of it that must exist for quotes to be imported.
const QUOTES: &str = "signup_payment_quotes";
const QUOTE_COLUMNS: [&str; 12] = [
    "id",
    "signup_nonce_hash",
    "agent_name",
    "plan_id",
    "chain_id",
    "token_contract",
    "amount_atomic",
    "payer_address",
    "recipient",
    "created_at",
    "expires_at",
    "consumed_at",
];
/// The longest text that is read. Longer text cannot be a name, route or hash.
const MAX_TEXT: &str = "4096";

/// An `agenthub` database.
///
/// ```
/// use metering_import::AgentHubFile;
///
/// # let folder = tempfile::tempdir()?;
/// # let file = folder.path().join("agenthub.db");
/// # rusqlite::Connection::open(&file)?.execute_batch(
/// #     "CREATE TABLE api_keys (id, api_key_hash, credit_balance, total_credits_purchased, total_credits_used, created_at);
/// #      CREATE TABLE credit_transactions (id, api_key_id, amount, type, created_at);",
/// # )?;
/// let hub = AgentHubFile::open(&file)?;
/// assert!(hub.keys(None, 100)?.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct AgentHubFile {
    connection: Connection,
    /// The query for keys after a row, for the transactions of a key, and for open quotes if there are any.
    keys: String,
    transactions: String,
    quotes: Option<String>,
    /// Whether changes may be missing because they are in a write-ahead log elsewhere.
    lacks_wal: bool,
}

impl AgentHubFile {
    /// Opens a database for reading.
    ///
    /// # Errors
    /// When it cannot be read, or lacks the tables and columns of such a service.
    pub fn open(path: &Path) -> Result<Self> {
        // Check this before opening the database, which may create an empty log.
        let lacks_wal = lacks_wal(path);
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(read_error)?;
        connection.busy_timeout(std::time::Duration::from_secs(5)).map_err(read_error)?;
        let keys = keys_query(&connection)?;
        let transactions = transactions_query(&connection)?;
        let quotes = quotes_query(&connection)?;
        // One snapshot for everything that follows. The index is in a temporary file of this connection: the table may
        // have none, and each key would then read all transactions.
        connection
            .execute_batch(
                "BEGIN;
                 CREATE TEMP TABLE owner AS
                   SELECT CAST(api_key_id AS TEXT) AS key, rowid AS row FROM main.credit_transactions;
                 CREATE INDEX temp.owner_key ON owner (key, row);",
            )
            .map_err(read_error)?;
        Ok(Self { connection, keys, transactions, quotes, lacks_wal })
    }

    /// Whether the database is in WAL mode and came without its `-wal` file. A clean close removes that file; without
    /// one, only that file has the newest changes.
    #[must_use]
    pub const fn lacks_wal(&self) -> bool {
        self.lacks_wal
    }

    /// The quotes that were not claimed, newest first.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn quotes(&self) -> Result<Vec<AgentHubQuote>> {
        let Some(sql) = &self.quotes else { return Ok(Vec::new()) };
        let mut statement = self.connection.prepare(sql).map_err(read_error)?;
        all(&mut statement, [], quote)
    }

    /// Keys after a row number, at most `limit`, with their row numbers.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn keys(&self, after: Option<i64>, limit: u32) -> Result<Vec<(i64, AgentHubKey)>> {
        let mut statement = self.connection.prepare_cached(&self.keys).map_err(read_error)?;
        all(&mut statement, params![after.unwrap_or(i64::MIN), limit], |row| Ok((row.get(0)?, key(row)?)))
    }

    /// Calls `visit` with each transaction of a key, in the order in which they were written.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn each_transaction(&self, key: &str, mut visit: impl FnMut(&AgentHubTransaction)) -> Result<()> {
        let mut statement = self.connection.prepare_cached(&self.transactions).map_err(read_error)?;
        let mut rows = statement.query([key]).map_err(read_error)?;
        while let Some(row) = rows.next().map_err(read_error)? {
            visit(&transaction(row).map_err(read_error)?);
        }
        Ok(())
    }

    /// Which usage is a charge: positive amounts, if no usage is negative and at least one is positive.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn usage_sign(&self) -> Result<UsageSign> {
        let sql = "SELECT EXISTS (SELECT 1 FROM credit_transactions WHERE type = 'usage' AND amount < 0), \
                   EXISTS (SELECT 1 FROM credit_transactions WHERE type = 'usage' AND amount > 0)";
        let read = |row: &Row<'_>| Ok((row.get::<_, bool>(0)?, row.get::<_, bool>(1)?));
        let (negative, positive) = self.connection.query_row(sql, [], read).map_err(read_error)?;
        Ok(if positive && !negative { UsageSign::Positive } else { UsageSign::Negative })
    }

    /// Transactions of keys that do not exist, by key.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn orphans(&self) -> Result<Vec<ImportFinding>> {
        let sql = "SELECT coalesce(key, 'NULL'), count(*) FROM temp.owner WHERE key IS NULL \
                   OR key NOT IN (SELECT CAST(id AS TEXT) FROM api_keys WHERE id IS NOT NULL) GROUP BY key ORDER BY key";
        let mut statement = self.connection.prepare(sql).map_err(read_error)?;
        all(&mut statement, [], |row| {
            let (key, count): (String, i64) = (row.get(0)?, row.get(1)?);
            let detail = format!("{count} transactions of a key that does not exist; they were not imported");
            Ok(ImportFinding::new(format!("api_keys {key}"), ImportFindingKind::OrphanTransaction, detail))
        })
    }
}

/// All rows of a query.
fn all<T>(
    statement: &mut Statement<'_>,
    params: impl Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>> {
    statement.query_map(params, read).and_then(|rows| rows.collect()).map_err(read_error)
}

fn read_error(error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::Corrupt(error.to_string()),
        _ => StoreError::Unavailable(Box::new(error)),
    }
}

fn keys_query(connection: &Connection) -> Result<String> {
    let known = columns(connection, "api_keys", &KEY_COLUMNS)?;
    let sessions = columns(connection, "signup_sessions", &[])?;
    let column = |name: &str| if known.contains(name) { format!("k.{name}") } else { "NULL".to_owned() };
    let has_sessions = known.contains("session_id") && sessions.contains("id");
    let of_session = |name: &str| match has_sessions && sessions.contains(name) {
        true => format!("(SELECT s.{name} FROM signup_sessions s WHERE s.id = k.session_id)"),
        false => "NULL".to_owned(),
    };
    let repeated = match known.contains("org_id") {
        true => "EXISTS (SELECT 1 FROM api_keys o WHERE o.org_id = k.org_id AND o.rowid < k.rowid)",
        false => "0",
    };
    let [session_id, email, org_id] = ["session_id", "email", "org_id"].map(column);
    let [per_minute, per_day, revoked_at, payer] =
        ["rate_limit_rpm", "rate_limit_rpd", "revoked_at", "payer_address"].map(column);
    let (session_name, session_email) = (of_session("agent_name"), of_session("email"));
    let quotes = columns(connection, QUOTES, &[])?;
    let quote_name = match quotes.contains("api_key_id") && quotes.contains("agent_name") {
        true => "(SELECT q.agent_name FROM signup_payment_quotes q WHERE q.api_key_id = k.id LIMIT 1)",
        false => "NULL",
    };
    let exists = if has_sessions { "EXISTS (SELECT 1 FROM signup_sessions s WHERE s.id = k.session_id)" } else { "0" };
    Ok(format!(
        "SELECT k.rowid, k.id, {session_id}, CASE WHEN {exists} THEN coalesce({session_name}, '') END, \
           coalesce({email}, {session_email}), k.api_key_hash, {org_id}, {repeated}, k.credit_balance, \
           k.total_credits_purchased, k.total_credits_used, {per_minute}, {per_day}, k.created_at, {revoked_at}, {payer}, {quote_name} \
         FROM api_keys k WHERE k.rowid > ?1 ORDER BY k.rowid LIMIT ?2"
    ))
}

fn transactions_query(connection: &Connection) -> Result<String> {
    let known = columns(connection, "credit_transactions", &TRANSACTION_COLUMNS)?;
    let optional = OPTIONAL_TRANSACTION_COLUMNS.map(|name| match known.contains(name) {
        true if name == "chain_id" => format!("t.{name}"),
        true => format!("substr(t.{name}, 1, {MAX_TEXT})"),
        false => "NULL".to_owned(),
    });
    Ok(format!(
        "SELECT t.id, t.type, t.amount, t.created_at, {} FROM temp.owner o \
         CROSS JOIN credit_transactions t ON t.rowid = o.row WHERE o.key = ?1 ORDER BY o.row",
        optional.join(", ")
    ))
}

/// The query for open quotes; `None` in a database without them.
fn quotes_query(connection: &Connection) -> Result<Option<String>> {
    let known = columns(connection, QUOTES, &[])?;
    if !QUOTE_COLUMNS.iter().all(|name| known.contains(*name)) {
        return Ok(None);
    }
    let plans = columns(connection, "credit_plans", &[])?;
    let credits = match ["id", "chain_id", "credits"].iter().all(|name| plans.contains(*name)) {
        true => "(SELECT p.credits FROM credit_plans p WHERE p.id = q.plan_id AND p.chain_id = q.chain_id)",
        false => "NULL",
    };
    let column = |name: &str, otherwise: &str| match known.contains(name) {
        true => format!("q.{name}"),
        false => otherwise.to_owned(),
    };
    let (raw, email) = (column("signup_nonce_raw", "NULL"), column("email", "NULL"));
    let kind = column("payment_kind", "'erc20'");
    Ok(Some(format!(
        "SELECT q.id, {raw}, q.signup_nonce_hash, substr(q.agent_name, 1, {MAX_TEXT}), substr({email}, 1, {MAX_TEXT}), \
           q.plan_id, {credits}, q.chain_id, q.token_contract, {kind} = 'native_value', q.amount_atomic, \
           q.payer_address, q.recipient, q.created_at, q.expires_at \
         FROM {QUOTES} q WHERE q.consumed_at IS NULL ORDER BY q.created_at DESC, q.rowid DESC"
    )))
}

/// Whether a database in WAL mode has no log beside it. Bytes 18 and 19 of the file are 2 in that mode (section 1.3.3 of
/// SQLite's file format).
fn lacks_wal(path: &Path) -> bool {
    let mut header = [0; 20];
    let read = std::fs::File::open(path).and_then(|mut file| std::io::Read::read_exact(&mut file, &mut header));
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    read.is_ok() && header[18..] == [2, 2] && !Path::new(&log).exists()
}

/// The columns of a table.
fn columns(connection: &Connection, table: &str, needed: &[&str]) -> Result<HashSet<String>> {
    let mut statement = connection.prepare("SELECT name FROM pragma_table_info(?1)").map_err(read_error)?;
    let known: HashSet<String> = all(&mut statement, [table], |row| row.get(0))?.into_iter().collect();
    match needed.iter().find(|name| !known.contains(**name)) {
        Some(missing) => Err(StoreError::Corrupt(format!(
            "this is no agenthub database: table {table} has no column {missing}; nothing was imported"
        ))),
        None => Ok(known),
    }
}

fn key(row: &Row<'_>) -> rusqlite::Result<AgentHubKey> {
    Ok(AgentHubKey {
        id: text(row, 1)?.unwrap_or_default(),
        session_id: text(row, 2)?,
        session_name: text(row, 3)?,
        email: text(row, 4)?,
        hash: text(row, 5)?.unwrap_or_default(),
        org_id: text(row, 6)?,
        org_id_is_repeated: row.get(7)?,
        balance: cell(row, 8)?,
        purchased: cell(row, 9)?,
        used: cell(row, 10)?,
        per_minute: cell(row, 11)?,
        per_day: cell(row, 12)?,
        created_at: text(row, 13)?,
        revoked_at: text(row, 14)?,
        payer: text(row, 15)?,
        quote_name: text(row, 16)?,
    })
}

fn quote(row: &Row<'_>) -> rusqlite::Result<AgentHubQuote> {
    let needed = |index| Ok::<_, rusqlite::Error>(text(row, index)?.unwrap_or_default());
    Ok(AgentHubQuote {
        id: needed(0)?,
        nonce: text(row, 1)?.map(Into::into),
        nonce_hash: needed(2)?,
        agent_name: needed(3)?,
        email: text(row, 4)?,
        plan_id: needed(5)?,
        credits: cell(row, 6)?,
        chain_id: cell(row, 7)?,
        token: needed(8)?,
        is_native: row.get::<_, Option<bool>>(9)?.unwrap_or(false),
        amount: needed(10)?,
        payer: needed(11)?,
        recipient: needed(12)?,
        created_at: needed(13)?,
        expires_at: needed(14)?,
    })
}

fn transaction(row: &Row<'_>) -> rusqlite::Result<AgentHubTransaction> {
    Ok(AgentHubTransaction {
        id: text(row, 0)?.unwrap_or_default(),
        kind: text(row, 1)?.unwrap_or_default(),
        amount: cell(row, 2)?,
        created_at: text(row, 3)?,
        description: text(row, 4)?,
        http_method: text(row, 5)?,
        route_template: text(row, 6)?,
        client_source: text(row, 7)?,
        tx_hash: text(row, 8)?,
        chain_id: cell(row, 9)?,
        plan_id: text(row, 10)?,
    })
}

fn cell(row: &Row<'_>, index: usize) -> rusqlite::Result<Cell> {
    Ok(match row.get_ref(index)? {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(whole) => Cell::Integer(whole),
        ValueRef::Real(real) => Cell::Real(real.to_bits()),
        ValueRef::Text(text) => Cell::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(_) => Cell::Blob,
    })
}

/// A value as text, whatever its type.
fn text(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<String>> {
    Ok(match row.get_ref(index)? {
        ValueRef::Null => None,
        ValueRef::Integer(whole) => Some(whole.to_string()),
        ValueRef::Real(real) => Some(real.to_string()),
        ValueRef::Text(text) => Some(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
    })
}
