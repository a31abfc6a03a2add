//! Clients and grants of OAuth.

use metering_core::access::{KeyHash, KeyName};
use metering_core::oauth::{Grant, GrantId, OAuthClient, RedirectUri};
use metering_core::{AccountId, Timestamp};

use crate::executor::Executor;
use crate::fault::Result;
use crate::record::{self, Record, find, insert, put, set, table};
use crate::row::{Reader, only};
use crate::table::Table;
use crate::value::Value;
use crate::values;

impl Record for OAuthClient {
    const TABLE: Table = table!("oauth_client" by ["id"] { Own(id), Own(name), Own(redirect_uris), Own(expires_at) });

    fn values(&self) -> Result<Vec<Value>> {
        let uris: Vec<&str> = self.redirect_uris.iter().map(RedirectUri::as_str).collect();
        Ok(values![self.id, self.name, uris.join("\n"), self.expires_at])
    }

    fn read(row: &mut Reader<'_>) -> Result<Self> {
        let (id, name): (String, KeyName) = (row.next()?, row.next()?);
        let uris: String = row.next()?;
        let parsed = uris.lines().map(str::parse::<RedirectUri>);
        let redirect_uris =
            parsed.collect::<std::result::Result<Vec<_>, _>>().map_err(|problem| row.corrupt(problem))?;
        Ok(Self { id, name, redirect_uris, expires_at: row.next()? })
    }
}

table! {
    "oauth_grant" by ["id"] of Grant {
        Own(id), Account(account), Own(parent), Own(client), Own(redirect_uri), Own(resource), Own(challenge),
        Own(terms), Own(token), Own(key), Own(secret), Own(expires_at)
    }
}

/// Stores a client that registers. If there are `most` of them, it replaces the one that expires first, unless that one
/// expires later than it.
pub async fn register(db: &mut dyn Executor, client: &OAuthClient, most: u64) -> Result<bool> {
    let rows = db.query("SELECT count(*) FROM oauth_client", &[]).await?;
    if only(&rows)?.get::<u64>(0)? >= most {
        let first =
            "WHERE id = (SELECT c.id FROM oauth_client c WHERE c.expires_at <= ?1 ORDER BY c.expires_at LIMIT 1)";
        if record::delete::<OAuthClient>(db, first, values![client.expires_at]).await? == 0 {
            return Ok(false);
        }
    }
    insert(db, std::slice::from_ref(client)).await.map(|_| true)
}

/// The registered client with this id.
pub async fn client(db: &mut dyn Executor, id: &str) -> Result<Option<OAuthClient>> {
    find(db, "WHERE id = ?1", &values![id]).await
}

/// Keeps a registered client until then.
pub async fn keep_client(db: &mut dyn Executor, id: &str, until: Timestamp) -> Result<()> {
    set::<OAuthClient>(db, &["expires_at"], &[values![id, until]]).await.map(drop)
}

/// Stores a grant, replacing the one with its id.
pub async fn put_grant(db: &mut dyn Executor, grant: &Grant) -> Result<()> {
    put(db, std::slice::from_ref(grant)).await.map(drop)
}

/// The grant with this id.
pub async fn grant(db: &mut dyn Executor, id: &GrantId) -> Result<Option<Grant>> {
    find(db, "WHERE id = ?1", &values![id]).await
}

/// The grant whose last access token has this hash.
pub async fn grant_of(db: &mut dyn Executor, secret: &KeyHash) -> Result<Option<Grant>> {
    find(db, "WHERE secret = ?1", &values![secret]).await
}

/// The grants of an account.
pub async fn grants(db: &mut dyn Executor, account: &AccountId) -> Result<Vec<Grant>> {
    record::list(db, "WHERE account = (SELECT a.id FROM account a WHERE a.org_id = ?1) ORDER BY id", &values![account])
        .await
}

/// Deletes a grant.
pub async fn delete_grant(db: &mut dyn Executor, id: &GrantId) -> Result<bool> {
    Ok(record::delete::<Grant>(db, "WHERE id = ?1", values![id]).await? > 0)
}

/// Has a secret stop working then.
pub async fn expire_secret(db: &mut dyn Executor, secret: &KeyHash, at: Timestamp) -> Result<()> {
    let rows = db.query("SELECT account FROM key_secret WHERE hash = ?1", &values![secret]).await?;
    let Some(row) = rows.first() else { return Ok(()) };
    db.execute("UPDATE key_secret SET expires_at = ?2 WHERE hash = ?1", &[values![secret, at]]).await?;
    db.settings_changed(row.get(0)?).await
}
