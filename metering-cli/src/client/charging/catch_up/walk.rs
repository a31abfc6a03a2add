//! A run: fetches and writes block after block, starting at the cursor.

use crate::client::charging::catch_up::block::{Block, BlockNumber};
use crate::client::charging::catch_up::book::Book;
use crate::client::charging::catch_up::plan::Plan;
use crate::client::charging::catch_up::tally::Tally;
use crate::failure::Failure;
use crate::progress::Unit;

/// Where blocks come from.
pub(super) trait Feed {
    /// The latest finalized block.
    async fn latest(&mut self) -> Result<Block, Failure>;

    /// A finalized block. Must not return a block with another number.
    async fn block(&mut self, number: BlockNumber) -> Result<FetchedBlock, Failure>;
}

/// The result of requesting a block.
#[derive(Debug)]
pub(super) enum FetchedBlock {
    Block(Block),
    /// The service does not have it; the text is the service's message.
    Missing(String),
}

/// The limits of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub(super) blocks_max: u64,
    /// Skip blocks that the service does not have.
    pub(super) skip_missing: bool,
}

/// Fetches and writes the blocks of a run. However it ends, the tally shows its progress.
pub(super) async fn walk(
    feed: &mut impl Feed,
    book: &mut Book<'_>,
    rules: Rules,
    tally: &mut Tally,
) -> Result<(), Failure> {
    let latest = feed.latest().await?;
    tally.latest = Some(latest.number);
    let plan = Plan::make(book.start(), latest.number, rules.blocks_max)?;
    tally.progress.begin("Fetching", Unit::Things("blocks"), Some(plan.count()));
    for number in plan.blocks() {
        // The latest block is already fetched and charged.
        let found =
            if number == latest.number { FetchedBlock::Block(latest.clone()) } else { feed.block(number).await? };
        match found {
            FetchedBlock::Block(block) => {
                book.write(&block)?;
                tally.wrote(number);
            }
            FetchedBlock::Missing(_) if rules.skip_missing => {
                book.skip(number)?;
                tally.skipped(number);
            }
            FetchedBlock::Missing(why) => {
                return Err(Failure::NotFound(format!(
                    "the service does not have block {number}: {why} Nothing after it was written; add --skip-missing \
                    to skip it"
                )));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
