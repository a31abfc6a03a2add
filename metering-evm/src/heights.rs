//! The heights that one source reports, and the hashes of its blocks.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use metering_core::chains::{BlockHash, Heights};

use crate::block::Head;
use crate::call::Call;
use crate::encoding::Height;
use crate::failure::Failure;
use crate::finality::Finality;
use crate::results::BatchResults;
use crate::source::Source;

/// The depth at which a block is final on a chain without a `finalized` tag.
const FINAL_BY_DEFAULT: u64 = 64;

/// The heights that `source` reports, read in one batch.
pub(crate) async fn heights(
    source: &Source,
    credited_at: Finality,
    finality: Option<Finality>,
) -> Result<Heights, Failure> {
    let final_tag = finality.map_or(Finality::Finalized.tag(), Finality::tag);
    let tags = credited_at.tag().into_iter().chain(final_tag).map(Call::tagged_block);
    let calls: Vec<Call> = [Call::block_number()].into_iter().chain(tags).collect();
    let read = |results: &mut BatchResults<'_>| {
        let Height(newest) = results.next()?;
        let confirmed = height_of(results, newest, credited_at)?;
        let finalized = match finality {
            Some(finality) => height_of(results, newest, finality)?,
            None => finalized_by_tag_or_depth(results, newest, source)?,
        };
        Ok(Heights { newest, confirmed, finalized: finalized.min(confirmed) })
    };
    let heights = source.send_batch(&calls, read).await?;
    source.health().has_block(heights.newest);
    Ok(heights)
}

/// The newest block that `depth` accepts.
fn height_of(results: &mut BatchResults<'_>, newest: u64, depth: Finality) -> Result<u64, Failure> {
    match (depth, depth.tag()) {
        (Finality::Confirmations(count), _) => Ok(at_depth(newest, count.get().into())),
        (_, tag) => {
            let head: Option<Head> = results.next()?;
            Ok(head.ok_or(Failure::NotYet(tag.unwrap_or_default()))?.number.0)
        }
    }
}

/// The block that the chain calls `finalized`, or one that is deep enough if the chain has no such tag. After a source
/// has once returned a `finalized` block, an error no longer means that the tag is not supported.
fn finalized_by_tag_or_depth(results: &mut BatchResults<'_>, newest: u64, source: &Source) -> Result<u64, Failure> {
    let head: Option<Head> = results.next_or_error()?.ok().flatten();
    match head {
        Some(head) => {
            source.names_finalized().store(true, Ordering::Relaxed);
            Ok(head.number.0)
        }
        None if source.names_finalized().load(Ordering::Relaxed) => Err(Failure::NotYet("finalized")),
        None => Ok(at_depth(newest, FINAL_BY_DEFAULT)),
    }
}

/// The newest block with this number of confirmations, its own included. On a shorter chain, the first block, which has
/// no payments.
const fn at_depth(newest: u64, confirmations: u64) -> u64 {
    (newest + 1).saturating_sub(confirmations)
}

/// The hash of each of these blocks; `None` for those that `source` does not have.
pub(crate) async fn block_hashes(source: &Source, numbers: Arc<[u64]>) -> Result<Vec<Option<BlockHash>>, Failure> {
    let calls: Vec<Call> = numbers.iter().map(|number| Call::block(*number, false)).collect();
    let read = |results: &mut BatchResults<'_>| {
        let hash = |number: &u64| {
            let head: Option<Head> = results.next()?;
            head.map(|head| head.block(Height(*number)).map(|block| block.hash)).transpose()
        };
        numbers.iter().map(hash).collect()
    };
    source.send_batch(&calls, read).await
}
