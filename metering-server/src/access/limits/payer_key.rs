use metering_core::chains::Address;

use super::Network;

/// Whose payments are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum PayerKey {
    /// Those that the wallet's own key signed, from any network.
    Signed(Address),
    /// Other payments in the name of a wallet, per network of origin. Anyone can make these up, so they must not keep
    /// the wallet's owner from paying.
    Unproven(Address, Option<Network>),
}
