use clap::Args;
use metering_core::payments::PlanKey;

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
