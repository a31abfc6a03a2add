//! Signup sessions, and used solutions of bot challenges.

use metering_core::backend::decision::{self, Decided, RedeemChanges, SignupFacts};
use metering_core::signups::{SessionHash, SignupSession, UserCode};
use metering_core::store::{SignupApproved, SignupOpened, SignupRedeemed};
use metering_core::{NewAccount, Timestamp};

use crate::executor::Executor;
use crate::fault::Result;
use crate::owners::owner_facts;
use crate::record::{Record, delete, find, insert, set, table};
use crate::transfer::SolutionRecord;
use crate::{accounts, values};

table! {
    "signup" by ["token"] of SignupSession {
        Own(token), Own(user_code), Own(email), Own(agent_name), Own(created_at), Own(expires_at), Own(approved_at)
    }
}

table! { "used_solution" by ["solution"] of SolutionRecord { Own(solution), Own(expires_at) } }

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
