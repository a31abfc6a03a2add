//! What programs read: one JSON document per command, on one line; and what only people do.
//!
//! Values are serialized straight to text. A detour through `serde_json::Value` would turn exact amounts into floats.

use std::io::{self, Write};

use clap::Args;
use serde::Serialize;

use crate::client::follow_up;
use crate::failure::Failure;

/// The choice between text for people and JSON for programs.
#[derive(Debug, Args)]
pub(crate) struct Format {
    /// Print JSON, on one line, with exact numbers.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Tells the person something that is no part of the answer, on stderr.
pub(crate) fn notice(text: &str) {
    // Nothing is left to tell when even stderr is closed.
    let _ = writeln!(io::stderr(), "{}", follow_up::addressed(text));
}

/// Writes `document` as one line of JSON.
pub(crate) fn json_line(out: &mut dyn Write, document: &impl Serialize) -> Result<(), Failure> {
    serde_json::to_writer(&mut *out, document).map_err(io::Error::from)?;
    Ok(writeln!(out)?)
}
