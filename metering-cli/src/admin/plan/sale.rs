//! Commands about one plan: `plan activate` and `plan remove`.

use std::io::Write;

use clap::Args;
use metering_admin::calls::plans::{ActivatePlan, DeactivatePlan, RemovePlan};
use metering_core::payments::PlanKey;

use crate::admin::session::Session;
use crate::confirm::Confirmation;
use crate::failure::Failure;

/// Identifies a plan.
#[derive(Debug, Args)]
pub(super) struct KeyArgs {
    /// The plan's id, unique on its chain.
    #[arg(value_name = "ID")]
    pub(super) id: String,
    /// The id of the chain that it is paid on (EIP-155).
    #[arg(long, value_name = "N")]
    pub(super) chain_id: u64,
}

impl KeyArgs {
    pub(super) fn key(&self) -> PlanKey {
        PlanKey { id: self.id.clone(), chain_id: self.chain_id }
    }
}

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
