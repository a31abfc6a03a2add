//! Usage lines and their numbers.

use metering_core::{ClientSource, UsageLine};
use metering_sql::Row;
use rusqlite::{Connection, params};

use crate::error::{Result, store_error};
use crate::rows::first;

/// The number of a usage line, and whether this call inserted the line.
pub(crate) fn number_of(connection: &Connection, line: &UsageLine) -> Result<(i64, bool)> {
    let values = params![&*line.route_template, &*line.http_method, line.source.as_str()];
    let select = "SELECT id FROM usage_line WHERE route_template = ?1 AND http_method = ?2 AND source = ?3";
    let mut statement = connection.prepare_cached(select).map_err(store_error)?;
    if let Some(number) = first(&mut statement, values, |row| row.get(0).map(Ok))? {
        return Ok((number, false));
    }
    let insert = "INSERT INTO usage_line (route_template, http_method, source) VALUES (?1, ?2, ?3)";
    connection.prepare_cached(insert).and_then(|mut s| s.insert(values)).map_err(store_error)?;
    Ok((connection.last_insert_rowid(), true))
}

/// Reads a line from three columns: route, method and source.
pub(crate) fn line(row: &Row, first: usize) -> metering_sql::Result<UsageLine> {
    let text = |index| row.get::<String>(first + index);
    let source = ClientSource::from_name(&text(2)?);
    Ok(UsageLine { route_template: text(0)?.into(), http_method: text(1)?.into(), source })
}
