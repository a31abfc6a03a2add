use metering_core::access::KeyHash;
use metering_core::backend::decision;
use metering_core::{Account, Timestamp};
use metering_sql::challenges;

use crate::access::accounts;
use crate::error::Result;
use crate::script::Statements;
use crate::transactions::serialized::SerializedWrite;

/// Uses up a challenge and replaces the key of its account.
pub(crate) async fn rotate_key(
    write: &SerializedWrite<'_>,
    nonce: &str,
    key: KeyHash,
    now: Timestamp,
) -> Result<Option<Account>> {
    let db = &mut Statements(write.client());
    let Some(challenge) = challenges::by_nonce(db, nonce).await? else { return Ok(None) };
    let facts = accounts::key_facts(write.client(), &challenge.account, &key).await?;
    let Some(changes) = decision::rotate_key(&challenge, facts, key, now)? else { return Ok(None) };
    challenges::delete(db, nonce).await?;
    accounts::write_keys(write, changes).await.map(Some)
}
