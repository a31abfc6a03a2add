//! What became of a payment.

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

/// How deep another transaction must be in a payment's place before the payment counts as replaced: as deep as payments
/// must be by default before they count. Who is told too early pays a second time.
const REPLACED_AT: u64 = 12;

/// What became of a signed payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The source has not seen it. It can be sent, again if it was sent already.
    Unknown,
    /// It waits for a block; or another transaction has just come to be in its place, and may not stay there.
    Pending,
    /// A block has it.
    Mined {
        /// Whether the money moved.
        succeeded: bool,
        /// How deep it is, its own block counted.
        confirmations: u64,
    },
    /// Another transaction of the wallet has its place for good: it will never be mined.
    Replaced,
}

impl Payer {
    /// What became of a payment.
    ///
    /// # Errors
    /// When the source does not say.
    pub async fn standing(&self, payment: &SignedPayment) -> Result<Standing, PayError> {
        self.check_signed(payment)?;
        self.look(payment).await.map_err(|failure| self.failed(&failure))
    }

    /// [`PayError::WrongChain`] or [`PayError::Damaged`] where the payment is not one of this payer's chain.
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
        // The place is looked at before the payment is, once more: were it the other way round, the payment could come
        // into a block between the two and look replaced by itself.
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

    /// What the source shows of the payment itself.
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

    /// Whether a transaction of the payment's nonce is in the chain.
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

/// A nonce of a wallet, as far as the chain is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// No transaction has it.
    Free,
    /// One has it, in a block that may be undone.
    Shaken,
    /// One has it for good.
    Lost,
}
