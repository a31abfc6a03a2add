//! `catalogue models`: the prices of models that a catalogue names.

mod import;

use crate::commands::commands;

commands! {
    /// The prices of models, in a file that a catalogue names.
    #[command(after_help = "\
Example:
  metering admin catalogue models import prices.json --markup 1.2 --usd-per-credit 0.01 --dry-run")]
    ModelsArgs with session {
        Import(import::ImportArgs),
    }
}
