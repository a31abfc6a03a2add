//! Limits on tokens per minute: reads the windows that a batch counts in, and writes those that it changed.
//!
//! They are read after the meters of their accounts are locked, and written before the locks are released. Only holds that
//! count towards a limit need them: without any, a batch takes no round trip for them, and no statement. Which accounts
//! have a limit is read with the locks. The meters of those accounts are not kept: a commit that skips this read would
//! overlook a limit. A key's limit is cached with the key.

use std::collections::{BTreeMap, BTreeSet};

use metering_core::charging::{Changes, Posting, TokenScope, Window};

use super::batch::Item;
use crate::charging::access::Access;
use crate::connection::session::{Client, GenericClient, Prepared};
use crate::connection::value::Value;
use crate::error::{Result, corrupt};
use crate::rows::{all, unsigned};

/// Windows by account and scope. One that is missing is empty.
pub(super) type TokenWindows = BTreeMap<(i64, TokenScope), Window>;

/// `OFFSET 0` keeps the database from reading the whole table instead, which it would plan while the table is small.
const WINDOWS: &str = "SELECT w.account, w.key, w.minute, w.tokens \
     FROM unnest($1::BIGINT[], $2::BIGINT[]) AS asked (account, key) \
     CROSS JOIN LATERAL (SELECT * FROM token_window t WHERE t.account = asked.account AND t.key = asked.key OFFSET 0) w";

/// No other transaction writes the same rows at this time, so the order does not matter: an account's rows are written
/// only under the lock of its meter.
const WRITE: &str = "INSERT INTO token_window (account, key, minute, tokens) \
     SELECT * FROM unnest($1::BIGINT[], $2::BIGINT[], $3::BIGINT[], $4::BIGINT[]) \
     ON CONFLICT (account, key) DO UPDATE SET minute = excluded.minute, tokens = excluded.tokens";

/// Reads windows of accounts whose meters are locked.
pub(super) async fn read(client: &Client, asked: &BTreeSet<(i64, TokenScope)>) -> Result<TokenWindows> {
    let mut windows = TokenWindows::new();
    if asked.is_empty() {
        return Ok(windows);
    }
    let (accounts, keys): (Vec<i64>, Vec<i64>) =
        asked.iter().map(|(account, scope)| (*account, scope.number())).unzip();
    for row in all(client, WINDOWS, &[&accounts, &keys]).await? {
        let number: i64 = row.try_get(1)?;
        let scope = TokenScope::from_number(number)
            .ok_or_else(|| corrupt(format_args!("token_window.key: {number} is not a key")))?;
        let window = Window { index: row.try_get(2)?, count: unsigned(&row, 3)? };
        windows.insert((row.try_get(0)?, scope), window);
    }
    Ok(windows)
}

impl Item<'_> {
    /// The key and parent keys with a limit on tokens, as far as they are cached, if the posting opens a hold that uses
    /// tokens.
    pub(super) fn limited_keys<'a>(&self, access: &'a Access) -> impl Iterator<Item = TokenScope> + use<'a> {
        let charged = match self.posting {
            Posting::Charge(charge) if charge.counted_tokens().is_some() => self.account.zip(self.key),
            _ => None,
        };
        let keys = charged.into_iter().flat_map(move |(account, key)| access.chain(account, key));
        keys.filter(|(_, key)| key.tokens_per_minute() != 0).map(|(number, _)| TokenScope::Key(number))
    }
}

/// The statement that writes windows.
pub(super) struct TokenWrite<'c> {
    statement: Option<Prepared<'c>>,
    columns: [Vec<i64>; 4],
}

impl<'c> TokenWrite<'c> {
    /// Prepares it, if there is anything to write.
    pub(super) async fn prepare(client: &'c Client, changes: &Changes<i64, i64>) -> Result<Self> {
        let mut columns: [Vec<i64>; 4] = Default::default();
        for (account, scope, window) in &changes.tokens {
            let values = [*account, scope.number(), window.index, window.count.into()];
            for (column, value) in columns.iter_mut().zip(values) {
                column.push(value);
            }
        }
        let statement = if changes.tokens.is_empty() { None } else { Some(client.prepare(WRITE).await?) };
        Ok(Self { statement, columns })
    }

    pub(super) async fn run(&self, client: &Client) -> std::result::Result<u64, tokio_postgres::Error> {
        let [accounts, keys, minutes, tokens] = &self.columns;
        let values: [&dyn Value; 4] = [accounts, keys, minutes, tokens];
        client.execute_if_any(self.statement.as_ref(), &values).await
    }
}
