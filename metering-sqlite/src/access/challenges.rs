use metering_core::access::KeyHash;
use metering_core::backend::decision;
use metering_core::{Account, Timestamp};
use metering_sql::challenges;

use crate::access::key_changes;
use crate::error::Result;
use crate::journal::Snapshot;
use crate::script::Statements;

/// Uses up a challenge and replaces the key of its account.
pub(crate) fn rotate_key(
    snapshot: &Snapshot<'_>,
    nonce: &str,
    key: KeyHash,
    now: Timestamp,
) -> Result<Option<Account>> {
    let db = &mut Statements::new(snapshot);
    let Some(challenge) = metering_sql::now(challenges::by_nonce(db, nonce))? else { return Ok(None) };
    let facts = key_changes::replace_facts(snapshot, &challenge.account, &key)?;
    match decision::rotate_key(&challenge, facts, key, now)? {
        Some(changes) => {
            metering_sql::now(challenges::delete(db, nonce))?;
            key_changes::write_all(snapshot, changes).map(Some)
        }
        None => Ok(None),
    }
}
