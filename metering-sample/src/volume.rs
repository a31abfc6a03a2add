//! Traded volume over the last seconds, for a pool and for a token.

use bytes::Bytes;
use metering_core::chains::Address;
use serde::Serialize;

use crate::chain::{Block, BlockNumber, Chain, count, numbers};
use crate::document::render;
use crate::pool::{POOLS, Pool, Side};
use crate::quantity::{Quantity, Usd};
use crate::refusal::Refusal;
use crate::token::Token;
use crate::trade::trades;

/// The maximum number of blocks summed up for one response: a day at twelve seconds per block.
pub(crate) const MAX_BLOCKS_SUMMED: u64 = 7_200;

/// The blocks that a response covers.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Span {
    time_interval: u64,
    from_block: BlockNumber,
    to_block: BlockNumber,
}

/// The volume of one pool, with amounts in the smallest units of its tokens.
#[derive(Debug, Clone, Default)]
pub(crate) struct Traded {
    pub(crate) trades: u64,
    pub(crate) value: Usd,
    units: [i128; 2],
}

/// The volume of one token, in smallest units.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TokenTraded {
    pub(crate) trades: u64,
    pub(crate) value: Usd,
    units: i128,
}

#[derive(Serialize)]
struct PoolVolume {
    pool_address: Address,
    #[serde(flatten)]
    span: Span,
    trade_count: u64,
    volume_usd: Usd,
    volume_token0: Quantity,
    volume_token1: Quantity,
}

#[derive(Serialize)]
struct TokenVolume {
    token_address: Address,
    symbol: &'static str,
    #[serde(flatten)]
    span: Span,
    #[serde(flatten)]
    sum: Volume,
    pools: Vec<VolumeInPool>,
}

#[derive(Serialize)]
struct VolumeInPool {
    pool_address: Address,
    #[serde(flatten)]
    volume: Volume,
}

#[derive(Serialize)]
struct Volume {
    trade_count: u64,
    volume: Quantity,
    volume_usd: Usd,
}

impl Span {
    /// The last `seconds` up to the latest final block.
    pub(crate) fn of_last(seconds: u64, chain: &Chain, latest: Block) -> Result<Self, Refusal> {
        let blocks = chain.last_seconds(latest, seconds);
        let reached = count(&blocks);
        if reached > MAX_BLOCKS_SUMMED {
            let problem = format!("spans {reached} blocks; the maximum is {MAX_BLOCKS_SUMMED}");
            return Err(Refusal::invalid("time_interval", problem));
        }
        Ok(Self { time_interval: seconds, from_block: *blocks.start(), to_block: *blocks.end() })
    }

    /// The volume of each pool.
    pub(crate) fn traded(&self) -> Vec<(&'static Pool, Traded)> {
        let mut sums: Vec<_> = POOLS.iter().map(|pool| (pool, Traded::default())).collect();
        for trade in numbers(self.from_block..=self.to_block).flat_map(trades) {
            let (_, sum) = &mut sums[trade.pool_index];
            sum.trades += 1;
            sum.value += trade.value_usd;
            for (sum, units) in sum.units.iter_mut().zip(trade.units) {
                *sum += units;
            }
        }
        sums
    }
}

impl Traded {
    /// The volume of one of the pool's tokens.
    const fn of(&self, side: Side) -> TokenTraded {
        let units = match side {
            Side::Token0 => self.units[0],
            Side::Token1 => self.units[1],
        };
        TokenTraded { trades: self.trades, value: self.value, units }
    }
}

impl TokenTraded {
    const fn volume(self, token: &Token) -> Volume {
        Volume { trade_count: self.trades, volume: token.quantity(self.units), volume_usd: self.value }
    }
}

/// The volume of a token in all pools that hold it.
pub(crate) fn of_all(token: &Token, sums: &[(&Pool, Traded)]) -> TokenTraded {
    let mut all = TokenTraded::default();
    for (_, traded) in in_each(token, sums) {
        all.trades += traded.trades;
        all.value += traded.value;
        all.units += traded.units;
    }
    all
}

fn in_each<'a>(token: &Token, sums: &'a [(&Pool, Traded)]) -> impl Iterator<Item = (&'a Pool, TokenTraded)> {
    sums.iter().filter_map(|(pool, traded)| Some((*pool, traded.of(pool.side_of(token)?))))
}

/// The volume of one pool over the last seconds.
pub(crate) fn pool_volume(chain: &Chain, latest: Block, pool: &Pool, seconds: u64) -> Result<Bytes, Refusal> {
    let span = Span::of_last(seconds, chain, latest)?;
    let sums = span.traded();
    let traded = sums.iter().find(|(candidate, _)| candidate.address == pool.address);
    let (_, traded) = traded.expect("every pool is among the pools");
    let volume = PoolVolume {
        pool_address: pool.address,
        span,
        trade_count: traded.trades,
        volume_usd: traded.value,
        volume_token0: pool.token0.quantity(traded.units[0]),
        volume_token1: pool.token1.quantity(traded.units[1]),
    };
    Ok(render(latest, volume))
}

/// The volume of a token over the last seconds, in all pools that hold it.
pub(crate) fn token_volume(chain: &Chain, latest: Block, token: &Token, seconds: u64) -> Result<Bytes, Refusal> {
    let span = Span::of_last(seconds, chain, latest)?;
    let sums = span.traded();
    let in_pool = |(pool, traded): (&Pool, TokenTraded)| VolumeInPool {
        pool_address: pool.address,
        volume: traded.volume(token),
    };
    let pools = in_each(token, &sums).map(in_pool).collect();
    let sum = of_all(token, &sums).volume(token);
    Ok(render(latest, TokenVolume { token_address: token.address, symbol: token.symbol, span, sum, pools }))
}
