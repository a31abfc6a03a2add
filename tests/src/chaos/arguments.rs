use std::time::Duration;

use clap::Parser;

/// Break the service under load, and check that no confirmed charge is lost or taken twice.
#[derive(Debug, Parser)]
#[command(
    name = "chaos",
    after_help = "\
Exits with 1 when a campaign finds a loss, or does not catch its planted bug. Everything runs on loopback and in
temporary folders. The seed is printed; pass it to --seed to repeat the same faults in the same order.

Examples:
  chaos --list
  chaos power-loss --seconds 60
  chaos kill --plant
  chaos --all --seconds 30"
)]
pub struct Arguments {
    /// Campaigns to run
    #[arg(value_name = "CAMPAIGN", required_unless_present_any = ["list", "smoke", "all"])]
    pub(super) campaigns: Vec<String>,
    /// List the campaigns and their planted bugs
    #[arg(long, conflicts_with_all = ["smoke", "all"])]
    pub(super) list: bool,
    /// Run every campaign for about a second, without and with its planted bug
    #[arg(long, conflicts_with = "all")]
    pub(super) smoke: bool,
    /// Run every campaign in full, without and with its planted bug
    #[arg(long)]
    pub(super) all: bool,
    /// How long each campaign injects faults; the check afterwards takes a little extra time
    #[arg(long)]
    pub(super) seconds: Option<u64>,
    /// Repeat the random choices of an earlier run
    #[arg(long)]
    pub(super) seed: Option<u64>,
    /// Plant the campaign's bug: the run must then report losses
    #[arg(long, conflicts_with_all = ["smoke", "all"])]
    pub(super) plant: bool,
}

impl Arguments {
    /// How long a campaign lasts; smoke runs have their own default.
    pub(super) fn duration(&self) -> Duration {
        Duration::from_secs(self.seconds.unwrap_or(if self.smoke { 1 } else { 20 }))
    }
}
