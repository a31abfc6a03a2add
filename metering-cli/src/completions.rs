//! `metering completions`: prints shell completion scripts.

use std::io::Write;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::cli::Cli;
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
    pub(crate) fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        // Into memory first: the generator panics if its writer fails, as it does when a pipe is closed.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "metering", &mut script);
        Ok(out.write_all(&script)?)
    }
}
