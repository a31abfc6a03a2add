//! The tokens that may be used for payments: dollars by default, and those that the user allows.
//!
//! An unknown token is never used: without its decimals, an amount has no meaning.

use std::fmt;
use std::str::FromStr;

use metering_core::chains::Address;
use metering_pay::wire::x402::network_name_v1;

/// Chain id, contract, symbol, and the name and version that its signatures are bound to. All have 6 decimals and
/// EIP-3009. These are the default assets of the published x402 clients (`defaultAssets.ts` of `@x402/evm` 2.27.0).
const KNOWN: [(u64, &str, &str, &str, &str); 24] = [
    (8_453, "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913", "USDC", "USD Coin", "2"),
    (84_532, "0x036CbD53842c5426634e7929541eC2318f3dCF7e", "USDC", "USDC", "2"),
    (1, "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48", "USDC", "USD Coin", "2"),
    (43_114, "0xB97EF9Ef8734C71904D8002F8b6Bc66Dd9c48a6E", "USDC", "USD Coin", "2"),
    (143, "0x754704Bc059F8C67012fEd69BC8A327a5aafb603", "USDC", "USDC", "2"),
    (988, "0x779Ded0c9e1022225f8E0630b35a9b54bE713736", "USDT0", "USDT0", "1"),
    (2_201, "0x78Cf24370174180738C5B8E352B6D14c83a6c9A9", "USDT0", "USDT0", "1"),
    (137, "0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359", "USDC", "USD Coin", "2"),
    (42_161, "0xaf88d065e77c8cC2239327C5EDb3A432268e5831", "USDC", "USD Coin", "2"),
    (421_614, "0x75faf114eafb1BDbe2F0316DF893fd58CE46AA4d", "USDC", "USD Coin", "2"),
    (36_900, "0x9cb8142aEBBcdc60AF7c97Af897A67A8f3CA71C2", "USDC.e", "USDC.e", "2"),
    (190_415, "0x401eCb1D350407f13ba348573E5630B83638E30D", "USDC.e", "Bridged USDC", "2"),
    (181_228, "0x401eCb1D350407f13ba348573E5630B83638E30D", "USDC.e", "Bridged USDC", "2"),
    (50, "0xfA2958CB79b0491CC627c1557F441eF849Ca8eb1", "USDC", "USDC", "2"),
    (51, "0xb5AB69F7bBada22B28e79C8FFAECe55eF1c771D4", "USDC", "USDC", "2"),
    (14, "0xe7cd86e13AC4309349F30B3435a9d337750fC82D", "USDT0", "USD\u{20ae}0", "1"),
    (42_220, "0xcebA9300f2b948710d2653dD7B07f33A8B32118C", "USDC", "USDC", "2"),
    (42_220, "0x48065fbBE25f71C9282ddf5e1cD6D6A887483D5e", "USDT", "Tether USD", "1"),
    (42_220, "0xD2ab3C9A02DBBAB236BfEC45D1d755DF4267F771", "USAT", "Tether America USD", "1"),
    (11_142_220, "0x01C5C0122039549AD1493B8220cABEdD739BC44E", "USDC", "USDC", "2"),
    (1_329, "0xe15fC38F6D8c56aF07bbCBe3BAf5708A2Bf42392", "USDC", "USDC", "2"),
    (1_328, "0x4fCF1784B31630811181f670Aea7A7bEF803eaED", "USDC", "USDC", "2"),
    (43_113, "0x5425890298aed601595a70AB815c96711a31Bc65", "USDC", "USD Coin", "2"),
    (80_002, "0x41E94Eb019C0762f9Bfcf9Fb1E58725BfB0e7582", "USDC", "USDC", "2"),
];

/// The decimals of every token above.
const KNOWN_DECIMALS: u8 = 6;

/// A token that may be used for payments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) chain_id: u64,
    pub(crate) contract: Address,
    pub(crate) decimals: u8,
    /// What to call it.
    pub(crate) symbol: String,
    /// The name and version that its signatures are bound to (EIP-712), if they are known. Otherwise the offer's apply:
    /// with wrong ones, the signature is useless but harmless.
    pub(crate) domain: Option<(String, String)>,
}

