//! Where blocks go: a file, or standard output.

use std::fs::File;
use std::io::Write;

use crate::client::charging::catch_up::block::Block;
use crate::client::charging::catch_up::cursor::Output;
use crate::client::charging::catch_up::file::OutputFile;
use crate::failure::Failure;

/// An open output for blocks.
pub(super) enum Sink<'o> {
    File(OutputFile),
    Stdout(Stdout<'o>),
}

/// Standard output. There is no way to know whether a line arrived: after an interruption, the next run may write the
/// last line again, but never omits one.
pub(super) struct Stdout<'o> {
    out: &'o mut dyn Write,
    /// The file that it is redirected to, if any.
    file: Option<File>,
}

impl<'o> Stdout<'o> {
    pub(super) fn new(out: &'o mut dyn Write) -> Self {
        Self { out, file: redirected() }
    }
}

impl Sink<'_> {
    /// The cursor's record of it.
    pub(super) fn output(&self) -> Output {
        match self {
            Self::File(file) => Output::File(file.written()),
            Self::Stdout(_) => Output::Stdout,
        }
    }

    /// Whether a cursor refers to it.
    pub(super) fn is(&self, output: &Output) -> bool {
        match (self, output) {
            (Self::File(file), Output::File(written)) => file.is(written),
            (Self::Stdout(_), Output::Stdout) => true,
            _ => false,
        }
    }

    /// Appends a block, and returns once it is as durable as the output allows.
    pub(super) fn append(&mut self, block: &Block) -> Result<(), Failure> {
        match self {
            Self::File(file) => file.append(block.number, block.line()),
            Self::Stdout(Stdout { out, file }) => {
                out.write_all(block.line())?;
                out.flush()?;
                Ok(file.as_ref().map_or(Ok(()), File::sync_data)?)
            }
        }
    }
}

/// The file that standard output is redirected to, as with `>> blocks.jsonl`. Only a file can be synced to disk.
#[cfg(unix)]
fn redirected() -> Option<File> {
    use std::os::fd::AsFd;
    let file = File::from(std::io::stdout().as_fd().try_clone_to_owned().ok()?);
    file.metadata().is_ok_and(|metadata| metadata.is_file()).then_some(file)
}

#[cfg(not(unix))]
fn redirected() -> Option<File> {
    None
}
