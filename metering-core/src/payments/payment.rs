//! The types of payments, and the rule that decides whether a transaction pays a target.
//!
//! The decision is a pure function of the evidence: no store, no network, no clock. Only the store knows whether a
//! transaction was used before.

mod arrival;
mod error;
mod fault;
mod pending;
mod record;
mod settlement;
mod sold;
mod unreadable;

pub use arrival::{Arrival, UnclaimedPayment};
pub use error::{PaymentError, RecoveryError};
pub use fault::PaymentFault;
pub use record::{PaymentRecord, PaymentSettlement, PaymentUse};
pub use settlement::{ChainView, SettlementDecision, SettlementEntry, SettlementStep, decide};
pub use sold::SoldPlan;
pub use unreadable::{ArrivalLocation, UnreadableArrival};

use crate::chains::address::Address;
use crate::chains::chain::{BlockHash, Evidence, NativeTransfer, TokenTransfer};
use crate::chains::transaction::TxRef;
use crate::chains::units::TokenUnits;
use crate::clock::Timestamp;

/// The target of a payment: its recipient and its token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PaymentTarget {
    /// The chain's id (EIP-155).
    pub chain_id: u64,
    /// The token's contract; the zero address for the native coin.
    pub token: Address,
    /// The address that is paid.
    pub recipient: Address,
}

/// A payment: a transfer to a recipient, in a transaction that succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payment {
    /// The transaction.
    pub tx: TxRef,
    /// The wallet whose money it was: the owner of the tokens, even if a relayer sent the transaction; for the native
    /// coin, the sender.
    pub payer: Address,
    /// The address that received it.
    pub recipient: Address,
    /// The token's contract; the zero address for the native coin.
    pub token: Address,
    /// The amount.
    pub amount: TokenUnits,
    /// The number of its block.
    pub block_number: u64,
    /// The hash of its block; `None` for payments recorded before hashes were kept.
    pub block_hash: Option<BlockHash>,
    /// The timestamp of its block, in whole seconds.
    pub mined_at: Timestamp,
}

impl Payment {
    /// Its recipient and token.
    #[must_use]
    pub const fn target(&self) -> PaymentTarget {
        PaymentTarget { chain_id: self.tx.chain_id, token: self.token, recipient: self.recipient }
    }
}

impl PaymentTarget {
    /// Finds the payment to this target in a transaction of its chain.
    ///
    /// For a token, there must be exactly one `Transfer` of it to the recipient: with two, it is unclear which one
    /// pays. For the native coin, only the transaction's own value counts, sent without call data: transfers made by
    /// contracts leave no evidence.
    ///
    /// # Errors
    /// The first problem found. Amount, payer and confirmations are not checked here.
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

    /// The payment of exactly this amount by this payer, whatever else is in the transaction; `None` if there is none.
    ///
    /// For signed authorizations, which name both. Anyone may execute several of them in one transaction, or add
    /// another transfer, without invalidating the payment.
    #[must_use]
    pub fn transfer(&self, tx: TxRef, evidence: &Evidence, (payer, amount): (Address, TokenUnits)) -> Option<Payment> {
        let transfer = TokenTransfer { token: self.token, from: payer, to: self.recipient, value: amount };
        let transfers = evidence.transfers.iter().filter(|found| **found == transfer).take(1).copied().collect();
        self.payment(tx, &Evidence { transfers, ..evidence.clone() }).ok()
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
