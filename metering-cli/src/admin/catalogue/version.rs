//! Commands about price versions, the catalogues that were, are or will be in force: apply, versions, show and cancel.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use metering_admin::calls::prices::{ApplyCatalogue, CancelCatalogue, ListVersions, OfVersion, ShowVersion};
use metering_admin::wire::ApplyCatalogueRequest;
use metering_core::Timestamp;
use metering_core::prices::PriceNumber;

use super::source::read;
use crate::admin::session::Session;
use crate::confirm::Confirmation;
use crate::failure::Failure;
use crate::output::{Format, write_json};
use crate::table::{table, write_pairs};

/// Make all nodes of a store serve a catalogue from a given time on.
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

impl VersionsArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let document = session.administrator().await?.get::<ListVersions>(()).await?;
        if self.format.json {
            return write_json(out, &document);
        }
        if document.versions.is_empty() {
            return Ok(writeln!(out, "No server has recorded a catalogue yet.")?);
        }
        table!(out, &document.versions, |version| {
            number("VERSION") => version.number,
            state("STATUS") => version.status,
            time("SINCE") => version.since,
            text("APPLIED BY").optional(1) => version.applied_by.as_deref().unwrap_or("configuration"),
            word("SHA3-256").optional(2) => version.hash.chars().take(16).collect::<String>(),
        })
    }
}

/// Print the catalogue of a price version, as it was applied, with its presets and models written out.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  metering admin catalogue show 3 > routes-of-version-3.json")]
pub(crate) struct ShowArgs {
    /// The version's number, as `catalogue versions` lists it.
    #[arg(value_name = "NUMBER")]
    number: u32,
}

impl ShowArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let version = OfVersion { number: PriceNumber(self.number) };
        let catalogue = session.administrator().await?.get::<ShowVersion>(version).await?;
        out.write_all(catalogue.as_bytes())?;
        Ok(out.flush()?)
    }
}

/// Cancel a price version before it takes effect.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  metering admin catalogue cancel 4 --reason \"Postponed\"")]
pub(crate) struct CancelArgs {
    /// The version's number, as `catalogue versions` lists it.
    #[arg(value_name = "NUMBER")]
    number: u32,
    #[command(flatten)]
    confirmation: Confirmation,
    #[command(flatten)]
    format: Format,
}

impl CancelArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let administrator = session.administrator().await?;
        self.confirmation.ask(&format!("Cancel price version {}?", self.number)).await?;
        let cancelled = administrator.act::<CancelCatalogue>(OfVersion { number: PriceNumber(self.number) }).await?;
        if self.format.json {
            return write_json(out, &cancelled);
        }
        Ok(writeln!(out, "Price version {} will not take effect.", self.number)?)
    }
}
