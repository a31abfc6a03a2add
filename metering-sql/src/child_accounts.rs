//! Child accounts, and credits that move between them and their parents.

use std::collections::{BTreeMap, HashMap};

use metering_core::backend::decision::{self, Decided, MoveChanges, MoveFacts, NewChildFacts};
use metering_core::backend::{credits, one_more_than, page_of_rows, row_of_cursor};
use metering_core::money::LedgerKind;
use metering_core::store::{
    ChildAccount, ChildClosed, ChildCreated, ChildUsage, Created, CreditMove, CreditsMoved, Cursor, NewAccount, Page,
};
use metering_core::usage::DayRange;
use metering_core::{Account, AccountId, Credits, Day, Timestamp};

use crate::executor::Executor;
use crate::fault::{Result, corrupt};
use crate::record::{find, insert, table};
use crate::row::{Row, only};
use crate::sum::{SUM, wide_sum};
use crate::{accounts, ledger, values};

table! { "child_account" by ["account"] of ChildAccount { Account(account), Account(parent) } }

table! {
    "credit_move" by ["parent", "request"] of CreditMove {
        Account(parent), Own(request), Account(child), Own(amount), Own(at)
    }
}

/// Creates a child of an account.
pub async fn create(db: &mut dyn Executor, parent: &AccountId, new: &NewAccount, most: u32) -> Result<ChildCreated> {
    // No other transaction creates a child of it until this one ends.
    let facts = match accounts::locked(db, parent).await? {
        Some((row, account)) => new_facts(db, row, account, new).await?,
        None => NewChildFacts { parent: None, is_child: false, key_in_use: false, children: 0 },
    };
    let tokens = facts.parent.as_ref().map_or(0, |parent| parent.tokens_per_minute);
    if let Decided::Refused(refusal) = decision::create_child(&facts, most) {
        return Ok(refusal);
    }
    match accounts::create(db, new).await? {
        Created::Account(account) => {
            insert(db, &[ChildAccount { account: account.id.clone(), parent: parent.clone() }]).await?;
            let limited = accounts::set_token_limit(db, &account.id, tokens).await?;
            Ok(ChildCreated::Account(limited.unwrap_or(account)))
        }
        refusal => Err(corrupt(format_args!("a child account was not created: {refusal:?}"))),
    }
}

async fn new_facts(db: &mut dyn Executor, row: i64, parent: Account, new: &NewAccount) -> Result<NewChildFacts> {
    let own = db.query("SELECT 1 FROM child_account WHERE account = ?1", &values![row]).await?;
    let open = "SELECT count(*) FROM child_account c {join} account a ON a.id = c.account \
         WHERE c.parent = ?1 AND a.revoked_at IS NULL";
    let children = only(&db.query(open, &values![row]).await?)?.get(0)?;
    let key_in_use = accounts::create_facts(db, new).await?.id_or_key_in_use;
    Ok(NewChildFacts { parent: Some(parent), is_child: !own.is_empty(), key_in_use, children })
}

const OF_PARENT: &str = "SELECT c.account FROM account p {join} child_account c ON c.parent = p.id WHERE p.org_id = ?1";

/// The children of an account after a cursor, at most `limit`.
pub async fn list(
    db: &mut dyn Executor,
    parent: &AccountId,
    after: Option<&Cursor>,
    limit: u32,
) -> Result<Page<Account>> {
    let condition = format!("a.id IN ({OF_PARENT}) AND a.id > ?2 ORDER BY a.id LIMIT ?3");
    let values = values![parent, row_of_cursor(after)?, one_more_than(limit)];
    Ok(page_of_rows(accounts::select(db, &condition, &values).await?, limit))
}

/// A child of an account.
pub async fn by_id(db: &mut dyn Executor, parent: &AccountId, id: &AccountId) -> Result<Option<Account>> {
    let condition = format!("a.id IN ({OF_PARENT}) AND a.org_id = ?2");
    let found = accounts::select(db, &condition, &values![parent, id]).await?;
    Ok(found.into_iter().next().map(|(_, account)| account))
}

/// The parent of an account.
pub async fn parent(db: &mut dyn Executor, id: &AccountId) -> Result<Option<Account>> {
    let condition =
        "a.id = (SELECT c.parent FROM account own {join} child_account c ON c.account = own.id WHERE own.org_id = ?1)";
    let found = accounts::select(db, condition, &values![id]).await?;
    Ok(found.into_iter().next().map(|(_, account)| account))
}

