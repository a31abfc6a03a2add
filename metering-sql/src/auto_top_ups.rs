//! Saved cards, and the charges that are made with them.

use std::collections::HashMap;
use std::slice::from_ref;

use metering_core::backend::decision::{self, Decided, TopUpFacts};
use metering_core::backend::{one_more_than, page_of_rows, row_of_cursor};
use metering_core::payments::{
    AutoTopUp, SavedCard, TopUpCharge, TopUpChargeId, TopUpChargeState, TopUpRule, TopUpStop,
};
use metering_core::store::{AutoTopUpChange, AutoTopUpSet, Cursor, Page, TopUpEnd};
use metering_core::{Account, AccountId, Timestamp};

use crate::executor::Executor;
use crate::fault::Result;
use crate::record::{self, Record, find, insert, put, set as set_columns, table};
use crate::row::{Reader, Row};
use crate::table::Table;
use crate::value::Value;
use crate::{accounts, reversals, values};

impl Record for AutoTopUp {
    const TABLE: Table = table!("auto_top_up" by ["account"] {
        Account(account), Own(customer), Own(method), Own(brand), Own(last4), Own(plan_id), Own(credits), Own(amount),
        Own(currency), Own(threshold), Own(monthly_limit), Own(stopped)
    });

    fn values(&self) -> Result<Vec<Value>> {
        let (card, rule) = (self.card.as_ref(), self.rule.as_ref());
        let mut values = values![self.account];
        values.extend(values![card.map(|card| &card.customer), card.map(|card| &card.method)]);
        values.extend(values![card.map(|card| &card.brand), card.map(|card| &card.last4)]);
        values.extend(values![rule.map(|rule| &rule.plan_id), rule.map(|rule| rule.credits)]);
        values.extend(values![rule.map(|rule| rule.amount), rule.map(|rule| rule.currency)]);
        values.extend(values![rule.map(|rule| rule.threshold), rule.map(|rule| rule.monthly_limit)]);
        values.extend(values![self.stopped]);
        Ok(values)
    }

    fn read(row: &mut Reader<'_>) -> Result<Self> {
        let account = row.next()?;
        // The schema ensures that all columns of a card are set or none is, and likewise those of a rule.
        let card = match (row.next()?, row.next()?, row.next()?, row.next()?) {
            (Some(customer), Some(method), Some(brand), Some(last4)) => {
                Some(SavedCard { customer, method, brand, last4 })
            }
            _ => None,
        };
        let (plan_id, credits, amount) = (row.next()?, row.next()?, row.next()?);
        let (currency, threshold, monthly_limit) = (row.next()?, row.next()?, row.next()?);
        let rule = match (plan_id, credits, amount, currency, threshold, monthly_limit) {
            (Some(plan_id), Some(credits), Some(amount), Some(currency), Some(threshold), Some(monthly_limit)) => {
                Some(TopUpRule { plan_id, credits, amount, currency, threshold, monthly_limit })
            }
            _ => None,
        };
        Ok(Self { account, card, rule, stopped: row.next()? })
    }
}

table! {
    "top_up_charge" by ["id"] of TopUpCharge {
        Own(id), Account(account), Own(customer), Own(method), Own(brand), Own(last4), Own(plan_id), Own(credits),
        Own(amount), Own(currency), Own(started_at), Own(state), Own(payment)
    } as Self {
        id, account, card: SavedCard { customer, method, brand, last4 }, plan_id, credits, amount, currency, started_at,
        state, payment
    }
}

/// The card and the rule of an account.
pub async fn of_account(db: &mut dyn Executor, account: &AccountId) -> Result<Option<AutoTopUp>> {
    find(db, "WHERE account = (SELECT a.id FROM account a WHERE a.org_id = ?1)", &values![account]).await
}

/// Changes the card or the rule of an account that is not revoked.
pub async fn set(db: &mut dyn Executor, id: &AccountId, change: &AutoTopUpChange) -> Result<AutoTopUpSet> {
    let account = accounts::locked(db, id).await?;
    if account.is_none_or(|(_, account)| account.revoked_at.is_some()) {
        return Ok(AutoTopUpSet::NoSuchAccount);
    }
    let current = of_account(db, id).await?.unwrap_or_else(|| AutoTopUp::none(id.clone()));
    match decision::set_auto_top_up(current, change.clone()) {
        Decided::Accepted(changed) => {
            put(db, from_ref(&changed)).await?;
            Ok(AutoTopUpSet::Set(Box::new(changed)))
        }
        Decided::Refused(refusal) => Ok(refusal),
    }
}

/// Stops the automatic top-ups of an account, and tells its owner.
pub async fn stop(db: &mut dyn Executor, id: &AccountId, reason: TopUpStop, now: Timestamp) -> Result<()> {
    let Some((row, _)) = accounts::locked(db, id).await? else { return Ok(()) };
    let Some(settings) = of_account(db, id).await? else { return Ok(()) };
    let Some((stopped, event)) = decision::stop_top_ups(settings, reason, now) else { return Ok(()) };
    put(db, &[stopped]).await?;
    db.write_events(Some(row), &[event]).await
}

