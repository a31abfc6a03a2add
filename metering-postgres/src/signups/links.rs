//! Links that were sent by email, and what following them does.

use metering_core::access::{Email, KeyHash};
use metering_core::backend::decision::{self, Decided, VerifyFacts};
use metering_core::signups::{EmailLink, LinkHash};
use metering_core::store::EmailVerified;
use metering_core::{Account, Timestamp};
use tokio_postgres::Row;

use crate::access::{accounts, owners};
use crate::connection::session::GenericClient;
use crate::error::Result;
use crate::money::ledger;
use crate::rows::{Values, bytes, email_columns, execute, first, parsed, timestamp};
use crate::transactions::serialized::SerializedWrite;

/// The columns that [`link`] reads from `email_link l JOIN account a`.
pub(crate) const COLUMNS: &str = "l.token, l.purpose, a.org_id, l.expires_at";

/// The link with this token.
async fn by_token<C: GenericClient>(client: &C, token: &LinkHash) -> Result<Option<EmailLink>> {
    let sql = format!("SELECT {COLUMNS} FROM email_link l JOIN account a ON a.id = l.account WHERE l.token = $1");
    first(client, &sql, &[&token.as_bytes().as_slice()]).await?.as_ref().map(link).transpose()
}

/// Stores a link in place of the account's older one for the same purpose.
pub(crate) async fn open(write: &SerializedWrite<'_>, new: EmailLink) -> Result<bool> {
    let client = write.client();
    let token_in_use = by_token(client, &new.token).await?.is_some();
    let found = accounts::by_id(client, &new.account).await?;
    let account = found.as_ref().map(|(_, account)| account);
    let Some(link) = decision::open_email_link(new, account, token_in_use)? else { return Ok(false) };
    let Some((row, _)) = found else { return Ok(false) };
    let sql = "INSERT INTO email_link (token, account, purpose, expires_at) VALUES ($1, $2, $3, $4) \
               ON CONFLICT (account, purpose) DO UPDATE SET token = excluded.token, expires_at = excluded.expires_at";
    let (token, expires_at) = (link.token.as_bytes().as_slice(), link.expires_at.unix_millis());
    execute(client, sql, &[&token, &row, &link.purpose.as_str(), &expires_at]).await?;
    Ok(true)
}

/// Uses up a link and marks the address of its account as verified. Locks the account's meter, as any ledger entry
/// does.
pub(crate) async fn verify(write: &SerializedWrite<'_>, token: &LinkHash, now: Timestamp) -> Result<EmailVerified> {
    let client = write.client();
    let link = by_token(client, token).await?;
    let account = match &link {
        Some(link) => accounts::locked(client, &link.account).await?,
        None => None,
    };
    let email = account.as_ref().and_then(|(_, account)| account.email.as_ref());
    let email_held = owners::owner_facts(client, email, None).await?.email_taken;
    let changes = match decision::verify_email(VerifyFacts { link, account, email_held }, now) {
        Decided::Accepted(changes) => changes,
        Decided::Refused(refusal) => return Ok(refusal),
    };
    delete(client, &changes.token).await?;
    if let Some(entry) = changes.entry_changes() {
        ledger::write(write, &entry).await?;
    }
    accounts::write_alert(client, changes.row, changes.account.alert).await?;
    let (credits, verified_at) = email_columns(changes.account.email_status);
    let folded = changes.account.held_email().map(Email::folded);
    let sql = "UPDATE account SET email_folded = $2, email_credits = $3, email_verified_at = $4 WHERE id = $1";
    let values: Values<'_> = &[&changes.row, &folded, &credits, &verified_at];
    execute(client, sql, values).await?;
    Ok(changes.into_outcome())
}

/// Uses up a link and replaces the key of its account.
pub(crate) async fn recover(
    write: &SerializedWrite<'_>,
    token: &LinkHash,
    key: KeyHash,
    now: Timestamp,
) -> Result<Option<Account>> {
    let Some(link) = by_token(write.client(), token).await? else { return Ok(None) };
    let facts = accounts::key_facts(write.client(), &link.account, &key).await?;
    let Some(changes) = decision::recover_key(&link, facts, key, now)? else { return Ok(None) };
    delete(write.client(), token).await?;
    accounts::write_keys(write, changes).await.map(Some)
}

async fn delete<C: GenericClient>(client: &C, token: &LinkHash) -> Result<()> {
    execute(client, "DELETE FROM email_link WHERE token = $1", &[&token.as_bytes().as_slice()]).await.map(drop)
}

pub(crate) fn link(row: &Row) -> Result<EmailLink> {
    Ok(EmailLink {
        token: LinkHash::from_bytes(bytes(row, 0)?),
        purpose: parsed(row, 1)?,
        account: parsed(row, 2)?,
        expires_at: timestamp(row, 3)?,
    })
}
