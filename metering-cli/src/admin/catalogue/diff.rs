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
use crate::table::table;

/// Show the routes that a catalogue file adds, removes or reprices.
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
        table!(out, &changes, |route| {
            word("CHANGE") => route.change,
            word("METHOD") => route.http_method,
            text("ROUTE") => route.route_template,
            text("PRICE BEFORE") => route.price_before.as_deref().unwrap_or("-"),
            text("PRICE AFTER") => route.price_after.as_deref().unwrap_or("-"),
        })
    }
}
