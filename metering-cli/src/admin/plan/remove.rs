//! `plan remove`: removes a plan.

use std::io::Write;

use clap::Args;
use metering_admin::calls::plans::RemovePlan;

use super::key_args::KeyArgs;
use crate::admin::session::Session;
use crate::failure::Failure;

/// Remove a plan; to take it off sale for a while, use `activate --off`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  metering admin plan remove starter --chain-id 1")]
pub(crate) struct RemoveArgs {
    #[command(flatten)]
    key: KeyArgs,
}

impl RemoveArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let key = self.key.key();
        session.administrator().await?.act::<RemovePlan>(key.clone().into()).await?;
        Ok(writeln!(out, "Plan {key} was removed.")?)
    }
}
