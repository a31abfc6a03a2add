//! The tokens of the sample: real names and addresses from Ethereum mainnet, with made-up prices.

use metering_core::chains::Address;

use crate::chain::BlockNumber;
use crate::noise::{MILLION, drift};
use crate::quantity::{Quantity, Usd};

/// A token that the sample trades.
#[derive(Debug)]
pub(crate) struct Token {
    pub(crate) address: Address,
    pub(crate) symbol: &'static str,
    pub(crate) name: &'static str,
    pub(crate) decimals: u8,
    /// The price around which it moves.
    usual_price: Usd,
    /// How far the price moves from there, in millionths.
    swing: i64,
}

pub(crate) static WETH: Token = Token {
    address: address("c02aaa39b223fe8d0a0e5c4f27ead9083c756cc2"),
    symbol: "WETH",
    name: "Wrapped Ether",
    decimals: 18,
    usual_price: Usd::cents(320_000),
    swing: 180_000,
};
pub(crate) static USDC: Token = Token {
    address: address("a0b86991c6218b36c1d19d4a2e9eb0ce3606eb48"),
    symbol: "USDC",
    name: "USD Coin",
    decimals: 6,
    usual_price: Usd::cents(100),
    swing: 800,
};
pub(crate) static USDT: Token = Token {
    address: address("dac17f958d2ee523a2206206994597c13d831ec7"),
    symbol: "USDT",
    name: "Tether USD",
    decimals: 6,
    usual_price: Usd::cents(100),
    swing: 1_500,
};
pub(crate) static WBTC: Token = Token {
    address: address("2260fac5e5542a773aa44fbcfedf7c193bc2c599"),
    symbol: "WBTC",
    name: "Wrapped BTC",
    decimals: 8,
    usual_price: Usd::cents(9_500_000),
    swing: 140_000,
};
pub(crate) static DAI: Token = Token {
    address: address("6b175474e89094c44da98b954eedeac495271d0f"),
    symbol: "DAI",
    name: "Dai Stablecoin",
    decimals: 18,
    usual_price: Usd::cents(100),
    swing: 1_200,
};
pub(crate) static UNI: Token = Token {
    address: address("1f9840a85d5af5bf1d1762f925bdaddc4201f984"),
    symbol: "UNI",
    name: "Uniswap",
    decimals: 18,
    usual_price: Usd::cents(850),
    swing: 250_000,
};
pub(crate) static LINK: Token = Token {
    address: address("514910771af9ca656af840dff83e8264ecf986ca"),
    symbol: "LINK",
    name: "ChainLink Token",
    decimals: 18,
    usual_price: Usd::cents(1_700),
    swing: 220_000,
};

/// All tokens.
pub(crate) static TOKENS: [&Token; 7] = [&WETH, &USDC, &USDT, &WBTC, &DAI, &UNI, &LINK];

impl Token {
    /// The token at an address.
    pub(crate) fn at(address: Address) -> Option<&'static Self> {
        TOKENS.into_iter().find(|token| token.address == address)
    }

    /// The market price of one token.
    pub(crate) fn price_usd(&self, block: BlockNumber) -> Usd {
        self.usual_price.raised_by(self.swing * drift(kind(self.address), block.get()) / MILLION)
    }

    /// An amount of the token, given in its smallest units.
    pub(crate) const fn quantity(&self, units: i128) -> Quantity {
        Quantity::new(units, self.decimals)
    }
}

impl PartialEq for Token {
    fn eq(&self, other: &Self) -> bool {
        self.address == other.address
    }
}

/// The seed that gives each token or pool its own price movements.
pub(crate) fn kind(address: Address) -> u64 {
    address.as_bytes().iter().fold(0, |kind, byte| kind.rotate_left(8) ^ u64::from(*byte))
}

/// Parses an address in lower-case hexadecimal digits at compile time.
pub(crate) const fn address(digits: &str) -> Address {
    let digits = digits.as_bytes();
    assert!(digits.len() == 40, "an address has 40 digits");
    let mut bytes = [0; 20];
    let mut index = 0;
    while index < bytes.len() {
        bytes[index] = nibble(digits[2 * index]) << 4 | nibble(digits[2 * index + 1]);
        index += 1;
    }
    Address::from_bytes(bytes)
}

const fn nibble(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => panic!("not a lower-case hexadecimal digit"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_move_around_their_middle_within_their_swing() {
        for token in TOKENS {
            let (low, high) = (token.usual_price.raised_by(-token.swing), token.usual_price.raised_by(token.swing));
            let mut seen = Vec::new();
            for number in (0..30_000_000).step_by(50_021) {
                let price = token.price_usd(BlockNumber::from_u64(number));
                assert!((low..=high).contains(&price), "{} {price:?}", token.symbol);
                seen.push(price);
            }
            seen.sort_unstable();
            assert!(seen.first() < Some(&token.usual_price) && seen.last() > Some(&token.usual_price));
        }
    }

    #[test]
    fn addresses_are_the_ones_on_mainnet() {
        // Spelled as in block explorers.
        let table = [
            ("WETH", "0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2"),
            ("USDC", "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"),
            ("USDT", "0xdAC17F958D2ee523a2206206994597C13D831ec7"),
            ("WBTC", "0x2260FAC5E5542a773Aa44fBCfeDf7C193bc2C599"),
            ("DAI", "0x6B175474E89094C44Da98b954EedeAC495271d0F"),
            ("UNI", "0x1f9840a85d5aF5bf1D1762F925BDADdC4201F984"),
            ("LINK", "0x514910771AF9Ca656af840dff83E8264EcF986CA"),
        ];
        for (token, (symbol, address)) in TOKENS.into_iter().zip(table) {
            assert_eq!((token.symbol, &*token.address.to_checksummed()), (symbol, address));
            assert_eq!(Token::at(token.address), Some(token));
        }
        assert!(Token::at(Address::ZERO).is_none());
    }
}
