//! `catalogue cancel`: takes back a price version before it takes effect.

use std::io::Write;

use clap::Args;
use metering_admin::calls::prices::{CancelCatalogue, OfVersion};
use metering_core::prices::PriceNumber;

use crate::admin::session::Session;
use crate::confirm::Confirmation;
use crate::failure::Failure;
use crate::output::{Format, write_json};

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
