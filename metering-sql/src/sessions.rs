//! Signup sessions, and used solutions of bot challenges.

use metering_core::backend::decision::{self, Decided, RedeemChanges, SignupFacts};
use metering_core::signups::{SessionHash, SignupSession, UserCode};
use metering_core::store::{SignupApproved, SignupOpened, SignupRedeemed};
use metering_core::{NewAccount, Timestamp};

use crate::executor::Executor;
use crate::fault::Result;
use crate::owners::owner_facts;
use crate::record::{Record, delete, find, insert, set};
use crate::row::Reader;
use crate::table::Column::Own;
use crate::table::Table;
use crate::transfer::SolutionRecord;
use crate::value::Value;
use crate::{accounts, values};

impl Record for SignupSession {
    const TABLE: Table = Table {
        name: "signup",
        key: &["token"],
        columns: &[
            Own("token"),
            Own("user_code"),
            Own("email"),
            Own("agent_name"),
            Own("created_at"),
            Own("expires_at"),
            Own("approved_at"),
        ],
    };

    fn values(&self) -> Result<Vec<Value>> {
        let Self { token, user_code, email, agent_name, created_at, expires_at, approved_at } = self;
        Ok(values![token, user_code, email, agent_name, created_at, expires_at, approved_at])
    }

    fn read(row: &mut Reader<'_>) -> Result<Self> {
        let (token, user_code, email, agent_name) = (row.next()?, row.next()?, row.next()?, row.next()?);
        let (created_at, expires_at, approved_at) = (row.next()?, row.next()?, row.next()?);
        Ok(Self { token, user_code, email, agent_name, created_at, expires_at, approved_at })
    }
}

impl Record for SolutionRecord {
    const TABLE: Table =
        Table { name: "used_solution", key: &["solution"], columns: &[Own("solution"), Own("expires_at")] };

    fn values(&self) -> Result<Vec<Value>> {
        Ok(values![self.solution, self.expires_at])
    }

    fn read(row: &mut Reader<'_>) -> Result<Self> {
        Ok(Self { solution: row.next()?, expires_at: row.next()? })
    }
}

/// The session with this token.
pub async fn by_token(db: &mut dyn Executor, token: &SessionHash) -> Result<Option<SignupSession>> {
    find(db, "WHERE token = ?1", &values![token]).await
}

/// The session with this user code.
pub async fn by_code(db: &mut dyn Executor, code: &UserCode) -> Result<Option<SignupSession>> {
    find(db, "WHERE user_code = ?1", &values![code]).await
}

/// Stores a session, unless its owner has an account or its code is in use.
pub async fn open(db: &mut dyn Executor, session: &SignupSession) -> Result<SignupOpened> {
    let facts = SignupFacts {
        email_taken: owner_facts(db, Some(&session.email), None).await?.email_taken,
        code_taken: by_code(db, &session.user_code).await?.is_some(),
        token_in_use: by_token(db, &session.token).await?.is_some(),
    };
    match decision::open_signup(session.clone(), facts)? {
        Decided::Accepted(session) => insert(db, &[session]).await.map(|_| SignupOpened::Opened),
        Decided::Refused(refusal) => Ok(refusal),
    }
}

/// Approves a pending session.
pub async fn approve(db: &mut dyn Executor, code: &UserCode, now: Timestamp) -> Result<SignupApproved> {
    let session = by_code(db, code).await?;
    let email = session.as_ref().map(|session| &session.email);
    let email_taken = owner_facts(db, email, None).await?.email_taken;
    let session = match decision::approve_signup(session, email_taken, now) {
        Decided::Accepted(session) => session,
        Decided::Refused(refusal) => return Ok(refusal),
    };
    set::<SignupSession>(db, &["approved_at"], &[values![session.token, session.approved_at]]).await?;
    Ok(SignupApproved::Approved)
}

/// Turns an approved session into an account.
pub async fn redeem(
    db: &mut dyn Executor,
    token: &SessionHash,
    account: &NewAccount,
    now: Timestamp,
) -> Result<SignupRedeemed> {
    let session = by_token(db, token).await?;
    let facts = accounts::create_facts(db, account).await?;
    let RedeemChanges { account, token } = match decision::redeem_signup(session, account.clone(), facts, now)? {
        Decided::Accepted(changes) => changes,
        Decided::Refused(refusal) => return Ok(refusal),
    };
    accounts::insert(db, &account).await?;
    delete::<SignupSession>(db, "WHERE token = ?1", values![token]).await?;
    Ok(SignupRedeemed::Account(account.account))
}

/// Marks a solution as used; `false` if it was used before.
pub async fn use_solution(db: &mut dyn Executor, solution: &[u8; 32], expires_at: Timestamp) -> Result<bool> {
    let sql = format!("{} ON CONFLICT (solution) DO NOTHING", SolutionRecord::TABLE.insert());
    Ok(db.execute(&sql, &[values![solution, expires_at]]).await? == 1)
}
