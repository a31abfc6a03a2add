//! `metering admin plan`: shows and changes the plans.

mod import;
mod list;
mod listed;
mod sale;
mod set;
mod unconfigured;

use crate::commands::commands;

commands! {
    /// Show and change the plans.
    #[command(after_help = "\
Example:
  metering admin plan list --all")]
    PlanArgs with session {
        List(list::ListArgs),
        Set(Box<set::SetArgs>),
        Remove(sale::RemoveArgs),
        Activate(sale::ActivateArgs),
        Import(import::ImportArgs),
    }
}
