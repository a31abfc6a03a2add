//! `metering admin account`: creates, shows and changes accounts.

mod alert;
mod create;
pub(super) mod document;
mod entry;
mod erase;
mod issued;
mod limits;
mod list;
mod note;
mod revoke;
mod rotate_key;
mod show;

use crate::commands::commands;

commands! {
    /// Create, show and change accounts.
    #[command(after_help = "\
Example:
  metering admin account list")]
    AccountArgs with session {
        Create(create::CreateArgs),
        List(list::ListArgs),
        Show(show::ShowArgs),
        Limits(limits::LimitsArgs),
        Alert(alert::AlertArgs),
        Note(note::NoteArgs),
        Grant(entry::GrantArgs),
        Adjust(entry::AdjustArgs),
        Revoke(revoke::RevokeArgs),
        Erase(erase::EraseArgs),
        RotateKey(rotate_key::RotateKeyArgs),
    }
}
