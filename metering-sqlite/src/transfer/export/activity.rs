//! The query for recent usage.

use metering_sql::transfer::{ActivityRecord, Record, Source};
use metering_sql::{Executor, Row, usage_lines};

use crate::error::corrupt;
use crate::usage::kind;

/// Reads the tables of [`recent`](super::recent).
pub(super) fn source() -> Source {
    Source {
        columns: "a.org_id, n.route_template, n.http_method, n.source, r.newer, x.amount, x.kind, x.calls, \
                  x.request_path, x.created_at, x.key"
            .to_owned(),
        tables: "temp.recent r CROSS JOIN temp.unpacked x ON x.id = r.id AND r.is_usage = 1 \
                 CROSS JOIN account a ON a.id = r.account CROSS JOIN usage_line n ON n.id = x.line",
        keys: &["r.account", "r.id"],
        indexed: 2,
        read,
    }
}

fn read(_: &mut dyn Executor, row: &Row) -> metering_sql::Result<Record> {
    let kind: u8 = row.get(6)?;
    let kind = kind::of_number(kind).ok_or_else(|| corrupt(format_args!("{kind} is not a kind of usage")))?;
    Ok(Record::Activity(ActivityRecord {
        account: row.get(0)?,
        line: usage_lines::read(row, 1)?,
        newer: row.get(4)?,
        amount: row.get(5)?,
        kind,
        calls: row.get(7)?,
        request_path: row.get::<Option<String>>(8)?.map(Into::into),
        created_at: row.get(9)?,
        key: row.get(10)?,
    }))
}
