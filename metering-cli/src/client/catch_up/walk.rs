//! A run: block after block, from the cursor on.

use crate::client::catch_up::block::{Block, BlockNumber};
use crate::client::catch_up::book::Book;
use crate::client::catch_up::plan::Plan;
use crate::client::catch_up::tally::Tally;
use crate::failure::Failure;

/// Where blocks come from.
pub(super) trait Feed {
    /// The latest finalized block.
    async fn latest(&mut self) -> Result<Block, Failure>;

    /// A block that is final; an answer of another block must not be returned.
    async fn block(&mut self, number: BlockNumber) -> Result<Found, Failure>;
}

/// What there is of a block.
#[derive(Debug)]
pub(super) enum Found {
    Block(Block),
    /// The service does not have it; in its words.
    Missing(String),
}

/// What a run may do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub(super) blocks_max: u64,
    /// Go on without a block that the service does not have.
    pub(super) skip_missing: bool,
}

/// Fetches and writes the blocks of a run. Whatever ends it, the tally says how far it came.
pub(super) async fn walk(
    feed: &mut impl Feed,
    book: &mut Book<'_>,
    rules: Rules,
    tally: &mut Tally,
) -> Result<(), Failure> {
    let latest = feed.latest().await?;
    tally.latest = Some(latest.number);
    let plan = Plan::make(book.start(), latest.number, rules.blocks_max)?;
    tally.progress.begin(plan.count());
    for number in plan.blocks() {
        // The latest block is here and paid for.
        let found = if number == latest.number { Found::Block(latest.clone()) } else { feed.block(number).await? };
        match found {
            Found::Block(block) => {
                book.write(&block)?;
                tally.wrote(number);
            }
            Found::Missing(_) if rules.skip_missing => {
                book.skip(number)?;
                tally.skipped(number);
            }
            Found::Missing(why) => {
                return Err(Failure::NotFound(format!(
                    "the service does not have block {number}: {why} Nothing after it is written; add --skip-missing to \
                     go on without it"
                )));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
