//! The rows of requests to routes with volume tiers. Commits write them, and they are never cached, so that no two
//! processes give the same number to two requests.

use metering_core::charging::{CountedRoute, Volume};
use metering_core::clock::Month;
use rusqlite::{Connection, Row, params};

use crate::error::{Result, corrupt_column, store_error};
use crate::rows::first;

/// The columns that [`of_row`] reads from `route_volume`.
pub(crate) const COLUMNS: &str = "v.route_template, v.http_method, v.month, v.requests, v.returned";

/// The requests of an account to a route; the default if there were none.
pub(crate) fn of_route(connection: &Connection, account: i64, route: &CountedRoute) -> Result<Volume> {
    let sql = format!(
        "SELECT {COLUMNS} FROM route_volume v WHERE v.account = ?1 AND v.route_template = ?2 AND v.http_method = ?3"
    );
    let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
    let values = params![account, &*route.route_template, &*route.http_method];
    let stored = first(&mut statement, values, |row| of_row(row, 0))?;
    Ok(stored.map(|(_, volume)| volume).unwrap_or_default())
}

/// Reads a row from the columns at `from` on.
pub(crate) fn of_row(row: &Row<'_>, from: usize) -> rusqlite::Result<Result<(CountedRoute, Volume)>> {
    let text = |index| row.get::<_, String>(from + index);
    let route = CountedRoute { route_template: text(0)?.into(), http_method: text(1)?.into() };
    let (month, requests) = (Month::from_unix_months(row.get(from + 2)?), row.get(from + 3)?);
    let returned: Option<String> = row.get(from + 4)?;
    let volume = Volume::from_columns(month, requests, returned.as_deref());
    Ok(volume.map(|volume| (route, volume)).map_err(|error| corrupt_column("route_volume.returned", error)))
}

/// Writes the counts of a batch.
pub(crate) fn write(connection: &Connection, changes: &[(i64, CountedRoute, Volume)]) -> rusqlite::Result<()> {
    for (account, route, volume) in changes {
        let sql = "INSERT INTO route_volume (account, route_template, http_method, month, requests, returned) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (account, route_template, http_method) \
                   DO UPDATE SET month = excluded.month, requests = excluded.requests, returned = excluded.returned";
        let route = [&*route.route_template, &*route.http_method];
        let (month, returned) = (volume.month.unix_months(), volume.returned_column());
        let values = params![account, route[0], route[1], month, volume.requests, returned];
        connection.prepare_cached(sql)?.execute(values)?;
    }
    Ok(())
}
