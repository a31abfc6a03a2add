//! The runner's command line.

use std::time::Duration;

use clap::Parser;

/// Break the service under load and check that no confirmed charge is lost and none is taken twice.
#[derive(Debug, Parser)]
#[command(
    name = "chaos",
    after_help = "\
Exits with 1 when a campaign finds a loss, or a planted bug goes unnoticed. Everything runs on loopback and in temporary
folders. The seed is printed: with --seed, the same faults come in the same order.

Examples:
  chaos --list
  chaos power-loss --seconds 60
  chaos kill --plant
  chaos --all --seconds 30"
)]
pub struct Arguments {
    /// The campaigns to run
    #[arg(value_name = "CAMPAIGN", required_unless_present_any = ["list", "smoke", "all"])]
    pub(super) campaigns: Vec<String>,
    /// List the campaigns and their planted bugs
    #[arg(long, conflicts_with_all = ["smoke", "all"])]
    pub(super) list: bool,
    /// Run every campaign for a moment, each without and with its planted bug
    #[arg(long, conflicts_with = "all")]
    pub(super) smoke: bool,
    /// Run every campaign, each without and then with its planted bug
    #[arg(long)]
    pub(super) all: bool,
    /// How long each campaign makes faults; the check afterwards takes a little more
    #[arg(long)]
    pub(super) seconds: Option<u64>,
    /// Repeat the choices of an earlier run
    #[arg(long)]
    pub(super) seed: Option<u64>,
    /// Plant the campaign's bug: the run must then report losses
    #[arg(long, conflicts_with_all = ["smoke", "all"])]
    pub(super) plant: bool,
}

impl Arguments {
    /// How long a campaign lasts; smoke runs say for themselves.
    pub(super) fn duration(&self) -> Duration {
        Duration::from_secs(self.seconds.unwrap_or(if self.smoke { 1 } else { 20 }))
    }
}