/// The tokens that may be used for payments.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tokens(Vec<Token>);

impl Tokens {
    /// The known tokens plus these. A token given here replaces the known one.
    pub(crate) fn with(more: impl IntoIterator<Item = Token>) -> Self {
        let known = KNOWN.iter().filter_map(|(chain_id, contract, symbol, name, version)| {
            Some(Token {
                chain_id: *chain_id,
                contract: contract.parse().ok()?,
                decimals: KNOWN_DECIMALS,
                symbol: (*symbol).to_owned(),
                domain: Some(((*name).to_owned(), (*version).to_owned())),
            })
        });
        Self(more.into_iter().chain(known).collect())
    }

    /// The token with this contract.
    pub(crate) fn find(&self, chain_id: u64, contract: Address) -> Option<&Token> {
        self.0.iter().find(|token| (token.chain_id, token.contract) == (chain_id, contract))
    }
}

/// `CHAIN:CONTRACT:DECIMALS`, such as `84532:0x036CbD53842c5426634e7929541eC2318f3dCF7e:6`.
impl FromStr for Token {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str = "must be CHAIN_ID:CONTRACT:DECIMALS, such as \
                            84532:0x036CbD53842c5426634e7929541eC2318f3dCF7e:6, with at most 18 decimals";
        let parts: Vec<_> = text.split(':').collect();
        let [chain, contract, decimals] = parts.as_slice() else { return Err(FORM) };
        let contract: Address = contract.parse().map_err(|_| FORM)?;
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let chain_id = chain.parse().ok().filter(|_| is_number(chain)).ok_or(FORM)?;
        let decimals = decimals.parse().ok().filter(|found| is_number(decimals) && *found <= 18).ok_or(FORM)?;
        Ok(Self { chain_id, contract, decimals, symbol: contract.to_checksummed(), domain: None })
    }
}

/// The same form.
impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.chain_id, self.contract.to_checksummed(), self.decimals)
    }
}

/// The chain that version 1 of x402 calls by this name.
pub(crate) fn chain_of_name(name: &str) -> Option<u64> {
    const NAMED: [u64; 12] = [8_453, 84_532, 43_114, 43_113, 4_689, 1_329, 1_328, 137, 80_002, 3_338, 2_741, 11_124];
    NAMED.into_iter().find(|chain_id| network_name_v1(*chain_id) == Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_tokens_are_all_there_once() {
        let tokens = Tokens::with([]);
        assert_eq!(tokens.0.len(), KNOWN.len(), "every address parses, with its checksum");
        for token in &tokens.0 {
            assert_eq!(tokens.find(token.chain_id, token.contract), Some(token), "{token}");
        }
        let usdc = "0x036CbD53842c5426634e7929541eC2318f3dCF7e".parse().unwrap();
        assert_eq!(tokens.find(84_532, usdc).map(|token| token.symbol.as_str()), Some("USDC"));
        assert_eq!(tokens.find(8_453, usdc), None, "another chain");
    }

    #[test]
    fn token_of_the_user_replaces_a_known_one() {
        let text = "84532:0x036CbD53842c5426634e7929541eC2318f3dCF7e:18";
        let token: Token = text.parse().unwrap();
        assert_eq!(token.to_string(), text);
        let tokens = Tokens::with([token.clone()]);
        assert_eq!(tokens.find(84_532, token.contract), Some(&token));
        for text in [
            "",
            "1:2:3",
            "0x036CbD53842c5426634e7929541eC2318f3dCF7e:6",
            "+1:0x036CbD53842c5426634e7929541eC2318f3dCF7e:6",
            "1:0x036CbD53842c5426634e7929541eC2318f3dCF7e:19",
            "1:0x036CbD53842c5426634e7929541eC2318f3dCF7e:6:7",
            "base:0x036CbD53842c5426634e7929541eC2318f3dCF7e:6",
        ] {
            assert!(text.parse::<Token>().is_err(), "{text}");
        }
    }

    #[test]
    fn networks_of_version_1_are_found_by_name() {
        assert_eq!(chain_of_name("base-sepolia"), Some(84_532));
        assert_eq!(chain_of_name("abstract-testnet"), Some(11_124));
        assert_eq!(chain_of_name("solana"), None);
    }
}
