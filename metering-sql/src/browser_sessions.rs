//! Sessions of browsers.

use metering_core::access::{BrowserSession, BrowserSessionId, BrowserTokenHash, KeyHash, NewBrowserSession};
use metering_core::backend::decision::{self, BrowserSessionFacts};
use metering_core::signups::LinkHash;
use metering_core::{AccountId, Timestamp};

use crate::executor::Executor;
use crate::fault::Result;
use crate::record::{self, find, insert, list, set, table};
use crate::{key_holders, keys, links, values};

table! {
    "browser_session" by ["token"] of BrowserSession {
        Own(token), Own(id), Account(account), Own(secret), Own(device), Own(created_at), Own(used_at), Own(expires_at),
        Own(member)
    }
}

/// The session with this token, expired or not.
pub async fn by_token(db: &mut dyn Executor, token: &BrowserTokenHash) -> Result<Option<BrowserSession>> {
    find(db, "WHERE token = ?1", &values![token]).await
}

/// The sessions of an account, expired ones too, the most recently used first.
pub async fn of_account(db: &mut dyn Executor, account: &AccountId) -> Result<Vec<BrowserSession>> {
    let rest = "WHERE account = (SELECT a.id FROM account a WHERE a.org_id = ?1) ORDER BY used_at DESC, token";
    list(db, rest, &values![account]).await
}

/// Stores a session, and deletes those that it takes the place of.
pub async fn open(db: &mut dyn Executor, new: &BrowserSession) -> Result<bool> {
    let others = of_account(db, &new.account).await?;
    let secrets: Vec<KeyHash> = others.iter().chain([new]).map(|session| session.secret).collect();
    let mut live = key_holders::live(db, &secrets, new.created_at).await?;
    let is_live = live.pop().unwrap_or_default();
    let token_in_use = by_token(db, &new.token).await?.is_some();
    let facts = BrowserSessionFacts { is_live, token_in_use, others: others.into_iter().zip(live).collect() };
    let Some(changes) = decision::open_browser_session(new.clone(), facts)? else { return Ok(false) };
    for ended in &changes.ended {
        delete(db, ended).await?;
    }
    insert(db, &[changes.opened]).await.map(|_| true)
}

/// Uses up a link, and stores a session of the first key of its account.
pub async fn open_by_link(
    db: &mut dyn Executor,
    token: &LinkHash,
    new: &NewBrowserSession,
) -> Result<Option<BrowserSession>> {
    let Some(link) = links::by_token(db, token).await? else { return Ok(None) };
    let first_key = keys::first_secret(db, &link.account).await?;
    let Some(session) = decision::sign_in_by_link(&link, first_key, new.clone()) else { return Ok(None) };
    if !open(db, &session).await? {
        return Ok(None);
    }
    links::delete(db, token).await?;
    Ok(Some(session))
}

/// Writes when a session was last used, and until when it lasts.
pub async fn note_use(
    db: &mut dyn Executor,
    token: &BrowserTokenHash,
    used_at: Timestamp,
    expires_at: Timestamp,
) -> Result<()> {
    let row = values![token, used_at, expires_at];
    set::<BrowserSession>(db, &["used_at", "expires_at"], &[row]).await.map(drop)
}

/// Deletes those sessions of an account. Returns how many there were.
pub async fn end(db: &mut dyn Executor, account: &AccountId, ids: &[BrowserSessionId]) -> Result<u64> {
    let mut sessions = of_account(db, account).await?;
    sessions.retain(|session| ids.contains(&session.id));
    let mut ended = 0;
    for session in &sessions {
        ended += delete(db, &session.token).await?;
    }
    Ok(ended)
}

async fn delete(db: &mut dyn Executor, token: &BrowserTokenHash) -> Result<u64> {
    record::delete::<BrowserSession>(db, "WHERE token = ?1", values![token]).await
}
