//! The URI of a payment (EIP-681), which wallets on phones read from a QR code.

use crate::chains::address::Address;
use crate::chains::units::TokenUnits;
use crate::payments::payment::PaymentTarget;

impl PaymentTarget {
    /// The URI that asks a wallet to pay an exact amount to this target (EIP-681): `value` for the native coin, a call
    /// of `transfer` for a token.
    ///
    /// ```
    /// use metering_core::chains::{Address, TokenUnits};
    /// use metering_core::payments::PaymentTarget;
    ///
    /// let recipient = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed".parse()?;
    /// let target = PaymentTarget { chain_id: 8453, token: Address::ZERO, recipient };
    /// assert_eq!(
    ///     target.payment_uri(TokenUnits::new(2_000_000_000_000_004)),
    ///     "ethereum:0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed@8453?value=2000000000000004",
    /// );
    /// # Ok::<(), metering_core::chains::AddressError>(())
    /// ```
    #[must_use]
    pub fn payment_uri(&self, amount: TokenUnits) -> String {
        let Self { chain_id, token, recipient } = self;
        let recipient = recipient.to_checksummed();
        if *token == Address::ZERO {
            return format!("ethereum:{recipient}@{chain_id}?value={amount}");
        }
        let token = token.to_checksummed();
        format!("ethereum:{token}@{chain_id}/transfer?address={recipient}&uint256={amount}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_is_paid_by_its_transfer() {
        let parse = |text: &str| text.parse::<Address>().unwrap();
        let (token, recipient) =
            ("0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913", "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed");
        let target = PaymentTarget { chain_id: 8453, token: parse(token), recipient: parse(recipient) };
        let uri = target.payment_uri(TokenUnits::new(5_003_816));
        assert_eq!(uri, format!("ethereum:{token}@8453/transfer?address={recipient}&uint256=5003816"));
    }
}
