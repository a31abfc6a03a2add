//! The pools of the sample: real Uniswap V3 pools on mainnet, with made-up prices and reserves.

use metering_core::chains::Address;

use crate::chain::BlockNumber;
use crate::noise::{MILLION, drift};
use crate::quantity::{Quantity, Usd};
use crate::token::{DAI, LINK, Token, UNI, USDC, USDT, WBTC, WETH, address, kind};

/// A pool that the sample trades in.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) address: Address,
    /// The token with the lower address.
    pub(crate) token0: &'static Token,
    pub(crate) token1: &'static Token,
    /// The fee in millionths of the amount paid, the unit that Uniswap uses.
    pub(crate) fee: u32,
    /// Its share of all trades, in percent.
    pub(crate) trade_share: u32,
    /// The value around which its reserves move.
    usual_tvl: Usd,
}

/// One of the two tokens of a pool: the one being priced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Token0,
    Token1,
}

/// The reserves of a pool: its tokens in their smallest units, and their value.
#[derive(Debug)]
pub(crate) struct Reserves {
    pub(crate) units0: i128,
    pub(crate) units1: i128,
    pub(crate) tvl: Usd,
}

/// All pools; their trade shares add up to a hundred.
pub(crate) static POOLS: [Pool; 12] = [
    pool("88e6a0c2ddd26feeb64f039a2c41296fcb3f5640", &USDC, &WETH, 500, 30, 120),
    pool("11b815efb8f581194ae79006d24e0d814b7697f6", &WETH, &USDT, 500, 15, 70),
    pool("8ad599c3a0ff1de082011efddc58f1908eb6e6d8", &USDC, &WETH, 3_000, 10, 90),
    pool("4e68ccd3e89f51c3074ca5072bbac773960dfa36", &WETH, &USDT, 3_000, 8, 80),
    pool("4585fe77225b41b697c938b018e2ac67ac5a20c0", &WBTC, &WETH, 500, 8, 95),
    pool("cbcdf9626bc03e24f779434178a73a0b4bad62ed", &WBTC, &WETH, 3_000, 7, 140),
    pool("99ac8ca7087fa4a2a1fb6357269965a2014abc35", &WBTC, &USDC, 3_000, 6, 110),
    pool("c2e9f25be6257c210d7adf0d4cd6e3e881ba25f8", &DAI, &WETH, 3_000, 4, 15),
    pool("5777d92f208679db4b9778590fa3cab3ac9e2168", &DAI, &USDC, 100, 4, 35),
    pool("3416cf6c708da44db2624d63ea0aaef7113527c6", &USDC, &USDT, 100, 4, 45),
    pool("1d42064fc4beb5f8aaf85f4617ae8b3b5b8bd801", &UNI, &WETH, 3_000, 2, 20),
    pool("a6cc3c2531fdaa6ae1a3ca84c2855806728693e8", &LINK, &WETH, 3_000, 2, 25),
];

const fn pool(
    digits: &str,
    token0: &'static Token,
    token1: &'static Token,
    fee: u32,
    trade_share: u32,
    usual_tvl_millions: i128,
) -> Pool {
    let usual_tvl = Usd::cents(usual_tvl_millions * 1_000_000 * 100);
    Pool { address: address(digits), token0, token1, fee, trade_share, usual_tvl }
}

impl Pool {
    /// The pool at an address.
    pub(crate) fn at(address: Address) -> Option<&'static Self> {
        POOLS.iter().find(|pool| pool.address == address)
    }

    /// The pools that hold a token.
    pub(crate) fn holding(token: &Token) -> impl Iterator<Item = (&'static Self, Side)> {
        POOLS.iter().filter_map(|pool| Some((pool, pool.side_of(token)?)))
    }

    /// The side of a token in the pool, if the pool holds it.
    pub(crate) fn side_of(&self, token: &Token) -> Option<Side> {
        if token == self.token0 {
            return Some(Side::Token0);
        }
        (token == self.token1).then_some(Side::Token1)
    }

    pub(crate) const fn token(&self, side: Side) -> &'static Token {
        match side {
            Side::Token0 => self.token0,
            Side::Token1 => self.token1,
        }
    }

    /// How far the pool's price of token 0 is above the market's, in millionths. It stays within half the fee; beyond
    /// that, arbitrage would pay off.
    pub(crate) fn skew(&self, block: BlockNumber) -> i64 {
        drift(kind(self.address), block.get()) * i64::from(self.fee) / 2 / MILLION
    }

    /// The price of one of its tokens in this pool, in dollars.
    pub(crate) fn price_usd(&self, side: Side, block: BlockNumber) -> Usd {
        let market = self.token(side).price_usd(block);
        match side {
            Side::Token0 => market.raised_by(self.skew(block)),
            Side::Token1 => market.before_raise(self.skew(block)),
        }
    }

    /// The price of one of its tokens in this pool, in the other token.
    pub(crate) fn price(&self, side: Side, block: BlockNumber) -> Quantity {
        price_in(self.price_usd(side, block), self.token(side.other()).price_usd(block))
    }

    /// The pool's reserves.
    pub(crate) fn reserves(&self, block: BlockNumber) -> Reserves {
        const TVL_SWING: i64 = 200_000;
        const SPLIT_SWING: i64 = 100_000;
        let kind = kind(self.address);
        let tvl = self.usual_tvl.raised_by(TVL_SWING * drift(!kind, block.get()) / MILLION);
        // Half in each token, shifted by trading.
        let split = SPLIT_SWING * drift(kind.swap_bytes(), block.get()) / MILLION;
        let worth = |side, split| {
            let token = self.token(side);
            tvl.raised_by(split).buys(token.price_usd(block), token.decimals) / 2
        };
        Reserves { units0: worth(Side::Token0, split), units1: worth(Side::Token1, -split), tvl }
    }
}

