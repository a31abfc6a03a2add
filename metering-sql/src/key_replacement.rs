//! Replaces the keys of an account whose owner proved to be its owner otherwise: by wallet, by email, or to the operator.

use metering_core::access::KeyHash;
use metering_core::backend::decision::{self, KeyChanges, KeyFacts};
use metering_core::{Account, AccountId, Timestamp};

use crate::executor::Executor;
use crate::fault::Result;
use crate::{accounts, keys, quotes};

/// Replaces the keys of an account that can manage keys.
pub async fn replace(
    db: &mut dyn Executor,
    id: &AccountId,
    secret: &KeyHash,
    now: Timestamp,
) -> Result<Option<Account>> {
    let facts = facts(db, id, secret).await?;
    match decision::replace_key(facts, *secret, now)? {
        Some(changes) => write(db, &changes).await.map(Some),
        None => Ok(None),
    }
}

/// The data that is read before the keys of an account are replaced. Charges do not change the account until the
/// transaction ends.
pub async fn facts(db: &mut dyn Executor, id: &AccountId, secret: &KeyHash) -> Result<KeyFacts<i64>> {
    let account = accounts::locked(db, id).await?;
    let keys = match &account {
        Some((row, _)) => keys::all_unrevoked(db, *row).await?,
        None => Vec::new(),
    };
    Ok(KeyFacts { account, keys, key_in_use: keys::is_secret_in_use(db, secret).await? })
}

/// Writes an account's new keys. This also counts as delivery of the key that the account's quote promised.
pub async fn write(db: &mut dyn Executor, changes: &KeyChanges<i64>) -> Result<Account> {
    quotes::key_given_out(db, changes.row).await?;
    for change in &changes.keys {
        keys::write(db, change).await?;
    }
    db.settings_changed(changes.row).await?;
    Ok(changes.account.clone())
}
