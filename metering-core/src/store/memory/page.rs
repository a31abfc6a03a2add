//! Paged lists. A cursor is the position of the page's last item, so later writes do not shift the pages.

use crate::access::account::{Account, AccountId};
use crate::access::key_id::KeyNumber;
use crate::backend::{credits, unknown_cursor};
use crate::clock::Day;
use crate::money::ledger::LedgerEntry;
use crate::store::{Cursor, Page, StoreError};
use crate::usage::{ClientSource, DailyTotal, UsageLine};

use super::state::{DayTotal, State};

/// The position of a daily total: day, index of the account, line, key.
type Position = (Day, usize, UsageLine, KeyNumber);

impl State {
    pub(super) fn accounts_page(&self, after: Option<&Cursor>, limit: u32) -> Result<Page<Account>, StoreError> {
        let after: Option<usize> = after.map(read).transpose()?;
        let accounts = self.accounts.iter().enumerate().filter(|(index, _)| after.is_none_or(|after| *index > after));
        Ok(page(accounts, limit, |(index, _)| Cursor::new(index.to_string())).map(|(_, record)| record.account.clone()))
    }

    pub(super) fn ledger_page(&self, after: Option<&Cursor>, limit: u32) -> Result<Page<LedgerEntry>, StoreError> {
        let after: Option<i64> = after.map(read).transpose()?;
        let entries = self.ledger.iter().filter(|entry| after.is_none_or(|after| entry.id > after));
        Ok(page(entries, limit, |entry| Cursor::new(entry.id.to_string())).map(LedgerEntry::clone))
    }

    pub(super) fn account_ledger_page(
        &self,
        id: &AccountId,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<LedgerEntry>, StoreError> {
        let after: Option<i64> = after.map(read).transpose()?;
        let entries = self.ledger.iter().filter(|entry| entry.account == *id);
        let entries = entries.filter(|entry| after.is_none_or(|after| entry.id > after));
        Ok(page(entries, limit, |entry| Cursor::new(entry.id.to_string())).map(LedgerEntry::clone))
    }

    pub(super) fn daily_totals_page(&self, after: Option<&Cursor>, limit: u32) -> Result<Page<DailyTotal>, StoreError> {
        let after = after.map(read_position).transpose()?;
        let mut totals: Vec<(Position, DayTotal)> = Vec::new();
        for (index, record) in self.accounts.iter().enumerate() {
            totals.extend(
                record.usage.iter().map(|((day, line, key), total)| ((*day, index, line.clone(), *key), *total)),
            );
        }
        totals.retain(|(position, _)| after.as_ref().is_none_or(|after| position > after));
        totals.sort_by(|(a, _), (b, _)| a.cmp(b));
        let Page { items, next } = page(totals.into_iter(), limit, |(position, _)| position_cursor(position));
        let total = |((day, index, line, key), DayTotal { calls, atoms }): (Position, DayTotal)| {
            let account = self.accounts[index].account.id.clone();
            Ok(DailyTotal { account, day, line, key, calls, credits_used: credits(atoms)? })
        };
        Ok(Page { items: items.into_iter().map(total).collect::<Result<_, StoreError>>()?, next })
    }
}

/// The first `limit` items of `sorted`, and a cursor if more follow.
fn page<T>(sorted: impl Iterator<Item = T>, limit: u32, position: impl Fn(&T) -> Cursor) -> Page<T> {
    let mut sorted = sorted.peekable();
    let items: Vec<T> = sorted.by_ref().take(limit as usize).collect();
    let next = sorted.peek().and_then(|_| items.last()).map(position);
    Page { items, next }
}

impl<T> Page<T> {
    fn map<U>(self, item: impl FnMut(T) -> U) -> Page<U> {
        Page { items: self.items.into_iter().map(item).collect(), next: self.next }
    }
}

fn position_cursor((day, index, line, key): &Position) -> Cursor {
    let UsageLine { route_template, http_method, source } = line;
    Cursor::new(format!("{} {index} {} {} {http_method} {route_template}", day.unix_days(), key.get(), source.as_str()))
}

fn read_position(cursor: &Cursor) -> Result<Position, StoreError> {
    let mut words = cursor.as_str().splitn(6, ' ');
    let mut word = || words.next().ok_or_else(unknown_cursor);
    let day = word()?.parse().map_err(|_| unknown_cursor())?;
    let index = word()?.parse().map_err(|_| unknown_cursor())?;
    let key = KeyNumber::new(word()?.parse().map_err(|_| unknown_cursor())?);
    let source = ClientSource::from_name(word()?);
    let (http_method, route_template) = (word()?.into(), word()?.into());
    Ok((Day::from_unix_days(day), index, UsageLine { route_template, http_method, source }, key))
}

fn read<T: std::str::FromStr>(cursor: &Cursor) -> Result<T, StoreError> {
    cursor.as_str().parse().map_err(|_| unknown_cursor())
}
