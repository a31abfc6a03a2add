//! `metering admin plan`: shows and changes the plans.

mod activate;
mod import;
mod key_args;
mod list;
mod listed;
mod remove;
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
        Remove(remove::RemoveArgs),
        Activate(activate::ActivateArgs),
        Import(import::ImportArgs),
    }
}
