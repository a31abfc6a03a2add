//! The query behind each section, and how its rows become records.

use metering_core::access::KeyRecord;
use metering_core::money::LedgerEntry;
use metering_core::usage::DailyTotal;

use crate::executor::Executor;
use crate::fault::Result;
use crate::record::Record as Stored;
use crate::row::Row;
use crate::transfer::record::LedgerRecord;
use crate::transfer::rows::Rows;
use crate::transfer::section::{Record, Section};
use crate::{accounts, audit, holds, keys, usage_lines};

/// The query for a section's rows.
#[derive(Debug)]
pub struct Source {
    /// The columns that `read` reads.
    pub columns: String,
    /// The source that they are read from. The first table has the section's order.
    pub tables: &'static str,
    /// The columns that the section is ordered by; together they are unique for each row.
    pub keys: &'static [&'static str],
    /// How many of the leading keys are of the first table, so that an index can have them.
    pub indexed: usize,
    /// Reads a record from a row.
    pub read: fn(&mut dyn Executor, &Row) -> Result<Record>,
}

impl Source {
    /// The query for at most `?1` rows, after the keys in `?2` and the following parameters.
    pub(crate) fn sql(&self, after: bool) -> String {
        let Self { columns, tables, keys, indexed, .. } = self;
        let values = |count: usize| (2..2 + count).map(|number| format!("?{number}")).collect::<Vec<_>>().join(", ");
        let position = if after {
            let (prefix, all) = (keys[..*indexed].join(", "), keys.join(", "));
            // The first comparison lets the index be used; the second cannot if it has keys of other tables.
            format!("WHERE ({prefix}) >= ({}) AND ({all}) > ({})", values(*indexed), values(keys.len()))
        } else {
            String::new()
        };
        let keys = keys.join(", ");
        format!("SELECT {columns}, {keys} FROM {tables} {position} ORDER BY {keys} LIMIT ?1")
    }

    /// The query for the rows of daily totals. The keys follow the columns, and are read too.
    pub(crate) fn daily_totals() -> Self {
        Self {
            columns: "a.org_id, u.calls, u.amount".to_owned(),
            tables: "usage_daily u {join} account a ON a.id = u.account {join} usage_line n ON n.id = u.line",
            keys: &[
                "u.day",
                "u.account",
                "n.route_template {bytes}",
                "n.http_method {bytes}",
                "n.source {bytes}",
                "u.key",
            ],
            indexed: 2,
            read: |_, row| {
                let (account, calls, credits_used) = (row.get(0)?, row.get(1)?, row.get(2)?);
                let (day, line, key) = (row.get(3)?, usage_lines::read(row, 5)?, row.get(8)?);
                Ok(Record::Usage(DailyTotal { account, day, line, key, calls, credits_used }))
            },
        }
    }

    /// The query for a section. `None` for recent usage, which each backend packs in its own way. That for daily totals
    /// leaves out what charges have not added to them yet.
    #[must_use]
    pub fn of(section: Section) -> Option<Self> {
        match section {
            Section::Activity => None,
            Section::Usage => Some(Self::daily_totals()),
            Section::Accounts => Some(Self::new(accounts::record_columns(), accounts::TABLES, &["a.id"], |db, row| {
                Ok(Record::Account(Box::new(accounts::record(db, row)?)))
            })),
            Section::Keys => {
                Some(Self::new(keys::columns(), keys::TABLES, &["api_key.account", "api_key.number"], |_, row| {
                    let (key, meter) = keys::metered(row)?;
                    Ok(Record::Key(Box::new(KeyRecord { key, meter })))
                }))
            }
            Section::Ledger => {
                let columns = format!("{}, {{newer}}", LedgerEntry::TABLE.column_list());
                Some(Self::new(columns, "ledger", &["ledger.id"], |_, row| {
                    let newer = row.get(LedgerEntry::TABLE.columns.len())?;
                    Ok(Record::Ledger(LedgerRecord { entry: LedgerEntry::of_row(row)?, newer }))
                }))
            }
            Section::Holds => Some(Self::new(holds::COLUMNS.to_owned(), holds::TABLES, &["h.id"], |_, row| {
                Ok(Record::Hold(Box::new(holds::hold(row)?)))
            })),
            Section::AuditLog => Some(Self::new(audit::columns(), audit::TABLES, &["audit_entry.id"], |_, row| {
                Ok(Record::AuditEntry(Box::new(audit::read(row)?)))
            })),
            section => Rows::of(section).map(Self::of_rows),
        }
    }

    fn new(
        columns: String,
        tables: &'static str,
        keys: &'static [&'static str],
        read: fn(&mut dyn Executor, &Row) -> Result<Record>,
    ) -> Self {
        Self { columns, tables, keys, indexed: keys.len(), read }
    }

    fn of_rows(rows: Rows) -> Self {
        Self::new(rows.table.column_list(), rows.table.name, rows.keys, rows.read)
    }
}
