//! Snapshots of a block: the reserves of pools, and the trades in them.

use bytes::Bytes;
use metering_core::chains::Address;
use serde::Serialize;

use crate::chain::{Block, BlockNumber};
use crate::document::render;
use crate::pool::{Pool, Side};
use crate::quantity::{Quantity, Usd};
use crate::token::Token;
use crate::trade::{Trade, trades, trades_in};

#[derive(Serialize)]
struct Base {
    pool_address: Address,
    token0: Holding,
    token1: Holding,
    tvl_usd: Usd,
}

/// A pool's reserve of one of its tokens.
#[derive(Serialize)]
struct Holding {
    address: Address,
    symbol: &'static str,
    reserve: Quantity,
    /// In the pool's other token.
    price: Quantity,
    price_usd: Usd,
}

#[derive(Serialize)]
struct BaseOfAll {
    token_address: Address,
    snapshots: Vec<Base>,
}

#[derive(Serialize)]
struct PoolTrades {
    pool_address: Address,
    trades: Vec<Trade>,
}

#[derive(Serialize)]
struct AllTrades {
    /// The block number again, under the name that clients of this route expect.
    epoch: BlockNumber,
    trades: Vec<Trade>,
}

impl Base {
    fn of(pool: &Pool, block: BlockNumber) -> Self {
        let reserves = pool.reserves(block);
        let holding = |side, units| {
            let token = pool.token(side);
            Holding {
                address: token.address,
                symbol: token.symbol,
                reserve: token.quantity(units),
                price: pool.price(side, block),
                price_usd: pool.price_usd(side, block),
            }
        };
        Self {
            pool_address: pool.address,
            token0: holding(Side::Token0, reserves.units0),
            token1: holding(Side::Token1, reserves.units1),
            tvl_usd: reserves.tvl,
        }
    }
}

/// The reserves and prices of a pool.
pub(crate) fn base(block: Block, pool: &Pool) -> Bytes {
    render(block, Base::of(pool, block.number))
}

/// The reserves and prices of all pools of a token.
pub(crate) fn base_of_all(block: Block, token: &Token) -> Bytes {
    let snapshots = Pool::holding(token).map(|(pool, _)| Base::of(pool, block.number)).collect();
    render(block, BaseOfAll { token_address: token.address, snapshots })
}

/// The trades of one pool.
pub(crate) fn pool_trades(block: Block, pool: &Pool) -> Bytes {
    let trades = trades_in(pool, block.number).collect();
    render(block, PoolTrades { pool_address: pool.address, trades })
}

/// The trades of all pools.
pub(crate) fn all_trades(block: Block) -> Bytes {
    render(block, AllTrades { epoch: block.number, trades: trades(block.number) })
}
