//! `metering completions`: prints shell completion scripts.

use std::io::Write;

use clap::{Args, Command};
use clap_complete::Shell;

use crate::failure::Failure;

/// Print the completion script for a shell.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  metering completions bash > ~/.local/share/bash-completion/completions/metering
  metering completions fish > ~/.config/fish/completions/metering.fish")]
pub(crate) struct Completions {
    /// The shell.
    shell: Shell,
}

impl Completions {
    /// Prints the script of `command`.
    pub(crate) fn run(self, command: &mut Command, out: &mut dyn Write) -> Result<(), Failure> {
        // Into memory first: the generator panics if its writer fails, as it does when a pipe is closed.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, command, "metering", &mut script);
        Ok(out.write_all(&script)?)
    }
}
