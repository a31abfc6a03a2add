//! The scripts for accounts, for writes that are not scripts yet.

use metering_core::access::{KeyHash, KeyHolder};
use metering_core::backend::decision::{self, Decided, KeyChangeFacts};
use metering_core::store::KeyChange;
use metering_core::{Account, AccountId, Credits, Timestamp};
use metering_sql::{accounts, quotes};

use crate::access::{key_writes, keys};
use crate::connection::session::GenericClient;
use crate::error::Result;
use crate::script::Statements;
use crate::transactions::serialized::SerializedWrite;

/// The account with this id, and its row number.
pub(crate) async fn by_id<C: GenericClient>(client: &C, id: &AccountId) -> Result<Option<(i64, Account)>> {
    Ok(accounts::by_id(&mut Statements(client), id).await?)
}

/// Like [`by_id`], but also locks the account's meter until the transaction ends, so no charge can come in between.
pub(crate) async fn locked<C: GenericClient>(client: &C, id: &AccountId) -> Result<Option<(i64, Account)>> {
    Ok(accounts::locked(&mut Statements(client), id).await?)
}

/// Rotates the key that has a secret, if that is live. Other writes wait, so it stays live until then.
pub(crate) async fn replace_live_key(
    write: &SerializedWrite<'_>,
    old: &KeyHash,
    secret: KeyHash,
    now: Timestamp,
) -> Result<Option<Account>> {
    let client = write.client();
    let holder = keys::holder(client, old).await?.filter(|holder| holder.is_live(now));
    let Some(KeyHolder { account: Account { id, .. }, chain, .. }) = holder else { return Ok(None) };
    let secret_in_use = keys::is_used(client, &secret).await?;
    let account = locked(client, &id).await?;
    let (meter, spent, keys) = (None, Credits::ZERO, Vec::new());
    let facts = KeyChangeFacts { account: account.clone(), chain, meter, spent, keys, secret_in_use };
    match decision::change_key(facts, None, KeyChange::Rotate { secret, old_until: None }, now) {
        Decided::Accepted(changes) => {
            quotes::key_given_out(&mut Statements(client), changes.key.row).await?;
            key_writes::write_change(write, changes).await?;
            Ok(account.map(|(_, account)| account))
        }
        Decided::Refused(_) => Ok(None),
    }
}
