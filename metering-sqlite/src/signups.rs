//! Signup sessions, and used solutions of bot challenges.

use metering_core::{
    Created, NewAccount, SessionHash, SignupApproved, SignupOpened, SignupRedeemed, SignupSession, Timestamp, UserCode,
};
use rusqlite::{Connection, Row, params};

use crate::accounts;
use crate::error::{Result, store_error};
use crate::rows::{first, parse};

/// The columns that [`session`] reads.
pub(crate) const COLUMNS: &str = "token, user_code, email, agent_name, created_at, expires_at, approved_at";

fn select(condition: &str) -> String {
    format!("SELECT {COLUMNS} FROM signup WHERE {condition}")
}

/// The session with this token.
pub(crate) fn by_token(connection: &Connection, token: &SessionHash) -> Result<Option<SignupSession>> {
    let mut statement = connection.prepare_cached(&select("token = ?1")).map_err(store_error)?;
    first(&mut statement, [token.as_bytes()], session)
}

/// The session with this user code.
pub(crate) fn by_code(connection: &Connection, code: &UserCode) -> Result<Option<SignupSession>> {
    let mut statement = connection.prepare_cached(&select("user_code = ?1")).map_err(store_error)?;
    first(&mut statement, [code.to_string()], session)
}

/// Stores a session, unless its owner has an account or its code is in use.
pub(crate) fn open(connection: &Connection, session: &SignupSession) -> Result<SignupOpened> {
    if accounts::email_is_taken(connection, Some(&session.email))? {
        return Ok(SignupOpened::EmailTaken);
    }
    if by_code(connection, &session.user_code)?.is_some() {
        return Ok(SignupOpened::CodeTaken);
    }
    let sql = "INSERT INTO signup (token, user_code, email, agent_name, created_at, expires_at) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let values = params![
        session.token.as_bytes(),
        session.user_code.to_string(),
        session.email.as_str(),
        session.agent_name.as_str(),
        session.created_at.unix_millis(),
        session.expires_at.unix_millis(),
    ];
    connection.prepare_cached(sql).and_then(|mut s| s.execute(values)).map_err(store_error)?;
    Ok(SignupOpened::Opened)
}

/// Approves a pending session.
pub(crate) fn approve(connection: &Connection, code: &UserCode, now: Timestamp) -> Result<SignupApproved> {
    let Some(session) = by_code(connection, code)?.filter(|session| session.is_pending(now)) else {
        return Ok(SignupApproved::NotPending);
    };
    if accounts::email_is_taken(connection, Some(&session.email))? {
        return Ok(SignupApproved::EmailTaken);
    }
    let sql = "UPDATE signup SET approved_at = ?2 WHERE token = ?1";
    connection.execute(sql, params![session.token.as_bytes(), now.unix_millis()]).map_err(store_error)?;
    Ok(SignupApproved::Approved)
}

/// Turns an approved session into an account.
pub(crate) fn redeem(
    connection: &Connection,
    token: &SessionHash,
    account: &NewAccount,
    now: Timestamp,
) -> Result<SignupRedeemed> {
    if !by_token(connection, token)?.is_some_and(|session| session.is_redeemable(now)) {
        return Ok(SignupRedeemed::NotApproved);
    }
    Ok(match accounts::create(connection, account)? {
        Created::Account(account) => {
            connection.execute("DELETE FROM signup WHERE token = ?1", [token.as_bytes()]).map_err(store_error)?;
            SignupRedeemed::Account(account)
        }
        // `PayerTaken` cannot happen: a session has no payer.
        Created::EmailTaken | Created::PayerTaken => SignupRedeemed::EmailTaken,
        Created::OutOfRange => SignupRedeemed::OutOfRange,
    })
}

/// Marks a solution as used; `false` if it was used before.
pub(crate) fn use_solution(connection: &Connection, solution: &[u8; 32], expires_at: Timestamp) -> Result<bool> {
    let sql = "INSERT OR IGNORE INTO used_solution (solution, expires_at) VALUES (?1, ?2)";
    let written = connection.execute(sql, params![solution, expires_at.unix_millis()]).map_err(store_error)?;
    Ok(written == 1)
}

pub(crate) fn session(row: &Row<'_>) -> rusqlite::Result<Result<SignupSession>> {
    let token = SessionHash::from_bytes(row.get(0)?);
    let (code, email, agent_name): (String, String, String) = (row.get(1)?, row.get(2)?, row.get(3)?);
    let time = |index| row.get(index).map(Timestamp::from_unix_millis);
    let (created_at, expires_at) = (time(4)?, time(5)?);
    let approved_at = row.get::<_, Option<i64>>(6)?.map(Timestamp::from_unix_millis);
    let read = || {
        let (user_code, email, agent_name) = (parse(&code)?, parse(&email)?, parse(&agent_name)?);
        Ok(SignupSession { token, user_code, email, agent_name, created_at, expires_at, approved_at })
    };
    Ok(read())
}
