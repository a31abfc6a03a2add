//! `metering admin account`: creates, shows and changes accounts.

mod change;
pub(super) mod document;
mod entry;
mod erase;
mod list;
mod secret;

use crate::commands::commands;

commands! {
    /// Create, show and change accounts.
    #[command(after_help = "\
Example:
  metering admin account list")]
    AccountArgs with session {
        Create(secret::CreateArgs),
        List(list::ListArgs),
        Show(change::ShowArgs),
        Limits(change::LimitsArgs),
        Alert(change::AlertArgs),
        Note(change::NoteArgs),
        Grant(entry::GrantArgs),
        Adjust(entry::AdjustArgs),
        Revoke(change::RevokeArgs),
        Erase(erase::EraseArgs),
        RotateKey(secret::RotateKeyArgs),
    }
}
