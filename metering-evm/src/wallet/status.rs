//! The status of a signed payment.

use metering_core::chains::TransactionStatus;

use super::calls::count;
use super::error::PayError;
use super::payer::Payer;
use super::payment::SignedPayment;
use crate::call::Call;
use crate::encoding::Height;
use crate::failure::Failure;
use crate::finality::Finality;
use crate::lookup;

/// How many confirmations another transaction with the same nonce needs before the payment counts as replaced. If this
/// were reported too early, the payer might pay twice.
const REPLACED_CONFIRMATIONS: u64 = 12;

/// The status of a signed payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaymentStatus {
    /// The source has not seen it. It can be sent, or sent again.
    Unknown,
    /// It is pending, or another transaction with its nonce was mined in a block that may still be reverted.
    Pending,
    /// It is in a block.
    Mined {
        /// Whether the transaction succeeded, so that the money moved.
        succeeded: bool,
        /// Its confirmations, its own block included.
        confirmations: u64,
    },
    /// Another mined transaction of the wallet has used its nonce: it will never be mined.
    Replaced,
}

impl Payer {
    /// The status of a payment.
    ///
    /// # Errors
    /// When the source fails.
    pub async fn status(&self, payment: &SignedPayment) -> Result<PaymentStatus, PayError> {
        self.check_signed(payment)?;
        self.read_status(payment).await.map_err(|failure| self.failed(&failure))
    }

    /// Fails with [`PayError::WrongChain`] if the payment is for another chain, and with [`PayError::Damaged`] if its
    /// bytes do not match its hash.
    pub(super) fn check_signed(&self, payment: &SignedPayment) -> Result<(), PayError> {
        if payment.chain_id != self.chain_id {
            return Err(PayError::WrongChain { expected: payment.chain_id, found: self.chain_id });
        }
        if payment.matches_hash() { Ok(()) } else { Err(PayError::Damaged) }
    }

    pub(super) async fn read_status(&self, payment: &SignedPayment) -> Result<PaymentStatus, Failure> {
        let seen = self.chain_status(payment).await?;
        if seen != PaymentStatus::Unknown {
            return Ok(seen);
        }
        // Check the nonce first, and then the payment once more. In the other order, the payment could be mined between
        // the two checks and appear to be replaced by itself.
        let nonce_state = self.nonce_state(payment).await?;
        if nonce_state == NonceState::Free {
            return Ok(PaymentStatus::Unknown);
        }
        match self.chain_status(payment).await? {
            PaymentStatus::Unknown if nonce_state == NonceState::Used => Ok(PaymentStatus::Replaced),
            PaymentStatus::Unknown => Ok(PaymentStatus::Pending),
            seen => Ok(seen),
        }
    }

    /// What the source reports about the payment itself.
    async fn chain_status(&self, payment: &SignedPayment) -> Result<PaymentStatus, Failure> {
        let any = Finality::Confirmations(std::num::NonZeroU32::MIN);
        Ok(match lookup::transaction_status(&self.source, any, &payment.hash).await? {
            TransactionStatus::Unknown => PaymentStatus::Unknown,
            TransactionStatus::Pending { .. } => PaymentStatus::Pending,
            TransactionStatus::Mined(evidence) => {
                PaymentStatus::Mined { succeeded: evidence.succeeded, confirmations: evidence.depth.confirmations }
            }
        })
    }

    /// Whether a transaction with the payment's nonce is in the chain.
    async fn nonce_state(&self, payment: &SignedPayment) -> Result<NonceState, Failure> {
        let newest = [Call::mined_count(payment.from), Call::block_number()];
        let (mined, Height(newest)) =
            self.source.send_batch(&newest, |results| Ok((count(results.next()?), results.next()?))).await?;
        if mined <= payment.nonce {
            return Ok(NonceState::Free);
        }
        // The chain's first block has no transactions.
        let deep = [Call::mined_count_at(payment.from, newest.saturating_sub(REPLACED_CONFIRMATIONS - 1))];
        let settled = self.source.send_batch(&deep, |results| Ok(count(results.next()?))).await?;
        Ok(if settled > payment.nonce { NonceState::Used } else { NonceState::Unconfirmed })
    }
}

/// The state of a nonce in the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NonceState {
    /// No transaction uses it.
    Free,
    /// A transaction uses it, in a block that may still be reverted.
    Unconfirmed,
    /// A final transaction uses it.
    Used,
}
