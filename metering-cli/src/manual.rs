//! `metering manual`: writes manual pages.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, Command};

use crate::failure::Failure;

/// Write the manual pages of all commands into a folder.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  metering manual ~/.local/share/man/man1")]
pub(crate) struct Manual {
    /// The folder. It must exist.
    folder: PathBuf,
}

impl Manual {
    /// Writes one page for `command`, and one for each command below it.
    pub(crate) fn run(self, command: Command, out: &mut dyn Write) -> Result<(), Failure> {
        let folder = self.folder.display();
        // `help` needs no page.
        clap_mangen::generate_to(command.disable_help_subcommand(true), &self.folder)
            .map_err(|error| Failure::Failed(format!("cannot write manual pages to {folder}: {error}")))?;
        Ok(writeln!(out, "The manual pages are in {folder}. Read them with: man metering")?)
    }
}
