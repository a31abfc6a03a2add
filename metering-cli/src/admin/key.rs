//! `metering admin key`: the keys of an account.

mod change;
mod create;
mod delete;
mod issued;
mod key_of_account;
mod list;
mod rotate;
mod show;

use crate::commands::commands;

commands! {
    /// List, show, create and change the keys of an account.
    #[command(after_help = "\
An account has its first key from the beginning; `metering admin account rotate-key` replaces it.

Example:
  metering admin key list org_0123456789abcdefghij")]
    KeyArgs with session {
        List(list::ListArgs),
        Show(show::ShowArgs),
        Create(create::CreateArgs),
        Set(change::SetArgs),
        Disable(change::DisableArgs),
        Enable(change::EnableArgs),
        Rotate(rotate::RotateArgs),
        Delete(delete::DeleteArgs),
    }
}
