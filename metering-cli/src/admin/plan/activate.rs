//! `plan activate`: puts a plan on sale, or takes it off.

use std::io::Write;

use clap::Args;
use metering_admin::calls::plans::{ActivatePlan, DeactivatePlan};

use super::key_args::KeyArgs;
use crate::admin::session::Session;
use crate::failure::Failure;

/// Put a plan on sale, or take it off.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  metering admin plan activate starter --chain-id 1
  metering admin plan activate starter --chain-id 1 --off")]
pub(crate) struct ActivateArgs {
    #[command(flatten)]
    key: KeyArgs,
    /// Take it off sale.
    #[arg(long)]
    off: bool,
}

impl ActivateArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let key = self.key.key();
        let administrator = session.administrator().await?;
        let plan = key.clone().into();
        if self.off {
            administrator.act::<DeactivatePlan>(plan).await?;
        } else {
            administrator.act::<ActivatePlan>(plan).await?;
        }
        Ok(writeln!(out, "Plan {key} is {} sale.", if self.off { "off" } else { "on" })?)
    }
}
