//! `metering keys`: the profile's key and its child keys.

mod change;
mod create;
mod delete;
pub(super) mod issued;
mod leaked;
mod list;
mod response;
mod rotate;
mod show;

use crate::commands::commands;

commands! {
    /// Make keys for others, with limits, and manage them.
    ///
    /// A key manages itself and its child keys, if it has the scope `manage`. A child key cannot be used for
    /// more than its parent, and stops with it.
    #[command(after_help = "\
Examples:
  metering keys create --name sub-agent --limit 5 --limit-reset daily
  metering keys list")]
    KeysArgs {
        Create(create::CreateArgs),
        List(list::ListArgs),
        Show(show::ShowArgs),
        Set(change::SetArgs),
        Disable(change::DisableArgs),
        Enable(change::EnableArgs),
        Rotate(rotate::RotateArgs),
        Delete(delete::DeleteArgs),
        Leaked(leaked::LeakedArgs),
    }
}
