//! Signup sessions, and used solutions of bot challenges.

use metering_core::backend::decision::{self, Decided, RedeemChanges, SignupFacts};
use metering_core::signups::{SessionHash, SignupSession, UserCode};
use metering_core::store::{SignupApproved, SignupOpened, SignupRedeemed};
use metering_core::{NewAccount, Timestamp};
use tokio_postgres::Row;

use crate::access::{accounts, owners};
use crate::connection::session::GenericClient;
use crate::error::Result;
use crate::rows::{Values, bytes, execute, first, parsed, timestamp};
use crate::transactions::serialized::SerializedWrite;

/// The columns that [`session`] reads.
pub(crate) const COLUMNS: &str = "token, user_code, email, agent_name, created_at, expires_at, approved_at";

fn select(condition: &str) -> String {
    format!("SELECT {COLUMNS} FROM signup WHERE {condition}")
}

/// The session with this token.
pub(crate) async fn by_token<C: GenericClient>(client: &C, token: &SessionHash) -> Result<Option<SignupSession>> {
    let row = first(client, &select("token = $1"), &[&token.as_bytes().as_slice()]).await?;
    row.as_ref().map(session).transpose()
}

/// The session with this user code.
pub(crate) async fn by_code<C: GenericClient>(client: &C, code: &UserCode) -> Result<Option<SignupSession>> {
    let row = first(client, &select("user_code = $1"), &[&code.to_string()]).await?;
    row.as_ref().map(session).transpose()
}

/// Stores a session, unless its owner has an account or its code is in use.
pub(crate) async fn open(write: &SerializedWrite<'_>, session: SignupSession) -> Result<SignupOpened> {
    let client = write.client();
    let facts = SignupFacts {
        email_taken: owners::owner_facts(client, Some(&session.email), None).await?.email_taken,
        code_taken: by_code(client, &session.user_code).await?.is_some(),
        token_in_use: by_token(client, &session.token).await?.is_some(),
    };
    let session = match decision::open_signup(session, facts)? {
        Decided::Accepted(session) => session,
        Decided::Refused(refusal) => return Ok(refusal),
    };
    let sql = "INSERT INTO signup (token, user_code, email, agent_name, created_at, expires_at) \
               VALUES ($1, $2, $3, $4, $5, $6)";
    let code = session.user_code.to_string();
    let values: Values<'_> = &[
        &session.token.as_bytes().as_slice(),
        &code,
        &session.email.as_str(),
        &session.agent_name.as_str(),
        &session.created_at.unix_millis(),
        &session.expires_at.unix_millis(),
    ];
    execute(client, sql, values).await?;
    Ok(SignupOpened::Opened)
}

/// Approves a pending session.
pub(crate) async fn approve(write: &SerializedWrite<'_>, code: &UserCode, now: Timestamp) -> Result<SignupApproved> {
    let client = write.client();
    let session = by_code(client, code).await?;
    let email = session.as_ref().map(|session| &session.email);
    let email_taken = owners::owner_facts(client, email, None).await?.email_taken;
    let session = match decision::approve_signup(session, email_taken, now) {
        Decided::Accepted(session) => session,
        Decided::Refused(refusal) => return Ok(refusal),
    };
    let sql = "UPDATE signup SET approved_at = $2 WHERE token = $1";
    let approved_at = session.approved_at.map(Timestamp::unix_millis);
    execute(client, sql, &[&session.token.as_bytes().as_slice(), &approved_at]).await?;
    Ok(SignupApproved::Approved)
}

/// Turns an approved session into an account.
pub(crate) async fn redeem(
    write: &SerializedWrite<'_>,
    token: &SessionHash,
    account: NewAccount,
    now: Timestamp,
) -> Result<SignupRedeemed> {
    let client = write.client();
    let session = by_token(client, token).await?;
    let facts = accounts::create_facts(client, &account).await?;
    let RedeemChanges { account, token } = match decision::redeem_signup(session, account, facts, now)? {
        Decided::Accepted(changes) => changes,
        Decided::Refused(refusal) => return Ok(refusal),
    };
    accounts::insert(write, &account).await?;
    execute(client, "DELETE FROM signup WHERE token = $1", &[&token.as_bytes().as_slice()]).await?;
    Ok(SignupRedeemed::Account(account.account))
}

/// Marks a solution as used; `false` if it was used before.
pub(crate) async fn use_solution(
    write: &SerializedWrite<'_>,
    solution: &[u8; 32],
    expires_at: Timestamp,
) -> Result<bool> {
    let sql = "INSERT INTO used_solution (solution, expires_at) VALUES ($1, $2) ON CONFLICT (solution) DO NOTHING";
    Ok(execute(write.client(), sql, &[&solution.as_slice(), &expires_at.unix_millis()]).await? == 1)
}

pub(crate) fn session(row: &Row) -> Result<SignupSession> {
    Ok(SignupSession {
        token: SessionHash::from_bytes(bytes(row, 0)?),
        user_code: parsed(row, 1)?,
        email: parsed(row, 2)?,
        agent_name: parsed(row, 3)?,
        created_at: timestamp(row, 4)?,
        expires_at: timestamp(row, 5)?,
        approved_at: row.try_get::<_, Option<i64>>(6)?.map(Timestamp::from_unix_millis),
    })
}
