//! `metering catch-up`: every block since the last run, each exactly once.
//!
//! The service charges each block, and a run may end at any moment: a cap, no credits, a full disk, Ctrl-C, a power cut.
//! So the order is always the same: the output and the cursor are known to be writable, a block is fetched, it is
//! written and on disk, the cursor moves and is on disk. The cursor says how long the output is, so that a line which was
//! written but not counted is found and removed by the next run. [`plan`], [`patience`] and [`cursor`] are the rules,
//! [`mod@walk`] puts them together; [`service`], [`mod@file`] and [`sink`] touch the world.

mod block;
mod book;
mod cursor;
mod file;
mod patience;
mod plan;
mod progress;
mod service;
mod sink;
mod tally;
mod walk;

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::client::catch_up::block::BlockNumber;
use crate::client::catch_up::book::{Book, Wishes};
use crate::client::catch_up::cursor::CursorFile;
use crate::client::catch_up::file::OutputFile;
use crate::client::catch_up::plan::BLOCKS_MAX;
use crate::client::catch_up::progress::Progress;
use crate::client::catch_up::service::Service;
use crate::client::catch_up::sink::{Sink, Stdout};
use crate::client::catch_up::tally::Tally;
use crate::client::catch_up::walk::{Rules, walk};
use crate::client::interruption::Interruption;
use crate::client::private_file::Turn;
use crate::client::session::ProfileArgs;
use crate::failure::Failure;
use crate::output::notice;

const TURN: &str = "catch-up.lock";

/// Fetch every block since the last run, each as a line of JSON.
///
/// Fetches /mpp/snapshot/allTrades/{block} for each block after the cursor up to the latest finalized one, at most 100
/// per run; without a cursor, the latest alone. Each block is charged as one request, and so is asking for the latest,
/// whose answer is used when its turn comes. The cursor is kept per profile and service, and moves once a block is
/// safely written: a run that ended early, for whatever reason, is continued by the next one.
///
/// With --output there is neither a gap nor a duplicate in the file, not even after a power cut. Standard output
/// cannot be looked at again: there, the block at which a run was interrupted may come once more.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  metering catch-up --output blocks.jsonl
  metering catch-up --from 24000000 --max-blocks 10 | jq .block_number
  metering catch-up --output blocks-2026-11.jsonl --new-output")]
pub(crate) struct CatchUpArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    /// The file to append to, made if there is none; standard output otherwise.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// How many blocks to write at most.
    #[arg(long, value_name = "N", default_value_t = BLOCKS_MAX, value_parser = clap::value_parser!(u64).range(1..=BLOCKS_MAX))]
    max_blocks: u64,
    /// Where to begin when there is no cursor; ignored when there is one.
    #[arg(long, value_name = "BLOCK")]
    from: Option<BlockNumber>,
    /// Forget the cursor and begin anew.
    #[arg(long)]
    reset: bool,
    /// Go on after the cursor in another output than the one it was left in.
    #[arg(long, conflicts_with = "reset")]
    new_output: bool,
    /// Go on without blocks that the service does not have; they are noted beside the cursor.
    #[arg(long)]
    skip_missing: bool,
    /// How many seconds to wait when the service says to, as at the cap per minute.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    max_wait: u64,
    /// Print a summary on standard output, as JSON, on one line.
    #[arg(long, requires = "output")]
    json: bool,
}

impl CatchUpArgs {
    pub(crate) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let session = self.profile.open()?;
        let client = session.client()?;
        let _turn = Turn::take(session.profile.file(TURN), "catching up")?;
        let interruption = Interruption::watch()?;
        let cursors = CursorFile::load(&session.profile)?;
        let sink = match &self.output {
            Some(path) => Sink::File(OutputFile::open(path, true)?),
            None => Sink::Stdout(Stdout::new(&mut *out)),
        };
        let wishes = Wishes { from: self.from, reset: self.reset, new_output: self.new_output };
        let mut book = Book::open(cursors, session.url(), sink, wishes)?;
        book.news().iter().for_each(|news| notice(news));
        let progress = Progress::new(self.output.is_some());
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
