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

/// Ends a list of this many entries, newest first; `next` is set if there are more.
pub(crate) fn newest(out: &mut dyn Write, shown: usize, next: Option<&String>) -> Result<(), Failure> {
    out.flush()?;
    if next.is_some() {
        notice(&format!("These are the newest {shown}; there are more."));
    }
    Ok(())
}

/// Writes `document` as JSON: on one line, and indented on a terminal.
pub(crate) fn write_json(out: &mut dyn Write, document: &impl Serialize) -> Result<(), Failure> {
    write_json_for(Screen::current(), out, document)
}

fn write_json_for(screen: Screen, out: &mut dyn Write, document: &impl Serialize) -> Result<(), Failure> {
    let written = if screen.terminal {
        serde_json::to_writer_pretty(&mut *out, document)
    } else {
        serde_json::to_writer(&mut *out, document)
    };
    written.map_err(io::Error::from)?;
    Ok(writeln!(out)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::money::amount::Amount;

    #[test]
    fn documents_are_on_one_line_and_indented_on_a_terminal_with_every_digit() {
        let amounts: Vec<Amount> = serde_json::from_str("[1.00, 0.0000694444]").unwrap();
        for (terminal, expected) in [(false, "[1.00,0.0000694444]\n"), (true, "[\n  1.00,\n  0.0000694444\n]\n")] {
            let mut out = Vec::new();
            write_json_for(Screen { terminal, ..Screen::current() }, &mut out, &amounts).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }
}
