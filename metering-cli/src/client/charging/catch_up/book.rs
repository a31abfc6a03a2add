//! The cursor and the output together: a block is written first and counted second, and a line that was not counted is
//! removed.

use metering_client::ServiceUrl;

use crate::client::charging::catch_up::block::{Block, BlockNumber};
use crate::client::charging::catch_up::cursor::{Cursor, CursorFile, Output};
use crate::client::charging::catch_up::file::OutputFile;
use crate::client::charging::catch_up::plan::Start;
use crate::client::charging::catch_up::sink::Sink;
use crate::failure::Failure;

/// The options about the cursor.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Options {
    /// Start at this block, if there is no cursor.
    pub(super) from: Option<BlockNumber>,
    /// Delete the cursor.
    pub(super) reset: bool,
    /// Continue in another output.
    pub(super) new_output: bool,
}

/// The cursor and the output of a run.
pub(super) struct Book<'o> {
    cursors: CursorFile,
    cursor: Cursor,
    sink: Sink<'o>,
    notices: Vec<String>,
}

impl<'o> Book<'o> {
    /// Truncates the output to the cursor's position, and saves the cursor once. That proves that both are writable,
    /// and records the output for the next run, however this one ends.
    pub(super) fn open(
        mut cursors: CursorFile,
        service: &ServiceUrl,
        mut sink: Sink<'o>,
        options: Options,
    ) -> Result<Self, Failure> {
        let mut notices = Vec::new();
        let cursor = match cursors.of(service) {
            Some(cursor) if options.reset => {
                if truncate_to_cursor(&mut sink, &cursor, &mut notices).is_none() {
                    trim_abandoned(&cursor.output);
                }
                begin(service, &mut sink, options.from)?
            }
            Some(cursor) => resume(cursor, service, &mut sink, options, &mut notices)?,
            None => begin(service, &mut sink, options.from)?,
        };
        cursors.save(&cursor)?;
        Ok(Self { cursors, cursor, sink, notices })
    }

    /// Notices for the user about how it was opened.
    pub(super) fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Where the run starts.
    pub(super) fn start(&self) -> Start {
        self.cursor.start()
    }

    /// The last block that is done.
    pub(super) const fn last_block(&self) -> Option<BlockNumber> {
        self.cursor.last_block()
    }

    /// Writes a block, then moves the cursor to it; both are on disk afterwards.
    pub(super) fn write(&mut self, block: &Block) -> Result<(), Failure> {
        self.sink.append(block)?;
        self.cursor.advance(block.number);
        self.cursor.output = self.sink.output();
        self.cursors.save(&self.cursor)
    }

    /// Moves the cursor over a block that the service does not have.
    pub(super) fn skip(&mut self, block: BlockNumber) -> Result<(), Failure> {
        self.cursor.skip(block);
        self.cursors.save(&self.cursor)
    }

    #[cfg(test)]
    pub(super) fn sink(&mut self) -> &mut Sink<'o> {
        &mut self.sink
    }
}

/// A new cursor, for an output that no cursor refers to.
fn begin(service: &ServiceUrl, sink: &mut Sink<'_>, from: Option<BlockNumber>) -> Result<Cursor, Failure> {
    if let Sink::File(file) = sink {
        let path = || file.written().path;
        if !file.is_empty() && from.is_none() {
            return Err(Failure::Conflict(format!(
                "{} is not empty, and there is no cursor for it; name a new file, or give the block to continue at \
                 with --from",
                path()
            )));
        }
        if !file.is_at_line_start()? {
            return Err(Failure::Conflict(format!(
                "the last line of {} is incomplete; name a new file",
                file.written().path
            )));
        }
    }
    Ok(Cursor::new(service, from, sink.output()))
}

/// Continues with the existing cursor, in its own output or, if requested, in another one.
fn resume(
    mut cursor: Cursor,
    service: &ServiceUrl,
    sink: &mut Sink<'_>,
    options: Options,
    notices: &mut Vec<String>,
) -> Result<Cursor, Failure> {
    let Some(last) = cursor.last_block() else {
        // Nothing is written yet, so any output is fine.
        let from = options.from.or(cursor.from());
        return match truncate_to_cursor(sink, &cursor, notices) {
            None => begin(service, sink, from),
            Some(settled) => settled.map(|()| Cursor::new(service, from, sink.output())),
        };
    };
    let is_new = match sink {
        Sink::File(file) => file.is_empty(),
        Sink::Stdout(_) => true,
    };
    match truncate_to_cursor(sink, &cursor, notices) {
        Some(Err(_)) if options.new_output && is_new => {}
        Some(settled) => return settled.map(|()| cursor),
        None if !options.new_output => {
            return Err(Failure::Conflict(format!(
                "the cursor for {service} is at block {last} in {}; continue there, or here with --new-output; use \
                another --profile for a second output, or start over with --reset",
                name(&cursor.output)
            )));
        }
        None if !is_new => {
            return Err(Failure::Conflict("the new output is not empty; name a new file".to_owned()));
        }
        None => trim_abandoned(&cursor.output),
    }
    notices.push(format!("Continuing after block {last} in {}.", name(&sink.output())));
    cursor.output = sink.output();
    Ok(cursor)
}

/// Truncates the output to the cursor's position; `None` if the cursor refers to another output.
fn truncate_to_cursor(sink: &mut Sink<'_>, cursor: &Cursor, notices: &mut Vec<String>) -> Option<Result<(), Failure>> {
    if !sink.is(&cursor.output) {
        return None;
    }
    let (Sink::File(file), Output::File(written)) = (sink, &cursor.output) else { return Some(Ok(())) };
    Some(file.truncate_to_cursor(written).map(|removed| {
        if removed > 0 {
            notices.push(format!(
                "Removed {removed} bytes from the end of {}: a run was interrupted there.",
                written.path
            ));
        }
    }))
}

/// Removes from an abandoned output the line that an interrupted run wrote but did not count, if the file is otherwise
/// unchanged: that block is now written elsewhere.
fn trim_abandoned(output: &Output) {
    if let Output::File(written) = output {
        let _ = OutputFile::open(written.path.as_ref(), false).and_then(|mut file| file.truncate_to_cursor(written));
    }
}

fn name(output: &Output) -> &str {
    match output {
        Output::Stdout => "standard output",
        Output::File(written) => &written.path,
    }
}

#[cfg(test)]
mod tests;
