//! Operators, by name and by token.

use metering_core::Timestamp;
use metering_core::backend::decision::{self, Decided, OperatorFacts};
use metering_core::operators::{NewOperator, Operator, OperatorName, OperatorTokenHash};
use tokio_postgres::Row;

use crate::connection::session::GenericClient;
use crate::error::Result;
use crate::rows::{all, bytes, execute, exists, first, parsed, timestamp};
use crate::transactions::serialized::SerializedWrite;

/// The columns that [`operator`] reads.
pub(crate) const COLUMNS: &str = "name, role, token, created_at, revoked_at";

/// Creates an operator; `None` when the name is in use.
pub(crate) async fn create(write: &SerializedWrite<'_>, new: NewOperator) -> Result<Option<Operator>> {
    let client = write.client();
    let token = new.token;
    let facts = OperatorFacts {
        name_in_use: by_name(client, &new.name).await?.is_some(),
        token_in_use: token_in_use(client, &token).await?,
    };
    let Some(operator) = decision::create_operator(new, facts)? else { return Ok(None) };
    let sql = "INSERT INTO operator (name, role, token, created_at) VALUES ($1, $2, $3, $4)";
    let (name, role) = (operator.name.as_str(), operator.role.as_str());
    let created_at = operator.created_at.unix_millis();
    execute(client, sql, &[&name, &role, &token.as_bytes().as_slice(), &created_at]).await?;
    Ok(Some(operator))
}

/// The operator with this token, unless revoked.
pub(crate) async fn by_token<C: GenericClient>(client: &C, token: &OperatorTokenHash) -> Result<Option<Operator>> {
    let sql = format!("SELECT {COLUMNS} FROM operator WHERE token = $1 AND revoked_at IS NULL");
    first(client, &sql, &[&token.as_bytes().as_slice()]).await?.as_ref().map(operator).transpose()
}

/// All operators, by the bytes of their names.
pub(crate) async fn list<C: GenericClient>(client: &C) -> Result<Vec<Operator>> {
    let sql = format!("SELECT {COLUMNS} FROM operator ORDER BY name COLLATE \"C\"");
    all(client, &sql, &[]).await?.iter().map(operator).collect()
}

/// Revokes an operator, unless already revoked.
pub(crate) async fn revoke(
    write: &SerializedWrite<'_>,
    name: &OperatorName,
    now: Timestamp,
) -> Result<Option<Operator>> {
    let revoked = match decision::revoke_operator(by_name(write.client(), name).await?, now) {
        Decided::Accepted(revoked) => revoked,
        Decided::Refused(unchanged) => return Ok(unchanged),
    };
    let sql = "UPDATE operator SET revoked_at = $2 WHERE name = $1";
    execute(write.client(), sql, &[&name.as_str(), &now.unix_millis()]).await?;
    Ok(Some(revoked))
}

/// Gives an operator another token, unless revoked.
pub(crate) async fn rotate_token(
    write: &SerializedWrite<'_>,
    name: &OperatorName,
    token: OperatorTokenHash,
) -> Result<Option<Operator>> {
    let client = write.client();
    let in_use = token_in_use(client, &token).await?;
    let rotated = decision::rotate_operator_token(by_name(client, name).await?, token, in_use)?;
    if rotated.is_some() {
        let sql = "UPDATE operator SET token = $2 WHERE name = $1";
        execute(client, sql, &[&name.as_str(), &token.as_bytes().as_slice()]).await?;
    }
    Ok(rotated)
}

async fn token_in_use<C: GenericClient>(client: &C, token: &OperatorTokenHash) -> Result<bool> {
    exists(client, "SELECT 1 FROM operator WHERE token = $1", &[&token.as_bytes().as_slice()]).await
}

async fn by_name<C: GenericClient>(client: &C, name: &OperatorName) -> Result<Option<Operator>> {
    let sql = format!("SELECT {COLUMNS} FROM operator WHERE name = $1");
    first(client, &sql, &[&name.as_str()]).await?.as_ref().map(operator).transpose()
}

/// Reads an operator.
pub(crate) fn operator(row: &Row) -> Result<Operator> {
    Ok(Operator {
        name: parsed(row, 0)?,
        role: parsed(row, 1)?,
        token: OperatorTokenHash::from_bytes(bytes(row, 2)?),
        created_at: timestamp(row, 3)?,
        revoked_at: row.try_get::<_, Option<i64>>(4)?.map(Timestamp::from_unix_millis),
    })
}
