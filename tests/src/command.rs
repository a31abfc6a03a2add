//! Runs the programs of the workspace to their end.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::program::program;

/// The result of a program that exited.
#[derive(Debug)]
pub struct ProgramOutput {
    /// Its exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl ProgramOutput {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// A program of the workspace, without settings from the caller's environment.
pub(crate) fn command(name: &str) -> Command {
    command_at(&program(name))
}

/// Like [`command`], for a program at any path.
pub(crate) fn command_at(program: &Path) -> Command {
    let mut command = Command::new(program);
    let settings = std::env::vars_os().map(|(name, _)| name);
    for setting in settings.filter(|name| Path::new(name).to_string_lossy().starts_with("METERING_")) {
        command.env_remove(setting);
    }
    command.stdin(Stdio::null());
    command
}
