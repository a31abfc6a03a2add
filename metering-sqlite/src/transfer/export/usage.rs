//! The query for daily totals.

use metering_core::transfer::Record;
use metering_core::usage::DailyTotal;
use metering_sql::transfer::Source;
use metering_sql::{Executor, Row};

use crate::usage::lines::line;

/// `CROSS JOIN` makes SQLite join in the order written. The first table is the one that has the section's order.
pub(super) fn source() -> Source {
    Source {
        columns: "a.org_id, n.route_template, n.http_method, n.source, u.day, u.key, u.calls, u.amount".to_owned(),
        tables: "usage_daily u CROSS JOIN account a ON a.id = u.account CROSS JOIN usage_line n ON n.id = u.line",
        keys: &["u.day", "u.account", "n.route_template", "n.http_method", "n.source", "u.key"],
        indexed: 2,
        read,
    }
}

fn read(_: &mut dyn Executor, row: &Row) -> metering_sql::Result<Record> {
    Ok(Record::Usage(DailyTotal {
        account: row.get(0)?,
        line: line(row, 1)?,
        day: row.get(4)?,
        key: row.get(5)?,
        calls: row.get(6)?,
        credits_used: row.get(7)?,
    }))
}
