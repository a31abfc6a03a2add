//! The payer's consent: that a payment from their wallet is credited to an account that is not the wallet's own.
//!
//! A transaction's hash is public, so naming it proves nothing. The text is made of what it is about and nothing else:
//! the server keeps no state between asking for it and reading it back.

use crate::account::AccountId;
use crate::address::Address;
use crate::transaction::TxRef;

/// The text that the payer signs (EIP-191).
///
/// It holds nothing that changes, so it is valid for ever; it does its work once, since a transaction counts once.
#[must_use]
pub fn payer_proof_message(service: &str, account: &AccountId, payer: Address, tx: TxRef) -> String {
    format!(
        "{service} asks you to credit your payment to an account.\n\
         \n\
         Signing this credits the payment below to the account, and lets the account register\n\
         later payments from this wallet. It moves no money.\n\
         \n\
         Purpose: top-up\n\
         Account: {account}\n\
         Payer: {}\n\
         Chain: {}\n\
         Transaction: {}",
        payer.to_checksummed(),
        tx.chain_id,
        tx.hash
    )
}
