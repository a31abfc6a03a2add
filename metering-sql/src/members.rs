//! Members of accounts, how they are invited and sign in, and the accounts' own logs.

use metering_core::access::{
    AccountAction, AccountActor, BrowserSession, Identity, Invitation, KeyHash, Member, MemberId, NewAccountAction,
    NewBrowserSession, SignInChoice, SignInProof,
};
use metering_core::backend::decision::{self, Decided, MemberChanges, MemberFacts};
use metering_core::backend::{one_more_than, page_of_rows};
use metering_core::signups::LinkHash;
use metering_core::store::{Cursor, Invited, MemberChange, MemberChanged, Page};
use metering_core::{AccountId, Timestamp};

use crate::executor::Executor;
use crate::fault::Result;
use crate::record::{Record, delete, find, insert, list, put, set, table};
use crate::row::{Reader, Row, only};
use crate::table::Table;
use crate::value::Value;
use crate::{accounts, browser_sessions, events, keys, values};

impl Record for Member {
    const TABLE: Table = table!("account_member" by ["id"] {
        Own(id), Account(account), Own(role), Own(identity), Own(identity_key), Own(joined_at)
    });

    fn values(&self) -> Result<Vec<Value>> {
        let Self { id, account, role, identity, joined_at } = self;
        Ok(values![id, account, role, identity, identity.key(), joined_at])
    }

    fn read(row: &mut Reader<'_>) -> Result<Self> {
        let (id, account, role, identity) = (row.next()?, row.next()?, row.next()?, row.next()?);
        row.skip();
        Ok(Self { id, account, role, identity, joined_at: row.next()? })
    }
}

table! {
    "invitation" by ["id"] of Invitation {
        Own(id), Own(token), Account(account), Own(role), Own(email), Own(created_at), Own(expires_at)
    }
}

table! {
    "sign_in_proof" by ["token"] of SignInProof {
        Own(token), Own(identity), Own(invitation), Own(expires_at)
    }
}

table! {
    "account_log" by ["account", "number"] of AccountAction {
        Account(account), Own(number), Own(at), Own(actor), Own(actor_name), Own(action), Own(subject), Own(status)
    }
}

const OF_ACCOUNT: &str = "(SELECT a.id FROM account a WHERE a.org_id = ?1)";

/// The members of an account, in the order of joining.
pub async fn of_account(db: &mut dyn Executor, account: &AccountId) -> Result<Vec<Member>> {
    list(db, &format!("WHERE account = {OF_ACCOUNT} ORDER BY joined_at, id"), &values![account]).await
}

/// The invitations of an account, in the order in which they were made.
pub async fn invitations(db: &mut dyn Executor, account: &AccountId) -> Result<Vec<Invitation>> {
    list(db, &format!("WHERE account = {OF_ACCOUNT} ORDER BY created_at, id"), &values![account]).await
}

/// The invitation whose link has this token.
pub async fn invitation(db: &mut dyn Executor, token: &LinkHash) -> Result<Option<Invitation>> {
    find(db, "WHERE token = ?1", &values![token]).await
}

/// The data that is read before the members of an account change. Nothing else changes them until the transaction ends.
async fn facts(db: &mut dyn Executor, account: &AccountId) -> Result<MemberFacts<i64>> {
    let found = accounts::locked(db, account).await?;
    let members = of_account(db, account).await?;
    let invitations = invitations(db, account).await?;
    Ok(MemberFacts { account: found, members, invitations })
}

/// Stores an invitation.
pub async fn invite(db: &mut dyn Executor, new: &Invitation, actor: &AccountActor) -> Result<Invited> {
    let facts = facts(db, &new.account).await?;
    match decision::invite(new.clone(), actor.clone(), facts) {
        Decided::Accepted(changes) => write(db, &new.account, changes).await.map(|()| Invited::Invited),
        Decided::Refused(refusal) => Ok(refusal),
    }
}

