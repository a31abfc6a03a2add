//! Networks of version 1, and how its strictest client spells their USDC.

use metering_core::chains::Address;

/// Chain id, name, and USDC as spelled in `types/shared/evm/config.ts` of npm's `x402` 1.2.0. That client compares the
/// text: it treats offers in another spelling as another token, which it pays only if there is no USDC. `story`,
/// `educhain` and `skale-base-sepolia` are missing: npm and `PyPI` have different ids for them.
const NETWORKS: [(u64, &str, &str); 12] = [
    (8_453, "base", "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"),
    (84_532, "base-sepolia", "0x036CbD53842c5426634e7929541eC2318f3dCF7e"),
    (43_114, "avalanche", "0xB97EF9Ef8734C71904D8002F8b6Bc66Dd9c48a6E"),
    (43_113, "avalanche-fuji", "0x5425890298aed601595a70AB815c96711a31Bc65"),
    (4_689, "iotex", "0xcdf79194c6c285077a58da47641d4dbe51f63542"),
    (1_329, "sei", "0xe15fc38f6d8c56af07bbcbe3baf5708a2bf42392"),
    (1_328, "sei-testnet", "0x4fcf1784b31630811181f670aea7a7bef803eaed"),
    (137, "polygon", "0x3c499c542cef5e3811e1192ce70d8cc03d5c3359"),
    (80_002, "polygon-amoy", "0x41E94Eb019C0762f9Bfcf9Fb1E58725BfB0e7582"),
    (3_338, "peaq", "0xbbA60da06c2c5424f03f7434542280FCAd453d10"),
    (2_741, "abstract", "0x84a71ccd554cc1b02749b35d22f684cc8ec987e1"),
    (11_124, "abstract-testnet", "0xe4C7fBB0a626ed208021ccabA6Be1566905E2dFc"),
];

/// The name of a chain in version 1; `None` if not every client of that version supports the chain.
///
/// ```
/// use metering_pay::wire::x402::network_name_v1;
///
/// assert_eq!(network_name_v1(84_532), Some("base-sepolia"));
/// assert_eq!(network_name_v1(1), None);
/// ```
#[must_use]
pub fn network_name_v1(chain_id: u64) -> Option<&'static str> {
    NETWORKS.iter().find(|(id, _, _)| *id == chain_id).map(|(_, name, _)| *name)
}

/// The chain with this name.
pub(super) fn chain_id(name: &str) -> Option<u64> {
    NETWORKS.iter().find(|(_, known, _)| *known == name).map(|(id, _, _)| *id)
}

/// A token's address, in the spelling that clients prefer.
pub(super) fn asset_text(chain_id: u64, asset: Address) -> String {
    let known = NETWORKS.iter().find(|(id, _, usdc)| *id == chain_id && usdc.parse() == Ok(asset));
    known.map_or_else(|| asset.to_checksummed(), |(_, _, usdc)| (*usdc).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_network_is_found_by_name_and_its_usdc_keeps_its_spelling() {
        for (id, name, usdc) in NETWORKS {
            assert_eq!((network_name_v1(id), chain_id(name)), (Some(name), Some(id)));
            let address: Address = usdc.to_lowercase().parse().unwrap();
            assert_eq!(asset_text(id, address), usdc);
            assert_eq!(asset_text(1, address), address.to_checksummed());
            // Python's client reads the mixed case of EIP-55 only.
            let mixed = usdc.to_lowercase() != usdc;
            assert!(!mixed || usdc == address.to_checksummed(), "{usdc}");
        }
        for name in ["", "ethereum", "Base", "story"] {
            assert_eq!(chain_id(name), None, "{name}");
        }
    }
}
