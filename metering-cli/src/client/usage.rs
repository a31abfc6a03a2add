//! `metering usage`: usage by day and by route, and recent activity.

mod activity;
mod bars;
mod summary;
mod volumes;

use std::io::Write;

use clap::Args;

use crate::client::session::options::CallOptions;
use crate::client::usage::activity::Activity;
use crate::client::usage::summary::Summary;
use crate::client::usage::volumes::Volumes;
use crate::commands::up_to;
use crate::failure::Failure;
use crate::screen::Screen;

/// Show usage by day, by route and, if several keys were used, by key.
///
/// Days are UTC days. Bars are as wide as the terminal allows, or 80 columns without a terminal; they are coloured only
/// on a terminal, and not if NO_COLOR is set.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  metering usage
  metering usage --days 90 --json
  metering usage --tiers
  metering usage --activity --limit 20")]
pub(crate) struct UsageArgs {
    /// How many days to show, including today: 1 to 90.
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = up_to(90))]
    days: u32,
    /// How many routes to show.
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Show recent activity instead: each use, purchase and bonus.
    #[arg(long, conflicts_with_all = ["days", "top"])]
    activity: bool,
    /// Show routes with volume tiers instead: this month's requests, and what the next one costs.
    #[arg(long, conflicts_with_all = ["days", "top", "activity"])]
    tiers: bool,
    /// How many activity entries to show: 1 to 1000.
    #[arg(long, value_name = "N", requires = "activity", default_value_t = 100, value_parser = up_to(1000))]
    limit: u32,
    #[command(flatten)]
    options: CallOptions,
}

impl UsageArgs {
    pub(crate) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let Self { days, top, activity, tiers, limit, options } = self;
        let client = options.client()?;
        if activity {
            let response = client.get(&format!("/credits/usage?limit={limit}")).await?;
            return options.print::<Activity>(response, out, Activity::write);
        }
        if tiers {
            return options.print::<Volumes>(client.get("/credits/usage/volumes").await?, out, Volumes::write);
        }
        let response = client.get(&format!("/credits/usage/summary?days={days}")).await?;
        options.print::<Summary>(response, out, |summary, out| summary.write(top, Screen::current(), out))
    }
}
