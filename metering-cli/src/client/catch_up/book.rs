//! Cursor and output together: what is written is counted, in this order, and what was not counted is not kept.

use metering_client::ServiceUrl;

use crate::client::catch_up::block::{Block, BlockNumber};
use crate::client::catch_up::cursor::{Cursor, CursorFile, Output};
use crate::client::catch_up::file::OutputFile;
use crate::client::catch_up::plan::Start;
use crate::client::catch_up::sink::Sink;
use crate::failure::Failure;

/// What the person wants of the cursor.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Wishes {
    /// Begin with this block, if there is no cursor.
    pub(super) from: Option<BlockNumber>,
    /// Forget the cursor.
    pub(super) reset: bool,
    /// Go on in another output.
    pub(super) new_output: bool,
}

/// Cursor and output of a run.
pub(super) struct Book<'o> {
    cursors: CursorFile,
    cursor: Cursor,
    sink: Sink<'o>,
    news: Vec<String>,
}

impl<'o> Book<'o> {
    /// Brings the output to where the cursor is, and writes the cursor once: then both are known to be writable, and
    /// the next run knows the output however this one ends.
    pub(super) fn open(
        mut cursors: CursorFile,
        service: &ServiceUrl,
        mut sink: Sink<'o>,
        wishes: Wishes,
    ) -> Result<Self, Failure> {
        let mut news = Vec::new();
        let cursor = match cursors.of(service) {
            Some(cursor) if wishes.reset => {
                if settle(&mut sink, &cursor, &mut news).is_none() {
                    leave(&cursor.output);
                }
                begin(service, &mut sink, wishes.from)?
            }
            Some(cursor) => go_on(cursor, service, &mut sink, wishes, &mut news)?,
            None => begin(service, &mut sink, wishes.from)?,
        };
        cursors.save(&cursor)?;
        Ok(Self { cursors, cursor, sink, news })
    }

    /// What the person should know of how it was opened.
    pub(super) fn news(&self) -> &[String] {
        &self.news
    }

    /// Where the run begins.
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

/// A cursor for an output that no cursor speaks of.
fn begin(service: &ServiceUrl, sink: &mut Sink<'_>, from: Option<BlockNumber>) -> Result<Cursor, Failure> {
    if let Sink::File(file) = sink {
        let path = || file.written().path;
        if !file.is_empty() && from.is_none() {
            return Err(Failure::Conflict(format!(
                "{} has something in it, and no cursor says up to which block; name a new file, or say with --from at \
                 which block to go on in it",
                path()
            )));
        }
        if !file.is_at_line_start()? {
            return Err(Failure::Conflict(format!(
                "the last line of {} has no end; name a new file",
                file.written().path
            )));
        }
    }
    Ok(Cursor::new(service, from, sink.output()))
}

/// The cursor there is, for the output it speaks of, or for another one if that is wanted.
fn go_on(
    mut cursor: Cursor,
    service: &ServiceUrl,
    sink: &mut Sink<'_>,
    wishes: Wishes,
    news: &mut Vec<String>,
) -> Result<Cursor, Failure> {
    let Some(last) = cursor.last_block() else {
        // Nothing is written yet: another output is as good.
        let from = wishes.from.or(cursor.from());
        return match settle(sink, &cursor, news) {
            None => begin(service, sink, from),
            Some(settled) => settled.map(|()| Cursor::new(service, from, sink.output())),
        };
    };
    let is_new = match sink {
        Sink::File(file) => file.is_empty(),
        Sink::Stdout(_) => true,
    };
    match settle(sink, &cursor, news) {
        Some(Err(_)) if wishes.new_output && is_new => {}
        Some(settled) => return settled.map(|()| cursor),
        None if !wishes.new_output => {
            return Err(Failure::Conflict(format!(
                "the cursor of {service} is at block {last} in {}; go on there, or here with --new-output; use another \
                 --profile for a second output, or begin anew with --reset",
                name(&cursor.output)
            )));
        }
        None if !is_new => {
            return Err(Failure::Conflict("the new output has something in it; name a new file".to_owned()));
        }
        None => leave(&cursor.output),
    }
    news.push(format!("Going on after block {last} in {}.", name(&sink.output())));
    cursor.output = sink.output();
    Ok(cursor)
}

/// Brings the output to where the cursor is; `None` if the cursor speaks of another one.
fn settle(sink: &mut Sink<'_>, cursor: &Cursor, news: &mut Vec<String>) -> Option<Result<(), Failure>> {
    if !sink.is(&cursor.output) {
        return None;
    }
    let (Sink::File(file), Output::File(written)) = (sink, &cursor.output) else { return Some(Ok(())) };
    Some(file.settle(written).map(|removed| {
        if removed > 0 {
            news.push(format!(
                "Removed {removed} bytes from the end of {}: a run was interrupted there.",
                written.path
            ));
        }
    }))
}

/// Leaves the output to its owner without the line that an interrupted run did not get counted, if it is still as it
/// was: that block is written elsewhere now.
fn leave(output: &Output) {
    if let Output::File(written) = output {
        let _ = OutputFile::open(written.path.as_ref(), false).and_then(|mut file| file.settle(written));
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
