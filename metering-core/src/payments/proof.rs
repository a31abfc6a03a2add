//! Messages that a payer signs: consent to credit a payment to an account that is not the wallet's own, and the claim
//! of a quote whose nonce is lost.
//!
//! A transaction hash is public, so knowing it proves nothing. The text to sign is a pure function of account, payer
//! and transaction, so the server keeps no state between sending it and checking the signature.

use crate::access::account::AccountId;
use crate::chains::address::Address;
use crate::chains::transaction::TxRef;

/// The text that the payer signs (EIP-191).
///
/// It contains nothing that changes, so a signature never expires. It works only once, since a transaction counts only
/// once.
///
/// ```
/// use metering_core::AccountId;
/// use metering_core::chains::{Address, TxHash, TxRef};
/// use metering_core::payments::payer_proof_message;
/// # let account = AccountId::generate(&metering_core::SystemRandomness);
/// # let payer = Address::from_bytes([7; 20]);
///
/// let tx = TxRef { chain_id: 8453, hash: TxHash::from_bytes([0xab; 32]) };
/// let message = payer_proof_message("The metering service at https://api.example.com", &account, payer, tx);
/// assert!(message.contains(&format!("Account: {account}\n")));
/// assert!(message.contains("Chain: 8453\n"));
/// ```
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
         {}",
        payment(payer, tx)
    )
}

/// The text that a payer signs (EIP-191) to claim the quote that a payment pays, without that quote's nonce.
///
/// It contains nothing that changes, and works only once, since a quote is claimed once.
///
/// ```
/// use metering_core::chains::{Address, TxHash, TxRef};
/// use metering_core::payments::claim_proof_message;
/// # let payer = Address::from_bytes([7; 20]);
///
/// let tx = TxRef { chain_id: 8453, hash: TxHash::from_bytes([0xab; 32]) };
/// let message = claim_proof_message("The metering service at https://api.example.com", payer, tx);
/// assert!(message.contains("Purpose: claim\n"));
/// ```
#[must_use]
pub fn claim_proof_message(service: &str, payer: Address, tx: TxRef) -> String {
    format!(
        "{service} asks you to claim the account that your payment opens.\n\
         \n\
         Signing this gives the API key of the new account to whoever sends the signature. It\n\
         moves no money.\n\
         \n\
         Purpose: claim\n\
         {}",
        payment(payer, tx)
    )
}

/// The lines of a message that identify the payment.
fn payment(payer: Address, tx: TxRef) -> String {
    format!("Payer: {}\nChain: {}\nTransaction: {}", payer.to_checksummed(), tx.chain_id, tx.hash)
}
