//! The status of a signed payment.

use metering_core::Sighting;

use super::error::PayError;
use super::payer::Payer;
use super::payment::SignedPayment;
use super::questions::count;
use crate::call::Call;
use crate::encoding::Height;
use crate::failure::Failure;
use crate::finality::Finality;
use crate::look;

/// How many confirmations another transaction with the same nonce needs before the payment counts as replaced. If this
/// were reported too early, the payer might pay twice.
const REPLACED_AT: u64 = 12;

/// The status of a signed payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
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
    /// Another transaction of the wallet has used its nonce for good: it will never be mined.
    Replaced,
}

impl Payer {
    /// The status of a payment.
    ///
    /// # Errors
    /// When the source fails.
    pub async fn standing(&self, payment: &SignedPayment) -> Result<Standing, PayError> {
        self.check_signed(payment)?;
        self.look(payment).await.map_err(|failure| self.failed(&failure))
    }

    /// Fails with [`PayError::WrongChain`] if the payment is for another chain, and with [`PayError::Damaged`] if its
    /// bytes do not match its hash.
    pub(super) fn check_signed(&self, payment: &SignedPayment) -> Result<(), PayError> {
        if payment.chain_id != self.chain_id {
            return Err(PayError::WrongChain { expected: payment.chain_id, found: self.chain_id });
        }
        if payment.is_whole() { Ok(()) } else { Err(PayError::Damaged) }
    }

    pub(super) async fn look(&self, payment: &SignedPayment) -> Result<Standing, Failure> {
        let seen = self.sight(payment).await?;
        if seen != Standing::Unknown {
            return Ok(seen);
        }
        // Check the nonce first, and then the payment once more. In the other order, the payment could be mined between
        // the two checks and appear to be replaced by itself.
        let place = self.place(payment).await?;
        if place == Place::Free {
            return Ok(Standing::Unknown);
        }
        match self.sight(payment).await? {
            Standing::Unknown if place == Place::Lost => Ok(Standing::Replaced),
            Standing::Unknown => Ok(Standing::Pending),
            seen => Ok(seen),
        }
    }

    /// What the source reports about the payment itself.
    async fn sight(&self, payment: &SignedPayment) -> Result<Standing, Failure> {
        let any = Finality::Confirmations(std::num::NonZeroU32::MIN);
        Ok(match look::sight(&self.source, any, &payment.hash).await? {
            Sighting::Unknown => Standing::Unknown,
            Sighting::Pending { .. } => Standing::Pending,
            Sighting::Mined(evidence) => {
                Standing::Mined { succeeded: evidence.succeeded, confirmations: evidence.depth.confirmations }
            }
        })
    }

    /// Whether a transaction with the payment's nonce is in the chain.
    async fn place(&self, payment: &SignedPayment) -> Result<Place, Failure> {
        let newest = [Call::mined_count(payment.from), Call::block_number()];
        let (mined, Height(newest)) =
            self.source.ask(&newest, |answers| Ok((count(answers.next()?), answers.next()?))).await?;
        if mined <= payment.nonce {
            return Ok(Place::Free);
        }
        // The chain's first block has no transactions.
        let deep = [Call::mined_count_at(payment.from, newest.saturating_sub(REPLACED_AT - 1))];
        let settled = self.source.ask(&deep, |answers| Ok(count(answers.next()?))).await?;
        Ok(if settled > payment.nonce { Place::Lost } else { Place::Shaken })
    }
}

/// The state of a nonce in the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// No transaction uses it.
    Free,
    /// A transaction uses it, in a block that may still be reverted.
    Shaken,
    /// A transaction uses it for good.
    Lost,
}
