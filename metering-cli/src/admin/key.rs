//! `metering admin key`: the keys of an account.

mod secret;
mod terms;

use crate::commands::commands;

commands! {
    /// List, show, create and change the keys of an account.
    #[command(after_help = "\
An account has its first key from the beginning; `metering admin account rotate-key` replaces it.

Example:
  metering admin key list org_0123456789abcdefghij")]
    KeyArgs with session {
        List(terms::ListArgs),
        Show(terms::ShowArgs),
        Create(secret::CreateArgs),
        Set(terms::SetArgs),
        Disable(terms::DisableArgs),
        Enable(terms::EnableArgs),
        Rotate(secret::RotateArgs),
        Delete(terms::DeleteArgs),
    }
}
