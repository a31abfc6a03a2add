//! Reads how many requests accounts made to routes with volume tiers. Commits write that.

use metering_core::AccountId;
use metering_core::charging::{CountedRoute, Volume};

use crate::executor::Executor;
use crate::fault::Result;
use crate::record::{Record, list, table};
use crate::row::Reader;
use crate::table::Table;
use crate::transfer::VolumeRecord;
use crate::value::Value;
use crate::values;

impl Record for VolumeRecord {
    const TABLE: Table = table!("route_volume" by ["account", "route_template", "http_method"] {
        Account(account), Own(route_template), Own(http_method), Own(month), Own(requests), Own(returned)
    });

    fn values(&self) -> Result<Vec<Value>> {
        let Self { account, route: CountedRoute { route_template, http_method }, volume } = self;
        let mut values = values![account, &**route_template, &**http_method];
        values.extend(values![volume.month, volume.requests, volume.returned_column()]);
        Ok(values)
    }

    fn read(row: &mut Reader<'_>) -> Result<Self> {
        let (account, template, method): (_, String, String) = (row.next()?, row.next()?, row.next()?);
        let route = CountedRoute { route_template: template.into(), http_method: method.into() };
        let (month, requests, returned): (_, _, Option<String>) = (row.next()?, row.next()?, row.next()?);
        let volume = Volume::from_columns(month, requests, returned.as_deref()).map_err(|error| row.corrupt(error))?;
        Ok(Self { account, route, volume })
    }
}

/// The requests of an account to all its counted routes, in the order of the routes' bytes.
pub async fn of_account(db: &mut dyn Executor, id: &AccountId) -> Result<Vec<(CountedRoute, Volume)>> {
    let rest = "WHERE account = (SELECT a.id FROM account a WHERE a.org_id = ?1) \
                ORDER BY route_template {bytes}, http_method {bytes}";
    let found: Vec<VolumeRecord> = list(db, rest, &values![id]).await?;
    Ok(found.into_iter().map(|VolumeRecord { route, volume, .. }| (route, volume)).collect())
}
