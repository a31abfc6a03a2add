//! Rows of `hold`: reading them, and the columns that a batch writes.

use metering_core::charging::{Hold, HoldChange, HoldId, SettleReason, SettledHold};
use metering_core::{ClientSource, Credits, UsageLine};
use tokio_postgres::Row;

use crate::connection::value::Value;
use crate::error::{Result, corrupt};
use crate::rows::{amount, bytes, key_number, parse, parsed, timestamp};

/// The hold with the id of `asked`, for a join. `OFFSET 0` keeps the database from reading the whole table instead,
/// which it would plan while the table is small.
pub(crate) const ASKED_HOLD: &str = "CROSS JOIN LATERAL (SELECT * FROM hold WHERE hold.id = asked.id OFFSET 0) h";

/// Reads a hold from [`COLUMNS`](metering_sql::holds::COLUMNS), which start at `first`.
pub(crate) fn hold(row: &Row, first: usize) -> Result<Hold> {
    let (route, method): (&str, &str) = (row.try_get(first + 5)?, row.try_get(first + 6)?);
    let source = ClientSource::from_name(row.try_get(first + 7)?);
    let line = UsageLine { route_template: route.into(), http_method: method.into(), source };
    let path: Option<&str> = row.try_get(first + 8)?;
    Ok(Hold {
        id: HoldId::from_bytes(bytes(row, first)?),
        account: parsed(row, first + 1)?,
        key: key_number(row, first + 2)?,
        amount: amount(row, first + 3)?,
        fallback: amount(row, first + 4)?,
        request_path: path.map_or_else(|| line.route_template.clone(), Into::into),
        line,
        created_at: timestamp(row, first + 9)?,
        expires_at: timestamp(row, first + 10)?,
        settled: settled(row, first + 11)?,
        tokens: row.try_get::<_, Option<&str>>(first + 14)?.map(parse).transpose()?,
        upstream: row.try_get::<_, Option<&str>>(first + 15)?.map(Into::into),
    })
}

/// The schema ensures that all three columns are set or none is.
fn settled(row: &Row, first: usize) -> Result<Option<SettledHold>> {
    let Some(atoms) = row.try_get::<_, Option<i64>>(first)? else { return Ok(None) };
    let name: &str = row.try_get(first + 1)?;
    let reason = SettleReason::from_name(name).ok_or_else(|| corrupt(format_args!("unknown reason {name:?}")))?;
    Ok(Some(SettledHold { captured: Credits::from_atoms(atoms), reason, at: timestamp(row, first + 2)? }))
}

/// The stored form of the requested path: NULL for the template of the route.
pub(crate) fn path_column(hold: &Hold) -> Option<&str> {
    Some(&*hold.request_path).filter(|path| *path != &*hold.line.route_template)
}

/// Writes holds that a batch opened or changed. Both with `ON CONFLICT`, which always uses the index: an `UPDATE` that
/// is planned while the table is small would keep scanning all of it for a while.
pub(crate) const HOLDS: &str = "INSERT INTO hold AS old (id, account, key, line, amount, fallback, request_path, \
     created_at, expires_at, captured, reason, settled_at, tokens, upstream) \
     SELECT * FROM unnest($1::BYTEA[], $2::BIGINT[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[], $6::BIGINT[], $7::TEXT[], \
     $8::BIGINT[], $9::BIGINT[], $10::BIGINT[], $11::TEXT[], $12::BIGINT[], $13::TEXT[], $14::TEXT[]) \
     ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at, captured = excluded.captured, \
     reason = excluded.reason, settled_at = excluded.settled_at, upstream = excluded.upstream WHERE old.account = excluded.account";

/// The columns of [`HOLDS`].
#[derive(Default)]
pub(crate) struct HoldRows<'h> {
    ids: Vec<&'h [u8]>,
    accounts: Vec<i64>,
    keys: Vec<i64>,
    lines: Vec<i64>,
    amounts: Vec<i64>,
    fallbacks: Vec<i64>,
    paths: Vec<Option<&'h str>>,
    created_at: Vec<i64>,
    expire_at: Vec<i64>,
    captured: Vec<Option<i64>>,
    reasons: Vec<Option<&'h str>>,
    settled_at: Vec<Option<i64>>,
    tokens: Vec<Option<String>>,
    upstreams: Vec<Option<&'h str>>,
}

impl<'h> HoldRows<'h> {
    pub(crate) fn new(changes: &'h [HoldChange<i64, i64>]) -> Self {
        let mut rows = Self::default();
        for HoldChange { account, line, hold, is_new: _ } in changes {
            rows.ids.push(hold.id.as_bytes());
            rows.accounts.push(*account);
            rows.keys.push(hold.key.get().into());
            rows.lines.push(*line);
            rows.amounts.push(hold.amount.atoms());
            rows.fallbacks.push(hold.fallback.atoms());
            rows.paths.push(path_column(hold));
            rows.created_at.push(hold.created_at.unix_millis());
            rows.expire_at.push(hold.expires_at.unix_millis());
            rows.captured.push(hold.settled.map(|settled| settled.captured.atoms()));
            rows.reasons.push(hold.settled.map(|settled| settled.reason.as_str()));
            rows.settled_at.push(hold.settled.map(|settled| settled.at.unix_millis()));
            rows.tokens.push(hold.tokens.as_ref().map(ToString::to_string));
            rows.upstreams.push(hold.upstream.as_deref());
        }
        rows
    }

    pub(crate) fn values(&self) -> [&dyn Value; 14] {
        [
            &self.ids,
            &self.accounts,
            &self.keys,
            &self.lines,
            &self.amounts,
            &self.fallbacks,
            &self.paths,
            &self.created_at,
            &self.expire_at,
            &self.captured,
            &self.reasons,
            &self.settled_at,
            &self.tokens,
            &self.upstreams,
        ]
    }
}
