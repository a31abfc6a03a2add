//! Metadata of a pool, and the pools of a token.

use bytes::Bytes;
use metering_core::chains::Address;
use serde::Serialize;

use crate::chain::Block;
use crate::document::render;
use crate::pool::Pool;
use crate::token::Token;

/// Name and decimals of a token.
#[derive(Serialize)]
pub(crate) struct TokenMetadata {
    address: Address,
    symbol: &'static str,
    name: &'static str,
    decimals: u8,
}

/// Tokens and fee of a pool.
#[derive(Serialize)]
pub(crate) struct PoolMetadata {
    pool_address: Address,
    /// In millionths of the amount paid.
    fee: u32,
    token0: TokenMetadata,
    token1: TokenMetadata,
}

#[derive(Serialize)]
struct TokenPools {
    token: TokenMetadata,
    pools: Vec<PoolMetadata>,
}

impl From<&Token> for TokenMetadata {
    fn from(token: &Token) -> Self {
        Self { address: token.address, symbol: token.symbol, name: token.name, decimals: token.decimals }
    }
}

impl From<&Pool> for PoolMetadata {
    fn from(pool: &Pool) -> Self {
        Self { pool_address: pool.address, fee: pool.fee, token0: pool.token0.into(), token1: pool.token1.into() }
    }
}

/// Metadata of one pool.
pub(crate) fn pool_metadata(latest: Block, pool: &Pool) -> Bytes {
    render(latest, PoolMetadata::from(pool))
}

/// The pools that hold a token.
pub(crate) fn pools_of(latest: Block, token: &Token) -> Bytes {
    let pools = Pool::holding(token).map(|(pool, _)| pool.into()).collect();
    render(latest, TokenPools { token: token.into(), pools })
}
