//! `plan remove`: removes a plan.

use std::io::Write;

use clap::Args;
use metering_admin::calls::plans::RemovePlan;

use super::key_args::KeyArgs;
use crate::admin::session::Session;
use crate::confirm::Confirmation;
use crate::failure::Failure;

/// Remove a plan; to take it off sale for a while, use `activate --off`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  metering admin plan remove starter --chain-id 1
  metering admin plan remove starter --chain-id 1 --yes")]
pub(crate) struct RemoveArgs {
    #[command(flatten)]
    key: KeyArgs,
    #[command(flatten)]
    confirmation: Confirmation,
}

impl RemoveArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let key = self.key.key();
        let administrator = session.administrator().await?;
        self.confirmation.ask(&format!("Permanently remove plan {key}?")).await?;
        administrator.act::<RemovePlan>(key.clone().into()).await?;
        Ok(writeln!(out, "Plan {key} was removed.")?)
    }
}
