//! `metering keys`: the profile's key and its child keys.

pub(super) mod issued;
mod key;
mod secret;

use crate::commands::commands;

commands! {
    /// Make keys for others, with limits, and manage them.
    ///
    /// A key manages itself and its child keys, if it has the scope `manage`. A child key cannot do more than its
    /// parent, and stops working with it.
    #[command(after_help = "\
Examples:
  metering keys create --name sub-agent --limit 5 --limit-reset daily
  metering keys list")]
    KeysArgs {
        Create(secret::CreateArgs),
        List(key::ListArgs),
        Show(key::ShowArgs),
        Set(key::SetArgs),
        Disable(key::DisableArgs),
        Enable(key::EnableArgs),
        Rotate(secret::RotateArgs),
        Delete(key::DeleteArgs),
        Leaked(key::LeakedArgs),
    }
}
