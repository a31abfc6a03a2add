//! Links that were sent by email, and what following them does.

use metering_core::access::{Email, KeyHash};
use metering_core::backend::decision::{self, Decided, VerifyFacts};
use metering_core::signups::{EmailLink, LinkHash};
use metering_core::store::EmailVerified;
use metering_core::{Account, Timestamp};

use crate::accounts::{self, email_columns};
use crate::executor::Executor;
use crate::fault::Result;
use crate::owners::owner_facts;
use crate::record::{self, find, table};
use crate::{key_replacement, values};

// An account has one link for each purpose: a new one takes the place of the older one.
table! {
    "email_link" by ["account", "purpose"] of EmailLink {
        Own(token), Own(purpose), Account(account), Own(expires_at)
    }
}

/// The link with this token.
pub async fn by_token(db: &mut dyn Executor, token: &LinkHash) -> Result<Option<EmailLink>> {
    find(db, "WHERE token = ?1", &values![token]).await
}

/// Stores a link, replacing the account's older one for the same purpose.
pub async fn open(db: &mut dyn Executor, new: &EmailLink) -> Result<bool> {
    let token_in_use = by_token(db, &new.token).await?.is_some();
    let found = accounts::by_id(db, &new.account).await?;
    let account = found.as_ref().map(|(_, account)| account);
    let Some(link) = decision::open_email_link(new.clone(), account, token_in_use)? else { return Ok(false) };
    record::put(db, &[link]).await.map(|_| true)
}

/// Uses up a link and marks the address of its account as verified.
pub async fn verify(db: &mut dyn Executor, token: &LinkHash, now: Timestamp) -> Result<EmailVerified> {
    let link = by_token(db, token).await?;
    let account = match &link {
        Some(link) => accounts::locked(db, &link.account).await?,
        None => None,
    };
    let email = account.as_ref().and_then(|(_, account)| account.email.as_ref());
    let email_held = owner_facts(db, email, None).await?.email_taken;
    let changes = match decision::verify_email(VerifyFacts { link, account, email_held }, now) {
        Decided::Accepted(changes) => changes,
        Decided::Refused(refusal) => return Ok(refusal),
    };
    delete(db, &changes.token).await?;
    match changes.entry_changes() {
        Some(entry) => db.post_entries(&[entry]).await?,
        None => accounts::write_alert_level(db, changes.row, changes.account.alert.raised).await?,
    }
    let (credits, verified_at) = email_columns(changes.account.email_status);
    let folded = changes.account.held_email().map(Email::folded);
    let sql = accounts::TABLE.update(&["email_folded", "email_credits", "email_verified_at"]);
    db.execute(&sql, &[values![changes.row, folded, credits, verified_at]]).await?;
    Ok(changes.into_outcome())
}

/// Uses up a link and replaces the key of its account.
pub async fn recover(
    db: &mut dyn Executor,
    token: &LinkHash,
    key: &KeyHash,
    now: Timestamp,
) -> Result<Option<Account>> {
    let Some(link) = by_token(db, token).await? else { return Ok(None) };
    let facts = key_replacement::facts(db, &link.account, key).await?;
    let Some(changes) = decision::recover_key(&link, facts, *key, now)? else { return Ok(None) };
    delete(db, token).await?;
    key_replacement::write(db, &changes).await.map(Some)
}

/// Deletes a link.
pub async fn delete(db: &mut dyn Executor, token: &LinkHash) -> Result<()> {
    record::delete::<EmailLink>(db, "WHERE token = ?1", values![token]).await.map(drop)
}
