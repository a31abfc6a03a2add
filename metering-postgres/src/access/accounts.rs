//! The scripts for accounts, for writes that are not scripts yet.

use metering_core::access::{KeyHash, KeyHolder};
use metering_core::backend::decision::{
    self, CreateChanges, CreateFacts, Decided, KeyChangeFacts, KeyChanges, KeyFacts,
};
use metering_core::store::KeyChange;
use metering_core::{Account, AccountId, Credits, NewAccount, Timestamp};
use metering_sql::{accounts, keys as key_scripts};

use crate::access::{key_writes, keys};
use crate::connection::session::GenericClient;
use crate::error::Result;
use crate::payments::quotes;
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

/// What is read before an account is created.
pub(crate) async fn create_facts<C: GenericClient>(client: &C, new: &NewAccount) -> Result<CreateFacts> {
    Ok(accounts::create_facts(&mut Statements(client), new).await?)
}

/// What is read before the keys of an account are replaced. Locks the account's meter.
pub(crate) async fn key_facts<C: GenericClient>(client: &C, id: &AccountId, key: &KeyHash) -> Result<KeyFacts<i64>> {
    Ok(key_scripts::replace_facts(&mut Statements(client), id, key).await?)
}

/// Inserts an account with its key and first ledger entries, and returns its row number.
pub(crate) async fn insert(write: &SerializedWrite<'_>, changes: &CreateChanges) -> Result<i64> {
    Ok(accounts::insert(&mut Statements(write.client()), changes).await?)
}

/// Writes an account's new keys. This also counts as delivery of the key that the account's quote promised.
pub(crate) async fn write_keys(write: &SerializedWrite<'_>, changes: KeyChanges<i64>) -> Result<Account> {
    Ok(key_scripts::write_all(&mut Statements(write.client()), &changes).await?)
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
            quotes::key_given_out(client, changes.key.row).await?;
            key_writes::write_change(write, changes).await?;
            Ok(account.map(|(_, account)| account))
        }
        Decided::Refused(_) => Ok(None),
    }
}
