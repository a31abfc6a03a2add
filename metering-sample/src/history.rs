//! The trades of a pool between two times.

use std::ops::RangeInclusive;
use std::time::Duration;

use bytes::Bytes;
use metering_core::Timestamp;
use metering_core::chains::Address;
use serde::Serialize;

use crate::chain::{Block, BlockNumber, Chain, count, numbers};
use crate::document::render;
use crate::pool::Pool;
use crate::refusal::Refusal;
use crate::trade::{Trade, trades_in};

/// The maximum number of blocks whose trades one response lists.
const MAX_BLOCKS: u64 = 1_000;

#[derive(Serialize)]
struct TradesBetween {
    pool_address: Address,
    start_timestamp: u64,
    end_timestamp: u64,
    /// The first and last block mined between the two times, up to the latest final block; null when there are none.
    from_block: Option<BlockNumber>,
    to_block: Option<BlockNumber>,
    trades: Vec<PlacedTrade>,
}

#[derive(Serialize)]
struct PlacedTrade {
    block_number: BlockNumber,
    block_timestamp: i64,
    #[serde(flatten)]
    trade: Trade,
}

/// The trades of a pool between two Unix times, inclusive, in final blocks.
pub(crate) fn trades_between(
    chain: &Chain,
    latest: Block,
    pool: &Pool,
    (start, end): (u64, u64),
) -> Result<Bytes, Refusal> {
    if end < start {
        return Err(Refusal::invalid("end_timestamp", "must not be before start_timestamp"));
    }
    let blocks = blocks_between(chain, latest, start, end);
    if let Some(reached) = blocks.as_ref().map(count).filter(|reached| *reached > MAX_BLOCKS) {
        let problem =
            format!("is too far from end_timestamp: the range spans {reached} blocks; the maximum is {MAX_BLOCKS}");
        return Err(Refusal::invalid("start_timestamp", problem));
    }
    let placed = |block_number| {
        let block_timestamp = chain.block(block_number).mined_at.unix_seconds();
        trades_in(pool, block_number).map(move |trade| PlacedTrade { block_number, block_timestamp, trade })
    };
    let content = TradesBetween {
        pool_address: pool.address,
        start_timestamp: start,
        end_timestamp: end,
        from_block: blocks.as_ref().map(|blocks| *blocks.start()),
        to_block: blocks.as_ref().map(|blocks| *blocks.end()),
        trades: blocks.into_iter().flat_map(numbers).flat_map(placed).collect(),
    };
    Ok(render(latest, content))
}

fn blocks_between(chain: &Chain, latest: Block, start: u64, end: u64) -> Option<RangeInclusive<BlockNumber>> {
    let epoch = Timestamp::from_unix_millis(0);
    let first = chain.first_mined_from(epoch.saturating_add(Duration::from_secs(start)));
    // Block times are in whole seconds, so the whole last second counts.
    let after = epoch.saturating_add(Duration::from_secs(end.saturating_add(1)));
    let last = chain.last_mined_by(after.saturating_sub(Duration::from_millis(1)))?.min(latest.number);
    (first <= last).then_some(first..=last)
}