/// The accounts whose card is to be charged, of the next `limit` with automatic top-ups.
pub async fn due(db: &mut dyn Executor, after: Option<&Cursor>, limit: u32) -> Result<Page<AutoTopUp>> {
    let rest = "WHERE auto_top_up.account > ?1 AND plan_id IS NOT NULL AND stopped IS NULL \
                ORDER BY auto_top_up.account LIMIT ?2";
    let sql = format!("SELECT {}, auto_top_up.account FROM auto_top_up {rest}", AutoTopUp::TABLE.column_list());
    let found = db.query(&sql, &values![row_of_cursor(after)?, one_more_than(limit)]).await?;
    let read = |row: &Row| Ok((row.get(AutoTopUp::TABLE.columns.len())?, AutoTopUp::of_row(row)?));
    let found = found.iter().map(read).collect::<Result<Vec<(i64, AutoTopUp)>>>()?;
    if found.is_empty() {
        return Ok(Page { items: Vec::new(), next: None });
    }
    // Balances also depend on charges that are not in the tables yet.
    let rows: Vec<i64> = found.iter().map(|(row, _)| *row).collect();
    let accounts = accounts::select(db, "a.id {in ?1}", &values![rows]).await?;
    let accounts: HashMap<i64, Account> = accounts.into_iter().collect();
    let page = page_of_rows(found.into_iter().map(|(row, settings)| (row, (row, settings))).collect(), limit);
    let due = page
        .items
        .into_iter()
        .filter(|(row, settings)| accounts.get(row).is_some_and(|account| decision::is_top_up_due(account, settings)));
    Ok(Page { items: due.map(|(_, settings)| settings).collect(), next: page.next })
}

/// Writes a charge that is to be made now, if one is due.
pub async fn begin(
    db: &mut dyn Executor,
    id: &AccountId,
    charge: TopUpChargeId,
    now: Timestamp,
) -> Result<Option<TopUpCharge>> {
    // No other charge of the account's card is written until the transaction ends.
    let Some((row, account)) = accounts::locked(db, id).await? else { return Ok(None) };
    let Some(settings) = of_account(db, id).await? else { return Ok(None) };
    let counted = "WHERE account = ?1 AND (state = 'open' OR (state = 'paid' AND started_at >= ?2))";
    let charges = record::list(db, counted, &values![row, now.day().month().start()]).await?;
    let begun = decision::begin_top_up(charge, TopUpFacts { account, settings, charges }, now);
    insert(db, begun.as_slice()).await?;
    Ok(begun)
}

/// The charges whose outcome is unknown, oldest first, at most `limit`.
pub async fn open(db: &mut dyn Executor, limit: u32) -> Result<Vec<TopUpCharge>> {
    record::list(db, "WHERE state = 'open' ORDER BY started_at, id LIMIT ?1", &values![limit]).await
}

/// The charges of an account since a moment that were paid or may be, the oldest first.
pub async fn charges_since(db: &mut dyn Executor, id: &AccountId, since: Timestamp) -> Result<Vec<TopUpCharge>> {
    let rest = "WHERE account = (SELECT a.id FROM account a WHERE a.org_id = ?1) AND started_at >= ?2 \
                AND state <> 'failed' ORDER BY started_at, id";
    record::list(db, rest, &values![id, since]).await
}

/// Ends a charge. One that counted as failed may turn out to be paid.
pub async fn end(db: &mut dyn Executor, id: TopUpChargeId, end: &TopUpEnd, now: Timestamp) -> Result<bool> {
    let by_id = "WHERE id = ?1";
    let Some(TopUpCharge { account, .. }) = find(db, by_id, &values![id]).await? else { return Ok(false) };
    let owner = accounts::locked(db, &account).await?;
    let Some(TopUpCharge { state, .. }) = find(db, by_id, &values![id]).await? else { return Ok(false) };
    let (ended, payment, why) = match end {
        TopUpEnd::Paid(payment) => {
            let hash = payment.tx().hash;
            let reversals = reversals::of_payment(db, &hash).await?;
            let is_reversed = reversals.iter().any(|reversal| reversal.restored_at.is_none());
            (TopUpChargeState::Paid, Some(hash), is_reversed.then_some(TopUpStop::Reversed))
        }
        TopUpEnd::Failed(reason) => (TopUpChargeState::Failed, None, Some(*reason)),
        TopUpEnd::NeverMade => (TopUpChargeState::Failed, None, None),
    };
    if state == ended || state == TopUpChargeState::Paid {
        return Ok(false);
    }
    set_columns::<TopUpCharge>(db, &["state", "payment"], &[values![id, ended, payment]]).await?;
    if owner.is_some_and(|(_, owner)| owner.erased_at.is_some()) {
        db.overwrite_deleted()?;
        set_columns::<TopUpCharge>(db, &["customer", "method", "brand", "last4"], &[values![id, "", "", "", ""]])
            .await?;
    }
    if let Some(reason) = why {
        stop(db, &account, reason, now).await?;
    }
    Ok(true)
}
