//! `catalogue show`: the catalogue of a price version.

use std::io::Write;

use clap::Args;
use metering_admin::calls::prices::{OfVersion, ShowVersion};
use metering_core::prices::PriceNumber;

use crate::admin::session::Session;
use crate::failure::Failure;

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
