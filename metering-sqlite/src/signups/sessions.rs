//! Signup sessions, and used solutions of bot challenges.

use metering_core::backend::decision::{self, Decided, RedeemChanges, SignupFacts};
use metering_core::signups::{SessionHash, SignupSession, UserCode};
use metering_core::store::{SignupApproved, SignupOpened, SignupRedeemed};
use metering_core::{NewAccount, Timestamp};
use rusqlite::{Connection, Row, params};

use crate::access::{accounts, owners};
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
pub(crate) fn open(connection: &Connection, session: SignupSession) -> Result<SignupOpened> {
    let facts = SignupFacts {
        email_taken: owners::owner_facts(connection, Some(&session.email), None)?.email_taken,
        code_taken: by_code(connection, &session.user_code)?.is_some(),
        token_in_use: by_token(connection, &session.token)?.is_some(),
    };
    let session = match decision::open_signup(session, facts)? {
        Decided::Accepted(session) => session,
        Decided::Refused(refusal) => return Ok(refusal),
    };
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
    let session = by_code(connection, code)?;
    let email = session.as_ref().map(|session| &session.email);
    let email_taken = owners::owner_facts(connection, email, None)?.email_taken;
    let session = match decision::approve_signup(session, email_taken, now) {
        Decided::Accepted(session) => session,
        Decided::Refused(refusal) => return Ok(refusal),
    };
    let sql = "UPDATE signup SET approved_at = ?2 WHERE token = ?1";
    let values = params![session.token.as_bytes(), session.approved_at.map(Timestamp::unix_millis)];
    connection.execute(sql, values).map_err(store_error)?;
    Ok(SignupApproved::Approved)
}

/// Turns an approved session into an account.
pub(crate) fn redeem(
    connection: &Connection,
    token: &SessionHash,
    account: NewAccount,
    now: Timestamp,
) -> Result<SignupRedeemed> {
    let session = by_token(connection, token)?;
    let facts = accounts::create_facts(connection, &account)?;
    let RedeemChanges { account, token } = match decision::redeem_signup(session, account, facts, now)? {
        Decided::Accepted(changes) => changes,
        Decided::Refused(refusal) => return Ok(refusal),
    };
    accounts::insert(connection, &account)?;
    connection.execute("DELETE FROM signup WHERE token = ?1", [token.as_bytes()]).map_err(store_error)?;
    Ok(SignupRedeemed::Account(account.account))
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