impl Side {
    pub(crate) const fn other(self) -> Self {
        match self {
            Self::Token0 => Self::Token1,
            Self::Token1 => Self::Token0,
        }
    }
}

/// Converts `price_usd` to units that cost `unit_usd` each, to twelve decimal places.
pub(crate) fn price_in(price_usd: Usd, unit_usd: Usd) -> Quantity {
    const PLACES: u8 = 12;
    Quantity::new(price_usd.buys(unit_usd, PLACES), PLACES)
}

#[cfg(test)]
mod tests {
    use sha3::{Digest, Keccak256};

    use super::*;

    /// Uniswap's factory creates each pool at the address that EIP-1014 derives from its tokens and fee.
    fn address_from_factory(pool: &Pool) -> Address {
        let factory: Address = "0x1F98431c8aD98523631AE4a59f267346ea31F984".parse().unwrap();
        let code_hash = hex::decode("e34f199b19b2b4f47f68442619d555527d244f78a3297ea89325f843f87b8b54").unwrap();
        let mut salt = Keccak256::new();
        for word in [&pool.token0.address.as_bytes()[..], pool.token1.address.as_bytes(), &pool.fee.to_be_bytes()] {
            salt.update(&[0; 32][word.len()..]);
            salt.update(word);
        }
        let hash = Keccak256::new()
            .chain_update([0xff])
            .chain_update(factory.as_bytes())
            .chain_update(salt.finalize())
            .chain_update(code_hash)
            .finalize();
        Address::from_bytes(hash[12..].try_into().unwrap())
    }

    #[test]
    fn every_pool_is_where_the_factory_made_it() {
        for pool in &POOLS {
            assert_eq!(pool.address, address_from_factory(pool), "{}/{}", pool.token0.symbol, pool.token1.symbol);
            assert!(pool.token0.address < pool.token1.address);
            assert!(std::ptr::eq(Pool::at(pool.address).unwrap(), pool));
        }
        assert_eq!(POOLS.iter().map(|pool| pool.trade_share).sum::<u32>(), 100);
    }

    #[test]
    fn a_pool_prices_its_tokens_within_half_its_fee_of_the_market() {
        for pool in &POOLS {
            for number in (0..30_000_000).step_by(500_009) {
                let block = BlockNumber::from_u64(number);
                for side in [Side::Token0, Side::Token1] {
                    let market = pool.token(side).price_usd(block);
                    let apart = (pool.price_usd(side, block).units() - market.units()).abs();
                    assert!(apart * 2_000_000 <= market.units() * i128::from(pool.fee + 2) + 2_000_000, "{pool:?}");
                }
            }
        }
    }

    #[test]
    fn reserves_are_worth_the_pools_stated_value() {
        let block = BlockNumber::from_u64(24_000_000);
        for pool in &POOLS {
            let reserves = pool.reserves(block);
            let dollars = |units: i128, token: &Token| {
                units * token.price_usd(block).units() / 10_i128.pow(u32::from(token.decimals))
            };
            let sum = dollars(reserves.units0, pool.token0) + dollars(reserves.units1, pool.token1);
            // Except for truncation to the smallest unit of WBTC, a fraction of a cent.
            assert!((reserves.tvl.units() - sum).abs() < 1_000_000, "{sum} {:?}", reserves.tvl);
        }
    }
}
