//! Usage lines and their numbers.

use std::collections::HashMap;

use metering_core::{ClientSource, UsageLine};

use crate::executor::Executor;
use crate::fault::{Result, corrupt};
use crate::row::{Row, only};
use crate::values;

/// The number of a usage line, and whether this call inserted the line. For backends whose transactions run one at a time.
pub async fn number_of(db: &mut dyn Executor, line: &UsageLine) -> Result<(i64, bool)> {
    let values = values![&*line.route_template, &*line.http_method, line.source.as_str()];
    let sql = "SELECT id FROM usage_line WHERE route_template = ?1 AND http_method = ?2 AND source = ?3";
    if let Some(row) = db.query(sql, &values).await?.first() {
        return Ok((row.get(0)?, false));
    }
    let sql = "INSERT INTO usage_line (route_template, http_method, source) VALUES (?1, ?2, ?3) RETURNING id";
    Ok((only(&db.query(sql, &values).await?)?.get(0)?, true))
}

/// The numbers of usage lines, in order, for [`Executor::line_numbers`] of such backends.
pub async fn numbers_of(db: &mut dyn Executor, lines: &[&UsageLine]) -> Result<Vec<i64>> {
    let mut numbers = Vec::with_capacity(lines.len());
    for line in lines {
        numbers.push(number_of(db, line).await?.0);
    }
    Ok(numbers)
}

/// The usage lines with these numbers.
pub async fn numbered(db: &mut dyn Executor, mut numbers: Vec<i64>) -> Result<HashMap<i64, UsageLine>> {
    numbers.sort_unstable();
    numbers.dedup();
    let sql = "SELECT id, route_template, http_method, source FROM usage_line WHERE id {in ?1}";
    let mut lines = HashMap::new();
    for row in db.query(sql, &values![numbers]).await? {
        lines.insert(row.get(0)?, read(&row, 1)?);
    }
    match numbers.iter().find(|number| !lines.contains_key(*number)) {
        Some(missing) => Err(corrupt(format_args!("usage line {missing} is missing"))),
        None => Ok(lines),
    }
}

/// Reads a line from three columns: route, method and source.
///
/// # Errors
/// When a column does not hold a text.
pub fn read(row: &Row, first: usize) -> Result<UsageLine> {
    let text = |index| row.get::<String>(first + index);
    let source = ClientSource::from_name(&text(2)?);
    Ok(UsageLine { route_template: text(0)?.into(), http_method: text(1)?.into(), source })
}
