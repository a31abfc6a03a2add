//! Operators, by name and by token.

use metering_core::Timestamp;
use metering_core::backend::decision::{self, Decided, OperatorFacts};
use metering_core::operators::{NewOperator, Operator, OperatorName, OperatorTokenHash};
use rusqlite::{Connection, Row, params};

use crate::error::{Result, store_error};
use crate::rows::{all, first, parse, timestamp};

/// The columns that [`operator`] reads.
pub(crate) const COLUMNS: &str = "name, role, token, created_at, revoked_at";

/// Creates an operator; `None` when the name is in use.
pub(crate) fn create(connection: &Connection, new: NewOperator) -> Result<Option<Operator>> {
    let facts = OperatorFacts {
        name_in_use: by_name(connection, &new.name)?.is_some(),
        token_in_use: token_in_use(connection, &new.token)?,
    };
    let Some(operator) = decision::create_operator(new, facts)? else { return Ok(None) };
    let sql = "INSERT INTO operator (name, role, token, created_at) VALUES (?1, ?2, ?3, ?4)";
    let Operator { name, role, token, created_at, .. } = &operator;
    let values = params![name.as_str(), role.as_str(), token.as_bytes(), created_at.unix_millis()];
    connection.prepare_cached(sql).and_then(|mut s| s.execute(values)).map_err(store_error)?;
    Ok(Some(operator))
}

/// The operator with this token, unless revoked.
pub(crate) fn by_token(connection: &Connection, token: &OperatorTokenHash) -> Result<Option<Operator>> {
    let sql = format!("SELECT {COLUMNS} FROM operator WHERE token = ?1 AND revoked_at IS NULL");
    let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
    first(&mut statement, [token.as_bytes()], operator)
}

/// All operators, by the bytes of their names.
pub(crate) fn list(connection: &Connection) -> Result<Vec<Operator>> {
    let sql = format!("SELECT {COLUMNS} FROM operator ORDER BY name");
    let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
    all(&mut statement, [], operator)
}

/// Revokes an operator, unless already revoked.
pub(crate) fn revoke(connection: &Connection, name: &OperatorName, now: Timestamp) -> Result<Option<Operator>> {
    let revoked = match decision::revoke_operator(by_name(connection, name)?, now) {
        Decided::Accepted(revoked) => revoked,
        Decided::Refused(unchanged) => return Ok(unchanged),
    };
    let sql = "UPDATE operator SET revoked_at = ?2 WHERE name = ?1";
    connection.execute(sql, params![name.as_str(), now.unix_millis()]).map_err(store_error)?;
    Ok(Some(revoked))
}

/// Gives an operator another token, unless revoked.
pub(crate) fn rotate_token(
    connection: &Connection,
    name: &OperatorName,
    token: OperatorTokenHash,
) -> Result<Option<Operator>> {
    let in_use = token_in_use(connection, &token)?;
    let rotated = decision::rotate_operator_token(by_name(connection, name)?, token, in_use)?;
    if rotated.is_some() {
        let sql = "UPDATE operator SET token = ?2 WHERE name = ?1";
        connection.execute(sql, params![name.as_str(), token.as_bytes()]).map_err(store_error)?;
    }
    Ok(rotated)
}

fn by_name(connection: &Connection, name: &OperatorName) -> Result<Option<Operator>> {
    let sql = format!("SELECT {COLUMNS} FROM operator WHERE name = ?1");
    let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
    first(&mut statement, [name.as_str()], operator)
}

fn token_in_use(connection: &Connection, token: &OperatorTokenHash) -> Result<bool> {
    let sql = "SELECT 1 FROM operator WHERE token = ?1";
    connection.prepare_cached(sql).and_then(|mut s| s.exists([token.as_bytes()])).map_err(store_error)
}

/// Reads an operator.
pub(crate) fn operator(row: &Row<'_>) -> rusqlite::Result<Result<Operator>> {
    let (name, role): (String, String) = (row.get(0)?, row.get(1)?);
    let (token, created_at) = (OperatorTokenHash::from_bytes(row.get(2)?), timestamp(row, 3)?);
    let revoked_at = row.get::<_, Option<i64>>(4)?.map(Timestamp::from_unix_millis);
    let read = || Ok(Operator { name: parse(&name)?, role: parse(&role)?, token, created_at, revoked_at });
    Ok(read())
}
