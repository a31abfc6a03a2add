//! `catalogue versions`: the catalogues that were, are or will be in force.

use std::io::Write;

use clap::Args;
use metering_admin::calls::prices::ListVersions;

use crate::admin::session::Session;
use crate::failure::Failure;
use crate::output::{Format, write_json};
use crate::table::{Column, Table};

/// List the price versions: the catalogues that were, are or will be in force.
#[derive(Debug, Args)]
#[command(after_help = "\
A version is recorded when a server starts or reloads with a changed file, or when a catalogue is applied. Usage by day
and the header X-BDS-Price-Version name it.

Examples:
  metering admin catalogue versions
  metering admin catalogue versions --json")]
pub(crate) struct VersionsArgs {
    #[command(flatten)]
    format: Format,
}

const COLUMNS: &[Column] = &[
    Column::number("VERSION"),
    Column::state("STATUS"),
    Column::time("SINCE"),
    Column::text("APPLIED BY").optional(1),
    Column::word("SHA3-256").optional(2),
];

impl VersionsArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let document = session.administrator().await?.get::<ListVersions>(()).await?;
        if self.format.json {
            return write_json(out, &document);
        }
        if document.versions.is_empty() {
            return Ok(writeln!(out, "No server has recorded a catalogue yet.")?);
        }
        let mut table = Table::new(COLUMNS);
        for version in &document.versions {
            let by = version.applied_by.as_deref().unwrap_or("configuration");
            let hash: String = version.hash.chars().take(16).collect();
            table.row([&version.number, &version.status, &version.since, &by, &hash]);
        }
        table.write(out)
    }
}
