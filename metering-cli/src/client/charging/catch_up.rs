//! `metering catch-up`: fetches every block since the last run, each exactly once.
//!
//! The service charges for each block, and a run may end at any moment: a rate limit, no credits, a full disk, Ctrl-C,
//! a power cut. So the order of steps is fixed: check that the output and the cursor are writable, fetch a block, write
//! it and sync it to disk, move the cursor and sync it. The cursor records the length of the output, so that the next
//! run finds and removes a line that was written but not counted. [`plan`], [`retry`] and [`cursor`] are the rules,
//! [`mod@walk`] combines them; [`service`], [`mod@file`] and [`sink`] do the I/O.

mod block;
mod book;
mod cursor;
mod file;
mod plan;
mod retry;
mod service;
mod sink;
mod tally;
mod walk;

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::client::access::private_file::FileLock;
use crate::client::charging::catch_up::block::BlockNumber;
use crate::client::charging::catch_up::book::{Book, Options};
use crate::client::charging::catch_up::cursor::CursorFile;
use crate::client::charging::catch_up::file::OutputFile;
use crate::client::charging::catch_up::plan::BLOCKS_MAX;
use crate::client::charging::catch_up::service::Service;
use crate::client::charging::catch_up::sink::{Sink, Stdout};
use crate::client::charging::catch_up::tally::Tally;
use crate::client::charging::catch_up::walk::{Rules, walk};
use crate::client::session::ProfileArgs;
use crate::client::session::interruption::Interruption;
use crate::failure::Failure;
use crate::output::notice;
use crate::progress::Progress;

const LOCK_FILE: &str = "catch-up.lock";

/// Fetch every block since the last run, one line of JSON per block.
///
/// Fetches /mpp/snapshot/allTrades/{block} for each block after the cursor up to the latest finalized one, at most 100
/// per run; without a cursor, only the latest. Each block is charged as one request, and so is the request for the
/// latest block, whose response is used when that block is reached. The cursor is kept per profile and service, and
/// moves once a block is safely written: if a run ends early for any reason, the next one continues.
///
/// With --output, the file has no gaps and no duplicates, not even after a power cut. Standard output cannot be read
/// back: there, the block at which a run was interrupted may appear twice.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  metering catch-up --output blocks.jsonl
  metering catch-up --from 24000000 --max-blocks 10 | jq .block_number
  metering catch-up --output blocks-2026-11.jsonl --new-output")]
pub(crate) struct CatchUpArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    /// The file to append to, created if it does not exist; standard output by default.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The maximum number of blocks to write.
    #[arg(long, value_name = "N", default_value_t = BLOCKS_MAX, value_parser = clap::value_parser!(u64).range(1..=BLOCKS_MAX))]
    max_blocks: u64,
    /// The block to start at if there is no cursor; ignored if there is one.
    #[arg(long, value_name = "BLOCK")]
    from: Option<BlockNumber>,
    /// Delete the cursor and start over.
    #[arg(long)]
    reset: bool,
    /// Continue after the cursor, but in a new output.
    #[arg(long, conflicts_with = "reset")]
    new_output: bool,
    /// Skip blocks that the service does not have; they are recorded with the cursor.
    #[arg(long)]
    skip_missing: bool,
    /// The maximum wait, in seconds, if the service requests one, such as when the rate limit per minute is reached.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    max_wait: u64,
    /// Print a summary on standard output, as one line of JSON.
    #[arg(long, requires = "output")]
    json: bool,
}

impl CatchUpArgs {
    pub(crate) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let session = self.profile.open()?;
        let client = session.client()?;
        let _lock = FileLock::acquire(session.profile.file(LOCK_FILE), "catching up")?;
        let interruption = Interruption::watch()?;
        let cursors = CursorFile::load(&session.profile)?;
        let sink = match &self.output {
            Some(path) => Sink::File(OutputFile::open(path, true)?),
            None => Sink::Stdout(Stdout::new(&mut *out)),
        };
        let options = Options { from: self.from, reset: self.reset, new_output: self.new_output };
        let mut book = Book::open(cursors, session.url(), sink, options)?;
        book.notices().iter().for_each(|text| notice(text));
        let progress = if self.output.is_some() { Progress::new() } else { Progress::beside_stdout() };
        let mut tally = Tally::new(progress.clone());
        let mut service = Service::new(client, interruption, Duration::from_secs(self.max_wait), progress);
        let rules = Rules { blocks_max: self.max_blocks, skip_missing: self.skip_missing };
        let walked = walk(&mut service, &mut book, rules, &mut tally).await;
        let summary = tally.finish(book.last_block(), service.balance());
        drop(book);
        notice(&summary.sentence());
        if self.json {
            summary.write_json(out)?;
        }
        walked
    }
}