/// Gives an invitation by mail another token.
pub async fn readdress(
    db: &mut dyn Executor,
    account: &AccountId,
    id: MemberId,
    token: &LinkHash,
) -> Result<Option<Invitation>> {
    let found = invitations(db, account).await?.into_iter().find(|invitation| invitation.id == id);
    let Some(invitation) = found.filter(|invitation| invitation.email.is_some()) else { return Ok(None) };
    set::<Invitation>(db, &["token"], &[values![id, token]]).await?;
    Ok(Some(Invitation { token: *token, ..invitation }))
}

/// Changes or removes a member or an invitation.
pub async fn change(
    db: &mut dyn Executor,
    account: &AccountId,
    id: MemberId,
    actor: &AccountActor,
    change: MemberChange,
    now: Timestamp,
) -> Result<MemberChanged> {
    let facts = facts(db, account).await?;
    match decision::change_member(facts, id, actor.clone(), change, now) {
        Decided::Accepted(changes) => write(db, account, changes).await.map(|()| MemberChanged::Changed),
        Decided::Refused(refusal) => Ok(refusal),
    }
}

/// Stores a sign-in that was begun.
pub async fn open_sign_in(db: &mut dyn Executor, proof: &SignInProof) -> Result<()> {
    insert(db, std::slice::from_ref(proof)).await.map(drop)
}

/// The sign-in whose link has this token.
pub async fn proof(db: &mut dyn Executor, token: &LinkHash) -> Result<Option<SignInProof>> {
    find(db, "WHERE token = ?1", &values![token]).await
}

/// The accounts that an identity can sign in to.
pub async fn choices(db: &mut dyn Executor, identity: &Identity) -> Result<Vec<SignInChoice>> {
    let own = match identity {
        Identity::Email(email) => accounts::by_email(db, email).await?,
        Identity::Wallet(wallet) => accounts::by_payer(db, wallet).await?,
    };
    let own = own.and_then(|account| {
        let email = account.email.clone().filter(|_| account.email_status.is_verified()).map(Identity::Email);
        let identity = if let Identity::Email(_) = identity { email? } else { identity.clone() };
        Some(SignInChoice { account: account.id, name: account.agent_name, identity, member: None })
    });
    let sql = format!(
        "SELECT {}, a.agent_name FROM account_member {{join}} account a ON a.id = account_member.account \
         WHERE account_member.identity_key = ?1 AND a.revoked_at IS NULL \
         ORDER BY account_member.joined_at, account_member.id",
        Member::TABLE.column_list()
    );
    let choice = |row: &Row| {
        let member = Member::of_row(row)?;
        let (account, name) = (member.account.clone(), row.get(Member::TABLE.columns.len())?);
        Ok(SignInChoice { account, name, identity: member.identity.clone(), member: Some(member) })
    };
    let rows = db.query(&sql, &values![identity.key()]).await?;
    let members = rows.iter().map(choice).collect::<Result<Vec<_>>>()?;
    let is_other = |choice: &SignInChoice| own.as_ref().is_none_or(|own| own.account != choice.account);
    let others: Vec<_> = members.into_iter().filter(is_other).collect();
    Ok(own.into_iter().chain(others).collect())
}

/// Uses up a sign-in, and opens a session.
pub async fn sign_in(
    db: &mut dyn Executor,
    token: &LinkHash,
    account: &AccountId,
    new: &NewBrowserSession,
) -> Result<Option<BrowserSession>> {
    let Some(proof) = proof(db, token).await? else { return Ok(None) };
    let choices = choices(db, &proof.identity).await?;
    let first_key = keys::first_secret(db, account).await?;
    let Some(session) = decision::sign_in(&proof, account, &choices, first_key, new.clone()) else { return Ok(None) };
    if !browser_sessions::open(db, &session).await? {
        return Ok(None);
    }
    delete::<SignInProof>(db, "WHERE token = ?1", values![token]).await?;
    Ok(Some(session))
}

