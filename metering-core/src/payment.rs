//! Payments: what a transaction must show to pay for something, and the pure rule that judges it.
//!
//! The rule sees evidence and terms, nothing else: no store, no network, no clock. Whether a transaction was used
//! before is a fact of the store.

mod error;
mod fault;
mod pending;
mod record;
mod settlement;
mod unreadable;

pub use error::{PaymentError, RecoveryError};
pub use fault::PaymentFault;
pub use record::{PaymentRecord, PaymentUse};
pub use settlement::{PaymentSettlement, Seen, SettlementDecision, SettlementEntry, SettlementStep, decide};
pub use unreadable::{ArrivalPlace, UnreadableArrival};

use crate::address::Address;
use crate::chain::{BlockHash, Evidence, NativeTransfer, TokenTransfer};
use crate::clock::Timestamp;
use crate::transaction::TxRef;
use crate::units::TokenUnits;

/// Where a payment goes, and in what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PaymentTarget {
    /// The chain's id (EIP-155).
    pub chain_id: u64,
    /// The token's contract; the zero address for the native coin.
    pub token: Address,
    /// Who is paid.
    pub recipient: Address,
}

/// A payment that arrived: a transfer to a recipient, in a transaction that succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payment {
    /// The transaction.
    pub tx: TxRef,
    /// Whose money it was: the token's owner, whoever sent the transaction, or a native coin's sender.
    pub payer: Address,
    /// Who got it.
    pub recipient: Address,
    /// The token's contract; the zero address for the native coin.
    pub token: Address,
    /// How much.
    pub amount: TokenUnits,
    /// The number of its block.
    pub block_number: u64,
    /// The hash of its block; `None` for payments recorded before hashes were kept.
    pub block_hash: Option<BlockHash>,
    /// When its block was made, to the second.
    pub mined_at: Timestamp,
}

impl Payment {
    /// Whether it was paid in the native coin.
    #[must_use]
    pub fn is_native(&self) -> bool {
        self.token == Address::ZERO
    }

    /// Where it went, and in what.
    #[must_use]
    pub const fn target(&self) -> PaymentTarget {
        PaymentTarget { chain_id: self.tx.chain_id, token: self.token, recipient: self.recipient }
    }
}

impl PaymentTarget {
    /// The payment to this target that a transaction of its chain made.
    ///
    /// For a token, exactly one `Transfer` of its contract to the recipient: of two, nobody could say which one was
    /// meant. For the native coin, the transaction's own value, without call data: what contracts move leaves no
    /// evidence.
    ///
    /// # Errors
    /// What is wrong with it, its amount, payer and depth aside.
    pub fn payment(&self, tx: TxRef, evidence: &Evidence) -> Result<Payment, PaymentFault> {
        if tx.chain_id != self.chain_id {
            return Err(PaymentFault::OtherChain { expected: self.chain_id, found: tx.chain_id });
        }
        if !evidence.succeeded {
            return Err(PaymentFault::Reverted);
        }
        let (payer, amount) = if self.token == Address::ZERO {
            self.native_payment(evidence.native.as_ref())?
        } else {
            self.token_payment(&evidence.transfers)?
        };
        Ok(Payment {
            tx,
            payer,
            recipient: self.recipient,
            token: self.token,
            amount,
            block_number: evidence.block.number,
            block_hash: Some(evidence.block.hash),
            mined_at: evidence.block.time,
        })
    }

    fn token_payment(&self, transfers: &[TokenTransfer]) -> Result<(Address, TokenUnits), PaymentFault> {
        let mut ours =
            transfers.iter().filter(|transfer| transfer.token == self.token && transfer.to == self.recipient);
        match (ours.next(), ours.count()) {
            (Some(transfer), 0) => Ok((transfer.from, transfer.value)),
            (None, _) => Err(PaymentFault::NoTransfer {
                token: self.token,
                recipient: self.recipient,
                found: transfers.to_vec(),
            }),
            (Some(_), more) => Err(PaymentFault::SeveralTransfers { count: more + 1 }),
        }
    }

    fn native_payment(&self, native: Option<&NativeTransfer>) -> Result<(Address, TokenUnits), PaymentFault> {
        let native = native.ok_or(PaymentFault::NoNativeTransfer { recipient: self.recipient })?;
        if native.to != Some(self.recipient) {
            return Err(PaymentFault::WrongRecipient { expected: self.recipient, found: native.to });
        }
        if native.has_input {
            return Err(PaymentFault::HasInput);
        }
        Ok((native.from, native.value))
    }
}

#[cfg(test)]
mod tests;
