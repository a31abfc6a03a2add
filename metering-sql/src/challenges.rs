//! Challenges for a wallet's signature.

use metering_core::access::KeyHash;
use metering_core::backend::decision;
use metering_core::payments::Challenge;
use metering_core::{Account, Timestamp};

use crate::executor::Executor;
use crate::fault::Result;
use crate::record::{self, find, insert, table};
use crate::{key_replacement, values};

table! {
    "challenge" by ["nonce"] of Challenge {
        Own(nonce), Own(address), Own(org_id), Own(message), Own(expires_at), Own(failures)
    } as Self { nonce, address, account: org_id, message, expires_at, failures }
}

/// Stores a challenge.
pub async fn open(db: &mut dyn Executor, new: &Challenge) -> Result<()> {
    let nonce_in_use = by_nonce(db, &new.nonce).await?.is_some();
    let challenge = decision::open_challenge(new.clone(), nonce_in_use)?;
    insert(db, &[challenge]).await.map(drop)
}

/// The challenge with this nonce, unless it is used up.
pub async fn by_nonce(db: &mut dyn Executor, nonce: &str) -> Result<Option<Challenge>> {
    find(db, "WHERE nonce = ?1", &values![nonce]).await
}

/// Counts a failed attempt. The last one allowed uses up the challenge.
pub async fn fail(db: &mut dyn Executor, nonce: &str) -> Result<()> {
    let Some(challenge) = by_nonce(db, nonce).await? else { return Ok(()) };
    let Some(failed) = decision::fail_challenge(challenge) else { return delete(db, nonce).await };
    record::set::<Challenge>(db, &["failures"], &[values![nonce, failed.failures]]).await.map(drop)
}

/// Uses up a challenge and replaces the key of its account.
pub async fn rotate_key(db: &mut dyn Executor, nonce: &str, key: &KeyHash, now: Timestamp) -> Result<Option<Account>> {
    let Some(challenge) = by_nonce(db, nonce).await? else { return Ok(None) };
    let facts = key_replacement::facts(db, &challenge.account, key).await?;
    let Some(changes) = decision::rotate_key(&challenge, facts, *key, now)? else { return Ok(None) };
    delete(db, nonce).await?;
    key_replacement::write(db, &changes).await.map(Some)
}

async fn delete(db: &mut dyn Executor, nonce: &str) -> Result<()> {
    record::delete::<Challenge>(db, "WHERE nonce = ?1", values![nonce]).await.map(drop)
}