/// Joins by the link of an invitation or of a sign-in that accepts one, and opens a session.
pub async fn join(db: &mut dyn Executor, link: &LinkHash, new: &NewBrowserSession) -> Result<Option<BrowserSession>> {
    let proof = proof(db, link).await?.filter(|proof| proof.is_live(new.created_at));
    let token = proof.as_ref().map_or(Some(*link), |proof| proof.invitation);
    let Some(token) = token else { return Ok(None) };
    let Some(invitation) = invitation(db, &token).await? else { return Ok(None) };
    let mailed = invitation.email.clone().map(Identity::Email);
    let Some(identity) = proof.map(|proof| proof.identity).or(mailed) else { return Ok(None) };
    let facts = facts(db, &invitation.account).await?;
    let first_key: Option<KeyHash> = keys::first_secret(db, &invitation.account).await?;
    let Some(signed_in) = decision::join(&invitation, identity, facts, first_key, new.clone()) else {
        return Ok(None);
    };
    if !browser_sessions::open(db, &signed_in.session).await? {
        return Ok(None);
    }
    if let Some(joined) = signed_in.joined {
        write(db, &invitation.account, joined).await?;
    }
    delete::<SignInProof>(db, "WHERE token = ?1", values![link]).await?;
    Ok(Some(signed_in.session))
}

async fn write(db: &mut dyn Executor, account: &AccountId, changes: MemberChanges<i64>) -> Result<()> {
    let MemberChanges { row, invited, member, removed, action, event } = changes;
    // First: a new member has the id of the invitation.
    for id in &removed {
        if member.as_ref().is_none_or(|member| member.id != *id) {
            delete::<BrowserSession>(db, "WHERE member = ?1", values![id]).await?;
        }
        delete::<Member>(db, "WHERE id = ?1", values![id]).await?;
        delete::<Invitation>(db, "WHERE id = ?1", values![id]).await?;
    }
    put(db, invited.as_slice()).await?;
    put(db, member.as_slice()).await?;
    append(db, row, account, action).await?;
    db.write_events(Some(row), event.as_slice()).await
}

/// Adds an entry to the log of an account that is not revoked. Returns its number.
pub async fn log(db: &mut dyn Executor, account: &AccountId, action: &NewAccountAction) -> Result<Option<i64>> {
    // A request that began before an erasure does not restore erased data.
    let found = accounts::locked(db, account).await?.filter(|(_, account)| account.revoked_at.is_none());
    let Some((row, _)) = found else { return Ok(None) };
    append(db, row, account, action.clone()).await.map(Some)
}

async fn append(db: &mut dyn Executor, row: i64, account: &AccountId, action: NewAccountAction) -> Result<i64> {
    let newest = "SELECT coalesce(max(number), 0) FROM account_log WHERE account = ?1";
    let number = only(&db.query(newest, &values![row]).await?)?.get::<i64>(0)? + 1;
    insert(db, &[action.numbered(account.clone(), number)]).await?;
    let oldest = number - AccountAction::MAX_PER_ACCOUNT;
    delete::<AccountAction>(db, "WHERE account = ?1 AND number <= ?2", values![row, oldest]).await?;
    Ok(number)
}

/// Adds the status of the response to an entry that has none.
pub async fn end_action(db: &mut dyn Executor, account: &AccountId, number: i64, status: u16) -> Result<()> {
    let Some((row, _)) = accounts::by_id(db, account).await? else { return Ok(()) };
    set::<AccountAction>(db, &["status"], &[values![row, number, status]]).await.map(drop)
}

/// Entries of an account's log, newest first.
pub async fn account_log(
    db: &mut dyn Executor,
    account: &AccountId,
    after: Option<&Cursor>,
    limit: u32,
) -> Result<Page<AccountAction>> {
    let rest = format!("WHERE account = {OF_ACCOUNT} AND number < ?2 ORDER BY number DESC LIMIT ?3");
    let values = values![account, events::before(after)?, one_more_than(limit)];
    let found: Vec<AccountAction> = list(db, &rest, &values).await?;
    Ok(page_of_rows(found.into_iter().map(|action| (action.number, action)).collect(), limit))
}
