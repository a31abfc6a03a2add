//! `catalogue diff`: the routes and prices that a catalogue file would change.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use metering_admin::compare_catalogues;
use metering_admin::wire::RouteChange;
use serde::Serialize;

use super::source::{WithArgs, read};
use crate::admin::session::Session;
use crate::failure::Failure;
use crate::output::{Format, write_json};
use crate::table::{Column, Table};

/// Show the routes that a catalogue file adds, removes or prices in another way.
#[derive(Debug, Args)]
#[command(after_help = "\
Compares with the file of --with, with what the server of --server serves, or with the file that the configuration
names. Descriptions, parameters and examples are not compared. Routes are in order of their path.

Examples:
  metering admin catalogue diff new-routes.json --with routes.json
  metering admin catalogue diff new-routes.json --server https://admin.example.com
  metering admin catalogue diff new-routes.json --config /etc/metering/metering.toml --json")]
pub(crate) struct DiffArgs {
    /// The new catalogue file.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    with: WithArgs,
    #[command(flatten)]
    format: Format,
}

#[derive(Debug, Serialize)]
struct Document {
    with: String,
    changes: Vec<RouteChange>,
}

const COLUMNS: &[Column] = &[
    Column::word("CHANGE"),
    Column::word("METHOD"),
    Column::text("ROUTE"),
    Column::text("PRICE BEFORE"),
    Column::text("PRICE AFTER"),
];

impl DiffArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let new = read(&self.file)?;
        let Some(old) = self.with.read(session).await? else {
            return Err(Failure::Usage(
                "which catalogue is in force is not known: name its file with --with FILE, or its server with \
                 --server URL"
                    .to_owned(),
            ));
        };
        let changes = compare_catalogues(&old.catalogue, &new.catalogue);
        if self.format.json {
            return write_json(out, &Document { with: old.name, changes });
        }
        if changes.is_empty() {
            return Ok(writeln!(out, "No differences in routes and prices from {old}.")?);
        }
        let mut table = Table::new(COLUMNS);
        for change in &changes {
            let RouteChange { http_method, route_template, change, price_before, price_after } = change;
            let [before, after] = [price_before, price_after].map(|price| price.as_deref().unwrap_or("-"));
            table.row([change, http_method, route_template, &before, &after]);
        }
        table.write(out)
    }
}
