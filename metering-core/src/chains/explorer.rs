//! Block explorers: where people look at a transaction.

use crate::chains::transaction::TxHash;

/// The block explorers of well-known chains, by id. An operator may configure another.
const KNOWN: [(u64, &str); 14] = [
    (1, "https://etherscan.io"),
    (10, "https://optimistic.etherscan.io"),
    (56, "https://bscscan.com"),
    (100, "https://gnosisscan.io"),
    (130, "https://uniscan.xyz"),
    (137, "https://polygonscan.com"),
    (324, "https://explorer.zksync.io"),
    (8453, "https://basescan.org"),
    (42161, "https://arbiscan.io"),
    (42220, "https://celoscan.io"),
    (43114, "https://snowtrace.io"),
    (59144, "https://lineascan.build"),
    (84532, "https://sepolia.basescan.org"),
    (11_155_111, "https://sepolia.etherscan.io"),
];

/// The block explorer of a well-known chain, without a trailing slash.
///
/// ```
/// use metering_core::chains::known_explorer;
///
/// assert_eq!(known_explorer(8453), Some("https://basescan.org"));
/// assert_eq!(known_explorer(31337), None);
/// ```
#[must_use]
pub fn known_explorer(chain_id: u64) -> Option<&'static str> {
    KNOWN.iter().find(|(known, _)| *known == chain_id).map(|(_, url)| *url)
}

/// The page of a transaction; `None` without an explorer.
pub(crate) fn transaction_url(explorer: &str, hash: &TxHash) -> Option<String> {
    (!explorer.is_empty()).then(|| format!("{}/tx/{hash}", explorer.trim_end_matches('/')))
}
