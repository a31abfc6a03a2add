//! Prices at a block: of ether, of a token in a pool, of a token in all pools.

use bytes::Bytes;
use metering_core::chains::Address;
use serde::Serialize;

use crate::chain::{Block, BlockNumber};
use crate::document::render;
use crate::pool::{Pool, Side};
use crate::quantity::{Quantity, Usd};
use crate::refusal::Refusal;
use crate::token::{Token, WETH};

#[derive(Serialize)]
struct EthPrice {
    price_usd: Usd,
}

#[derive(Serialize)]
struct TokenPrice {
    token_address: Address,
    symbol: &'static str,
    #[serde(flatten)]
    quote: Quote,
}

#[derive(Serialize)]
struct TokenPrices {
    token_address: Address,
    symbol: &'static str,
    /// The price across the whole market.
    price_usd: Usd,
    prices: Vec<Quote>,
}

/// The price of a token in one pool.
#[derive(Serialize)]
struct Quote {
    pool_address: Address,
    /// The symbol of the pool's other token, in which `price` is given.
    quote_token: &'static str,
    price: Quantity,
    price_usd: Usd,
}

impl Quote {
    fn of(pool: &Pool, side: Side, block: BlockNumber) -> Self {
        Self {
            pool_address: pool.address,
            quote_token: pool.token(side.other()).symbol,
            price: pool.price(side, block),
            price_usd: pool.price_usd(side, block),
        }
    }
}

/// The price of ether.
pub(crate) fn eth(block: Block) -> Bytes {
    render(block, EthPrice { price_usd: WETH.price_usd(block.number) })
}

/// The price of a token in one pool.
pub(crate) fn token_in_pool(block: Block, token: &Token, pool: &Pool) -> Result<Bytes, Refusal> {
    let quote = Quote::of(pool, side_in(token, pool)?, block.number);
    Ok(render(block, TokenPrice { token_address: token.address, symbol: token.symbol, quote }))
}

/// The prices of a token in all pools that hold it.
pub(crate) fn token_everywhere(block: Block, token: &Token) -> Bytes {
    let prices = Pool::holding(token).map(|(pool, side)| Quote::of(pool, side, block.number)).collect();
    let price_usd = token.price_usd(block.number);
    render(block, TokenPrices { token_address: token.address, symbol: token.symbol, price_usd, prices })
}

/// The side of a token in the pool.
pub(crate) fn side_in(token: &Token, pool: &Pool) -> Result<Side, Refusal> {
    pool.side_of(token).ok_or_else(|| {
        let (token0, token1) = (pool.token0.symbol, pool.token1.symbol);
        Refusal::invalid("token_address", format!("is not in this pool, which holds {token0} and {token1}"))
    })
}
