//! `catalogue apply`: has all nodes serve a catalogue from a time on.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use metering_admin::calls::prices::ApplyCatalogue;
use metering_admin::wire::ApplyCatalogueRequest;
use metering_core::Timestamp;

use super::source::read;
use crate::admin::session::Session;
use crate::failure::Failure;
use crate::output::{Format, write_json};
use crate::table::write_pairs;

/// Have all nodes of a store serve a catalogue, from a time on.
#[derive(Debug, Args)]
#[command(after_help = "\
All servers that use the store switch at the same time, without a restart. From then on they no longer take the file that
their configuration names: to change prices, apply another catalogue. Until it takes effect, `catalogue cancel` takes it
back. A server that cannot serve it (because of a path that it uses itself, for example) says so in its log before, keeps
the old one, and is not ready.

Examples:
  metering admin catalogue apply new-routes.json
  metering admin catalogue apply new-routes.json --at 2027-01-01T00:00:00Z --reason \"Prices of 2027\"
  metering admin catalogue apply new-routes.json --server https://admin.example.com --reason \"Ticket 311\"")]
pub(crate) struct ApplyArgs {
    /// The catalogue file.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// When it takes effect: RFC 3339, at least 15 seconds ahead. By default in 30 seconds.
    #[arg(long, value_name = "TIME")]
    at: Option<Timestamp>,
    #[command(flatten)]
    format: Format,
}

impl ApplyArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let catalogue = read(&self.file)?.catalogue;
        let wanted = ApplyCatalogueRequest {
            catalogue: catalogue.json().into(),
            at: self.at.map(|at| at.to_string()),
            reason: String::new(),
        };
        let applied = session.administrator_or_new().await?.call::<ApplyCatalogue>((), wanted).await?;
        if self.format.json {
            return write_json(out, &applied);
        }
        let number = applied.number.to_string();
        write_pairs(out, &[("Price version", &number), ("Takes effect", &applied.since), ("SHA3-256", &applied.hash)])
    }
}
