//! Output for programs (one JSON document per command, on one line, and indented on a terminal) and notices for people.
//!
//! Values are serialized straight to text: a detour through `serde_json::Value` would turn exact amounts into floats.

use std::io::{self, Write};

use clap::Args;
use serde::Serialize;

use crate::client::session::follow_up;
use crate::failure::Failure;
use crate::screen::Screen;

/// The choice between text for people and JSON for programs.
#[derive(Debug, Args)]
pub(crate) struct Format {
    /// Print JSON with exact numbers: on one line, and indented on a terminal.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Prints a notice for people on stderr, separate from the output.
pub(crate) fn notice(text: &str) {
    // If stderr is closed too, there is nowhere left to report.
    let _ = writeln!(io::stderr(), "{}", follow_up::addressed(text));
}

/// Writes `document` as JSON: on one line, and indented on a terminal.
pub(crate) fn write_json(out: &mut dyn Write, document: &impl Serialize) -> Result<(), Failure> {
    let written = if Screen::current().terminal {
        serde_json::to_writer_pretty(&mut *out, document)
    } else {
        serde_json::to_writer(&mut *out, document)
    };
    written.map_err(io::Error::from)?;
    Ok(writeln!(out)?)
}
