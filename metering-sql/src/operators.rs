//! Operators, by name and by token.

use metering_core::Timestamp;
use metering_core::backend::decision::{self, Decided, OperatorFacts};
use metering_core::operators::{NewOperator, Operator, OperatorName, OperatorTokenHash};

use crate::executor::Executor;
use crate::fault::Result;
use crate::record::{self, find, insert, table};
use crate::values;

table! {
    "operator" by ["name"] of Operator {
        Own(name), Own(role), Own(token), Own(created_at), Own(revoked_at)
    }
}

/// Creates an operator; `None` when the name is in use.
pub async fn create(db: &mut dyn Executor, new: &NewOperator) -> Result<Option<Operator>> {
    let facts = OperatorFacts {
        name_in_use: by_name(db, &new.name).await?.is_some(),
        token_in_use: token_in_use(db, &new.token).await?,
    };
    let Some(operator) = decision::create_operator(new.clone(), facts)? else { return Ok(None) };
    insert(db, std::slice::from_ref(&operator)).await?;
    Ok(Some(operator))
}

/// The operator with this token, unless revoked.
pub async fn by_token(db: &mut dyn Executor, token: &OperatorTokenHash) -> Result<Option<Operator>> {
    find(db, "WHERE token = ?1 AND revoked_at IS NULL", &values![token]).await
}

/// All operators, by the bytes of their names.
pub async fn list(db: &mut dyn Executor) -> Result<Vec<Operator>> {
    record::list(db, "ORDER BY name {bytes}", &[]).await
}

/// Revokes an operator, unless already revoked.
pub async fn revoke(db: &mut dyn Executor, name: &OperatorName, now: Timestamp) -> Result<Option<Operator>> {
    let revoked = match decision::revoke_operator(by_name(db, name).await?, now) {
        Decided::Accepted(revoked) => revoked,
        Decided::Refused(unchanged) => return Ok(unchanged),
    };
    record::set::<Operator>(db, &["revoked_at"], &[values![name, now]]).await?;
    Ok(Some(revoked))
}

/// Gives an operator another token, unless revoked.
pub async fn rotate_token(
    db: &mut dyn Executor,
    name: &OperatorName,
    token: OperatorTokenHash,
) -> Result<Option<Operator>> {
    let in_use = token_in_use(db, &token).await?;
    let rotated = decision::rotate_operator_token(by_name(db, name).await?, token, in_use)?;
    if rotated.is_some() {
        record::set::<Operator>(db, &["token"], &[values![name, token]]).await?;
    }
    Ok(rotated)
}

async fn by_name(db: &mut dyn Executor, name: &OperatorName) -> Result<Option<Operator>> {
    find(db, "WHERE name = ?1", &values![name]).await
}

/// Whether any operator, revoked or not, has this token.
async fn token_in_use(db: &mut dyn Executor, token: &OperatorTokenHash) -> Result<bool> {
    Ok(find::<Operator>(db, "WHERE token = ?1", &values![token]).await?.is_some())
}