/// Moves credits between an account and its child.
pub async fn move_credits(db: &mut dyn Executor, wanted: &CreditMove) -> Result<CreditsMoved> {
    let mut facts = facts(db, &wanted.parent, &wanted.child).await?;
    let of_request = "WHERE parent = (SELECT a.id FROM account a WHERE a.org_id = ?1) AND request = ?2";
    facts.before = find(db, of_request, &values![wanted.parent, wanted.request]).await?;
    match decision::move_credits(facts, wanted) {
        Decided::Accepted(changes) => {
            let outcome = changes.outcome();
            insert(db, std::slice::from_ref(wanted)).await?;
            post(db, changes).await?;
            Ok(outcome)
        }
        Decided::Refused(refusal) => Ok(refusal),
    }
}

/// The payments of an account that are on their way. Once it is revoked, they could not be credited, or not be spent.
const PAYING: &str = "SELECT 1 FROM payment_authorization WHERE account = ?1 AND state = 'pending' \
     UNION ALL SELECT 1 FROM top_up_charge WHERE account = ?1 AND state = 'open'";

/// Moves a child's credits to its parent, and revokes it.
pub async fn close(db: &mut dyn Executor, parent: &AccountId, id: &AccountId, now: Timestamp) -> Result<ChildClosed> {
    let facts = facts(db, parent, id).await?;
    let is_paying = match &facts.child {
        Some((row, _)) => !db.query(PAYING, &values![row]).await?.is_empty(),
        None => false,
    };
    let changes = match decision::close_child(facts, is_paying, now) {
        Decided::Accepted(changes) => changes,
        Decided::Refused(refusal) => return Ok(refusal),
    };
    let mut closed = Credits::ZERO;
    if let Some(changes) = changes {
        closed = changes.parent.entry.amount;
        post(db, changes).await?;
    }
    accounts::revoke(db, id, now).await?;
    Ok(ChildClosed::Closed(closed))
}

/// The account and its child, which no charge changes until the transaction ends.
async fn facts(db: &mut dyn Executor, parent: &AccountId, child: &AccountId) -> Result<MoveFacts<i64>> {
    // A parent is older than its children, so locks are always taken in the order of the rows.
    let parent_row = accounts::locked(db, parent).await?;
    let is_child = by_id(db, parent, child).await?.is_some();
    let child_row = if is_child { accounts::locked(db, child).await? } else { None };
    let given = match &child_row {
        Some((row, _)) => {
            let moved = values![row, LedgerKind::TransferIn, LedgerKind::TransferOut];
            credits(ledger::sum(db, "account = ?1 AND kind IN (?2, ?3)", &moved).await?)?
        }
        None => Credits::ZERO,
    };
    Ok(MoveFacts { parent: parent_row, child: child_row, given, before: None })
}

async fn post(db: &mut dyn Executor, changes: MoveChanges<i64>) -> Result<()> {
    let MoveChanges { parent, child } = changes;
    db.post_entries(&[parent, child]).await
}

/// The usage of each child of an account on each day of a range.
pub async fn usage(db: &mut dyn Executor, parent: &AccountId, days: DayRange) -> Result<Vec<ChildUsage>> {
    let sql = format!("SELECT a.id, a.org_id FROM account a WHERE a.id IN ({OF_PARENT})");
    let rows = db.query(&sql, &values![parent]).await?;
    let child = |row: &Row| Ok::<_, crate::Fault>((row.get(0)?, row.get(1)?));
    let children = rows.iter().map(child).collect::<Result<HashMap<i64, AccountId>>>()?;
    let sql = format!(
        "SELECT account, day, CAST(sum(calls) AS BIGINT), {SUM} FROM usage_daily \
         WHERE account IN ({OF_PARENT}) AND {{of_days}} GROUP BY account, day"
    );
    let mut used: BTreeMap<(i64, Day), (u64, i128)> = BTreeMap::new();
    for row in db.query(&sql, &values![parent, days.first, days.last]).await? {
        used.insert((row.get(0)?, row.get(1)?), (row.get(2)?, wide_sum(&row, 3)?));
    }
    for (account, part) in db.unfolded_usage(None).await? {
        if children.contains_key(&account) && days.contains(part.day) {
            let (calls, atoms) = used.entry((account, part.day)).or_default();
            (*calls, *atoms) = (calls.saturating_add(part.calls), *atoms + part.atoms);
        }
    }
    let mut usage = Vec::with_capacity(used.len());
    for ((row, day), (usage_events, atoms)) in used {
        let Some(account) = children.get(&row) else { continue };
        usage.push(ChildUsage { account: account.clone(), day, usage_events, credits_used: credits(atoms)? });
    }
    Ok(usage)
}
