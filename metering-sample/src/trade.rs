//! The trades of a block: synthetic, but always the same for the same block.

use std::fmt;

use metering_core::chains::Address;
use serde::{Serialize, Serializer};

use crate::chain::BlockNumber;
use crate::noise::Draws;
use crate::pool::{POOLS, Pool, price_in};
use crate::quantity::{Quantity, Usd};

/// The seed that separates the random numbers of trades from others.
const KIND: u64 = u64::from_be_bytes(*b"\0\0trades");

/// The distribution of trades per block: the probability in percent of at most one, two, three.
const TRADE_COUNT_PERCENTILES: [u32; 3] = [45, 75, 92];

/// A swap from the pool's point of view: positive amounts go into the pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Trade {
    pub(crate) tx_hash: TxHash,
    pub(crate) log_index: u32,
    pub(crate) pool_address: Address,
    /// The symbols of the pool's tokens.
    pub(crate) token0: &'static str,
    pub(crate) token1: &'static str,
    pub(crate) amount0: Quantity,
    pub(crate) amount1: Quantity,
    /// The price of token 0 in token 1.
    pub(crate) price: Quantity,
    pub(crate) value_usd: Usd,
    /// For the sums: the index in [`POOLS`], and both amounts in smallest units, unsigned.
    #[serde(skip)]
    pub(crate) pool_index: usize,
    #[serde(skip)]
    pub(crate) units: [i128; 2],
}

/// A transaction's hash.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct TxHash([u64; 4]);

/// The trades of a block, in log order.
pub(crate) fn trades(block: BlockNumber) -> Vec<Trade> {
    let mut draws = Draws::of(KIND, block.get());
    let dice = draws.below(100);
    let count = 1 + TRADE_COUNT_PERCENTILES.into_iter().filter(|percent| dice >= *percent).count();
    let mut log_index = 0;
    let mut trades = Vec::with_capacity(count);
    for _ in 0..count {
        log_index += 1 + draws.below(90);
        trades.push(trade(block, log_index, &mut draws));
    }
    trades
}

/// The trades of a block in one pool.
pub(crate) fn trades_in(pool: &Pool, block: BlockNumber) -> impl Iterator<Item = Trade> {
    trades(block).into_iter().filter(|trade| trade.pool_address == pool.address)
}

fn trade(block: BlockNumber, log_index: u32, draws: &mut Draws) -> Trade {
    let (pool_index, pool) = choose_pool(draws);
    let value = choose_value(draws);
    // The trade's price is within the pool's fee of the pool's price.
    let impact = i64::from(draws.below(2 * pool.fee + 1)) - i64::from(pool.fee);
    let skew = pool.skew(block) + impact;
    let (price0, price1) = (pool.token0.price_usd(block), pool.token1.price_usd(block));
    let units0 = value.buys(price0, pool.token0.decimals);
    let units1 = value.raised_by(skew).buys(price1, pool.token1.decimals);
    let sign0 = if draws.below(2) == 0 { 1 } else { -1 };
    Trade {
        tx_hash: TxHash::draw(draws),
        log_index,
        pool_address: pool.address,
        token0: pool.token0.symbol,
        token1: pool.token1.symbol,
        amount0: pool.token0.quantity(sign0 * units0),
        amount1: pool.token1.quantity(-sign0 * units1),
        price: price_in(price0.raised_by(skew), price1),
        value_usd: value,
        pool_index,
        units: [units0, units1],
    }
}

fn choose_pool(draws: &mut Draws) -> (usize, &'static Pool) {
    let mut percent = draws.below(100);
    for (index, pool) in POOLS.iter().enumerate() {
        if percent < pool.trade_share {
            return (index, pool);
        }
        percent -= pool.trade_share;
    }
    unreachable!("the shares of the pools add up to a hundred percent")
}

/// From a hundred to four hundred thousand dollars; larger values are rarer.
fn choose_value(draws: &mut Draws) -> Usd {
    const DOUBLINGS: u32 = 12;
    let doublings = draws.below(DOUBLINGS).min(draws.below(DOUBLINGS));
    let more = draws.below(1_000_000);
    Usd::cents(10_000 << doublings).raised_by(i64::from(more))
}

impl TxHash {
    fn draw(draws: &mut Draws) -> Self {
        Self(std::array::from_fn(|_| draws.next()))
    }
}

impl fmt::Display for TxHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d] = self.0;
        write!(f, "0x{a:016x}{b:016x}{c:016x}{d:016x}")
    }
}

impl fmt::Debug for TxHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for TxHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn blocks() -> impl Iterator<Item = BlockNumber> {
        (24_000_000..24_003_000).map(BlockNumber::from_u64)
    }

    #[test]
    fn every_block_has_one_to_four_trades_in_log_order_and_all_hashes_differ() {
        let mut hashes = HashSet::new();
        let mut counts = [0; 4];
        let mut pools = HashSet::new();
        for block in blocks() {
            let trades = trades(block);
            counts[trades.len() - 1] += 1;
            assert!(trades.is_sorted_by(|a, b| a.log_index < b.log_index));
            for trade in &trades {
                assert!(hashes.insert(trade.tx_hash.to_string()), "{block:?}");
                assert_eq!(POOLS[trade.pool_index].address, trade.pool_address);
                pools.insert(trade.pool_index);
            }
        }
        assert!(counts.iter().all(|count| *count > 100), "{counts:?}");
        assert_eq!(pools.len(), POOLS.len());
    }

    #[test]
    fn a_trade_pays_what_its_price_says_near_the_price_of_the_pool() {
        for block in blocks() {
            for trade in trades(block) {
                let pool = &POOLS[trade.pool_index];
                assert_ne!(trade.amount0.to_string().starts_with('-'), trade.amount1.to_string().starts_with('-'));
                let [paid0, paid1] = [(0, pool.token0), (1, pool.token1)].map(|(index, token)| {
                    let one = 10_i128.pow(u32::from(token.decimals));
                    trade.units[index] * token.price_usd(block).units() / one
                });
                let skew = pool.skew(block) + i64::from(pool.fee);
                assert!(paid1 <= trade.value_usd.raised_by(skew).units(), "{trade:?}");
                let skew = pool.skew(block) - i64::from(pool.fee);
                // Amounts are truncated to the smallest unit; for WBTC, that is worth a tenth of a cent.
                assert!(paid1 + 200_000 >= trade.value_usd.raised_by(skew).units(), "{trade:?}");
                assert!((paid0 - trade.value_usd.units()).abs() < 200_000, "{trade:?}");
            }
        }
    }

    #[test]
    fn the_trades_of_a_pool_are_those_of_the_block_in_that_pool() {
        let block = BlockNumber::from_u64(24_000_001);
        let mut found: Vec<_> = POOLS.iter().flat_map(|pool| trades_in(pool, block)).collect();
        found.sort_by_key(|trade| trade.log_index);
        assert_eq!(found, trades(block));
    }
}
