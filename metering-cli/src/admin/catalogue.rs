//! `metering admin catalogue`: checks a catalogue file, shows what it would change, and applies it on all nodes.

mod check;
mod diff;
mod indented;
mod models;
mod rehearse;
mod source;
mod version;

use crate::commands::commands;

commands! {
    /// Check a catalogue file, see what it would change, and apply it on all nodes at a time.
    #[command(after_help = "\
Example:
  metering admin catalogue rehearse new-routes.json --with routes.json --days 30")]
    CatalogueArgs with session {
        Check(check::CheckArgs),
        Diff(diff::DiffArgs),
        Models(models::ModelsArgs),
        Rehearse(rehearse::RehearseArgs),
        Apply(version::ApplyArgs),
        Versions(version::VersionsArgs),
        Show(version::ShowArgs),
        Cancel(version::CancelArgs),
    }
}
