//! Reads how many requests accounts made to routes with volume tiers. Commits write that.

use metering_core::charging::{CountedRoute, Volume};
use metering_core::{AccountId, Month};

use crate::executor::Executor;
use crate::fault::{Result, corrupt};
use crate::row::Row;
use crate::values;

/// The requests of an account to all its counted routes, in the order of the routes' bytes.
pub async fn of_account(db: &mut dyn Executor, id: &AccountId) -> Result<Vec<(CountedRoute, Volume)>> {
    let sql = "SELECT v.route_template, v.http_method, v.month, v.requests, v.returned FROM route_volume v \
               WHERE v.account = (SELECT a.id FROM account a WHERE a.org_id = ?1) \
               ORDER BY v.route_template {bytes}, v.http_method {bytes}";
    db.query(sql, &values![id]).await?.iter().map(volume).collect()
}

fn volume(row: &Row) -> Result<(CountedRoute, Volume)> {
    let (template, method): (String, String) = (row.get(0)?, row.get(1)?);
    let route = CountedRoute { route_template: template.into(), http_method: method.into() };
    let returned: Option<String> = row.get(4)?;
    let volume = Volume::from_columns(Month::from_unix_months(row.get(2)?), row.get(3)?, returned.as_deref());
    Ok((route, volume.map_err(|error| corrupt(format_args!("route_volume.returned: {error}")))?))
}
