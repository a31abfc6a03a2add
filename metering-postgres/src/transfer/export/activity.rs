//! Exports recent usage entry by entry, from the blocks and tails of the accounts, in account order.

use std::collections::HashMap;

use metering_core::backend::{page, unknown_cursor};
use metering_core::store::{Cursor, Page};
use metering_core::usage::ACTIVITY_KEPT;
use metering_core::{AccountId, Credits, Timestamp};
use metering_sql::transfer::{ActivityRecord, Part, Position, Record};

use crate::charging::entry::{Entry, unpack};
use crate::charging::known::Known;
use crate::connection::session::GenericClient;
use crate::error::{Result, corrupt};
use crate::rows::{all, parsed};

/// Maximum number of accounts that are read together.
const ACCOUNTS: i64 = 512;

/// An account whose entries are exported.
struct Owner {
    row: i64,
    id: AccountId,
    entries: i64,
    tail: Vec<u8>,
}

/// Entries after a cursor, by account and number, at most `limit`.
pub(super) async fn records<C: GenericClient>(
    client: &C,
    known: &Known,
    after: Option<&Cursor>,
    limit: u32,
) -> Result<Page<Record>> {
    let position = after.map(position_of).transpose()?.unwrap_or((i64::MIN, 0));
    let most = usize::try_from(limit).unwrap_or(usize::MAX).saturating_add(1);
    let (mut first, mut found) = (Some(position.0), Vec::new());
    while let Some(from) = first {
        let owners = owners(client, from, most - found.len()).await?;
        first = owners.last().map(|owner| owner.row + 1);
        let rows: Vec<i64> = owners.iter().map(|owner| owner.row).collect();
        let mut blocks: HashMap<i64, Vec<Vec<u8>>> = HashMap::new();
        let sql = "SELECT account, entries FROM activity WHERE account = ANY($1) ORDER BY account, block DESC";
        for row in all(client, sql, &[&rows]).await? {
            blocks.entry(row.try_get(0)?).or_default().push(row.try_get(1)?);
        }
        for owner in owners {
            let packed: Vec<Vec<u8>> =
                [owner.tail.clone()].into_iter().chain(blocks.remove(&owner.row).unwrap_or_default()).collect();
            for entry in oldest_first(&packed, owner.entries)? {
                if found.len() == most {
                    return Ok(page(found, limit, cursor_of));
                }
                if (owner.row, entry.number) > position {
                    found.push(((owner.row, entry.number), record(client, known, &owner, &entry).await?));
                }
            }
        }
    }
    Ok(page(found, limit, cursor_of))
}

/// Accounts from row number `from` on that together have about `wanted` entries: at least one account, if there is any.
async fn owners<C: GenericClient>(client: &C, from: i64, count: usize) -> Result<Vec<Owner>> {
    let sql = "SELECT m.account, a.org_id, m.entries, m.tail FROM meter m JOIN account a ON a.id = m.account \
               WHERE m.account >= $1 ORDER BY m.account LIMIT $2";
    let (mut owners, mut entries) = (Vec::new(), 0);
    for row in all(client, sql, &[&from, &ACCOUNTS]).await? {
        let owner =
            Owner { row: row.try_get(0)?, id: parsed(&row, 1)?, entries: row.try_get(2)?, tail: row.try_get(3)? };
        entries += usize::try_from(owner.entries.min(ACTIVITY_KEPT.into())).unwrap_or_default();
        owners.push(owner);
        // Allow for one more account's entries, since some of the first account's may already be exported.
        if entries > count.saturating_add(ACTIVITY_KEPT as usize) {
            break;
        }
    }
    Ok(owners)
}

/// Unpacks entries that are stored newest first, keeps the recent ones, and returns them oldest first.
fn oldest_first(packed: &[Vec<u8>], entries: i64) -> Result<Vec<Entry<'_>>> {
    let mut found = Vec::new();
    for packed in packed {
        found.extend(unpack(packed)?);
    }
    found.retain(|entry| entry.number > entries - i64::from(ACTIVITY_KEPT));
    found.reverse();
    Ok(found)
}

async fn record<C: GenericClient>(client: &C, known: &Known, owner: &Owner, entry: &Entry<'_>) -> Result<Record> {
    let line = known.line(client, entry.line).await?;
    let newer = u32::try_from(owner.entries - entry.number)
        .map_err(|_| corrupt(format_args!("entry {} of {} of account {}", entry.number, owner.entries, owner.id)))?;
    Ok(Record::Activity(ActivityRecord {
        account: owner.id.clone(),
        newer,
        amount: Credits::from_atoms(entry.amount),
        kind: entry.kind,
        calls: entry.calls.unsigned_abs(),
        request_path: entry.path.get(line.route_template.clone()),
        line,
        key: entry.key,
        created_at: Timestamp::from_unix_millis(entry.created_at),
    }))
}

fn cursor_of(&(account, number): &(i64, i64)) -> Cursor {
    Position(vec![Part::Number(account), Part::Number(number)]).cursor()
}

fn position_of(cursor: &Cursor) -> Result<(i64, i64)> {
    match *Position::of(cursor, 2)?.0 {
        [Part::Number(account), Part::Number(number)] => Ok((account, number)),
        _ => Err(unknown_cursor().into()),
    }
}
