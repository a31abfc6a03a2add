//! Rows of `route_volume`: reading them, and the columns that a batch writes.

use metering_core::charging::{CountedRoute, Volume};
use metering_core::clock::Month;
use tokio_postgres::Row;

use crate::connection::value::Value;
use crate::error::{Result, corrupt};
use crate::rows::unsigned;

/// The columns that [`volume`] reads from `route_volume v`.
pub(crate) const VOLUME_COLUMNS: &str = "v.route_template, v.http_method, v.month, v.requests, v.returned";

/// Reads a route and its count from [`VOLUME_COLUMNS`], which start at `first`.
pub(crate) fn volume(row: &Row, first: usize) -> Result<(CountedRoute, Volume)> {
    let (template, method): (&str, &str) = (row.try_get(first)?, row.try_get(first + 1)?);
    let route = CountedRoute { route_template: template.into(), http_method: method.into() };
    let month = Month::from_unix_months(row.try_get(first + 2)?);
    let volume = Volume::from_columns(month, unsigned(row, first + 3)?, row.try_get(first + 4)?);
    Ok((route, volume.map_err(|error| corrupt(format_args!("route_volume.returned: {error}")))?))
}

/// Writes the counts that a batch changed. No other transaction writes the same rows at this time, so the order does
/// not matter: an account's rows are written only under the lock of its meter.
pub(crate) const VOLUMES: &str = "INSERT INTO route_volume (account, route_template, http_method, month, requests, returned) \
     SELECT * FROM unnest($1::BIGINT[], $2::TEXT[], $3::TEXT[], $4::BIGINT[], $5::BIGINT[], $6::TEXT[]) \
     ON CONFLICT (account, route_template, http_method) \
     DO UPDATE SET month = excluded.month, requests = excluded.requests, returned = excluded.returned";

/// The columns of [`VOLUMES`].
#[derive(Default)]
pub(crate) struct VolumeRows<'v> {
    accounts: Vec<i64>,
    templates: Vec<&'v str>,
    methods: Vec<&'v str>,
    months: Vec<i64>,
    requests: Vec<i64>,
    returned: Vec<Option<String>>,
}

impl<'v> VolumeRows<'v> {
    pub(crate) fn new(changes: &'v [(i64, CountedRoute, Volume)]) -> Self {
        let mut rows = Self::default();
        for (account, route, volume) in changes {
            rows.accounts.push(*account);
            rows.templates.push(&route.route_template);
            rows.methods.push(&route.http_method);
            rows.months.push(volume.month.unix_months());
            rows.requests.push(volume.requests.into());
            rows.returned.push(volume.returned_column());
        }
        rows
    }

    pub(crate) fn values(&self) -> [&dyn Value; 6] {
        [&self.accounts, &self.templates, &self.methods, &self.months, &self.requests, &self.returned]
    }
}
