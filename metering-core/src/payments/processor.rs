//! Payments that a processor took, such as card payments: their names, and their reversals.
//!
//! A payment at a processor is recorded like one on a chain, so that ledger, receipts, reports and moves need no second
//! kind of payment: its transaction is on the chain 0, which no chain has (EIP-155), and the hash is computed from the
//! processor's name and id.

use std::time::Duration;

use sha3::{Digest, Sha3_256};

use crate::chains::transaction::{TxHash, TxRef};
use crate::chains::units::TokenUnits;
use crate::clock::Timestamp;

/// The most bytes in the name of a processor.
const MAX_PROCESSOR_BYTES: usize = 32;
/// The most bytes in an id.
const MAX_ID_BYTES: usize = 255;

/// A payment, or its reversal, as its processor names it.
///
/// ```
/// use metering_core::payments::ProcessorRef;
///
/// let payment = ProcessorRef::new("stripe", "pi_3MtwBwLkdIwHu7ix28a3tqPa")?;
/// assert_eq!(payment.tx().chain_id, ProcessorRef::CHAIN_ID);
/// assert_ne!(payment.tx(), ProcessorRef::new("another", payment.id())?.tx());
/// assert!(ProcessorRef::new("Stripe", "pi 3").is_err());
/// # Ok::<(), metering_core::payments::ProcessorRefError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessorRef {
    processor: String,
    id: String,
}

/// The names are not valid for a payment at a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProcessorRefError {
    /// The processor's name.
    #[error("must be 1 to 32 characters of a-z 0-9 _ -")]
    Processor,
    /// The id.
    #[error("must be 1 to 255 visible ASCII characters")]
    Id,
}

impl ProcessorRef {
    /// The chain that the transactions of processors' payments are on. No chain has this id.
    pub const CHAIN_ID: u64 = 0;

    /// Names a payment or a reversal.
    ///
    /// # Errors
    /// When a name has other characters, or too many.
    pub fn new(processor: &str, id: &str) -> Result<Self, ProcessorRefError> {
        let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
        if !(1..=MAX_PROCESSOR_BYTES).contains(&processor.len()) || !processor.bytes().all(is_name) {
            return Err(ProcessorRefError::Processor);
        }
        if !(1..=MAX_ID_BYTES).contains(&id.len()) || !id.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(ProcessorRefError::Id);
        }
        Ok(Self { processor: processor.to_owned(), id: id.to_owned() })
    }

    /// The processor's name.
    #[must_use]
    pub fn processor(&self) -> &str {
        &self.processor
    }

    /// The processor's id of the payment.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The transaction hash that represents it. It depends on both names only.
    #[must_use]
    pub fn tx(&self) -> TxRef {
        // No name of a processor has a zero byte.
        let hash = Sha3_256::new().chain_update(&self.processor).chain_update([0_u8]).chain_update(&self.id).finalize();
        TxRef { chain_id: Self::CHAIN_ID, hash: TxHash::from_bytes(hash.into()) }
    }
}

/// A reversal of a processor's payment, in whole or in part: a refund, or a dispute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessorReversal {
    /// The reversal, as its processor names it.
    pub reference: ProcessorRef,
    /// The hash of the payment's transaction ([`ProcessorRef::tx`]).
    pub payment: TxHash,
    /// The amount that it takes back, in the currency's smallest unit.
    pub amount: TokenUnits,
    /// Why.
    pub reason: String,
    /// When it was recorded. Every change of a payment's reversals has a later time than those before it.
    pub reversed_at: Timestamp,
    /// When it ended, as when a dispute was won: it takes nothing back any longer, unless it is reported to do so again.
    pub restored_at: Option<Timestamp>,
    /// When it had ended before, and took back again, in order. Credit notes follow from that, and never change.
    pub interruptions: Vec<(Timestamp, Timestamp)>,
}

impl ProcessorReversal {
    /// The amount that reversals of a payment take back together: at most all of it.
    #[must_use]
    pub fn amount_of<'a>(paid: TokenUnits, reversals: impl IntoIterator<Item = &'a Self>) -> TokenUnits {
        let in_effect = reversals.into_iter().filter(|reversal| reversal.restored_at.is_none());
        let amount = in_effect.fold(0_u128, |sum, reversal| sum.saturating_add(reversal.amount.get()));
        TokenUnits::new(amount.min(paid.get()))
    }

    /// The time of a further change of these reversals: later than all that is recorded of them, even in the same millisecond
    /// or if another process has a faster clock. Credit notes follow from the order of these times, and those that were issued
    /// must not change.
    pub(crate) fn next_time(reversals: &[Self], now: Timestamp) -> Timestamp {
        let of = |reversal: &Self| {
            let again = reversal.interruptions.last().map(|(_, again)| *again);
            [Some(reversal.reversed_at), reversal.restored_at, again].into_iter().flatten().max()
        };
        let last = reversals.iter().filter_map(of).max();
        last.map_or(now, |last| now.max(last.saturating_add(Duration::from_millis(1))))
    }

    /// After it ended, it takes its amount back again from now on.
    #[must_use]
    pub(crate) fn resumed(self, now: Timestamp) -> Self {
        let (mut reversed_at, mut interruptions) = (self.reversed_at, self.interruptions);
        match self.restored_at {
            // Its end came first, so it has taken nothing back yet: it begins now.
            Some(ended) if ended == reversed_at && interruptions.is_empty() => reversed_at = now,
            Some(ended) if ended < now => interruptions.push((ended, now)),
            _ => {}
        }
        Self { reversed_at, restored_at: None, interruptions, ..self }
    }

    /// The periods in which its amount was taken back, in order. The last one may not have ended.
    pub(crate) fn periods(&self) -> Vec<(Timestamp, Option<Timestamp>)> {
        let (mut periods, mut begins) = (Vec::with_capacity(1 + self.interruptions.len()), self.reversed_at);
        for (ended, again) in &self.interruptions {
            periods.push((begins, Some(*ended)));
            begins = *again;
        }
        periods.push((begins, self.restored_at));
        // A reversal that ended when it began took nothing back.
        periods.retain(|(begins, ends)| *ends != Some(*begins));
        periods
    }
}

/// The credits that a partial reversal takes back, in atoms: the same part as of the payment, rounded down. It depends
/// on the sum of the parts alone, so their order makes no difference, and reversing the whole payment takes back all
/// credits.
///
/// `None` when the amounts are too large.
#[must_use]
pub(crate) fn reversed_credits(credits: i128, reversed: TokenUnits, paid: TokenUnits) -> Option<i128> {
    let (reversed, paid) = (i128::try_from(reversed.get()).ok()?, i128::try_from(paid.get()).ok()?);
    credits.checked_mul(reversed)?.checked_div(paid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_ids_have_bounds() {
        let long = "x".repeat(256);
        // processor, id, problem
        let table = [
            ("stripe", "pi_1", None),
            ("my-shop_2", "#/~!", None),
            (&long[..32], &long[..255], None),
            ("", "pi_1", Some(ProcessorRefError::Processor)),
            ("Stripe", "pi_1", Some(ProcessorRefError::Processor)),
            (&long[..33], "pi_1", Some(ProcessorRefError::Processor)),
            ("stripe", "", Some(ProcessorRefError::Id)),
            ("stripe", "pi 1", Some(ProcessorRefError::Id)),
            ("stripe", "é", Some(ProcessorRefError::Id)),
            ("stripe", &long, Some(ProcessorRefError::Id)),
        ];
        for (processor, id, problem) in table {
            assert_eq!(ProcessorRef::new(processor, id).err(), problem, "{processor} {id}");
        }
    }

    #[test]
    fn a_transaction_is_of_one_processor_and_id() {
        let tx = |processor, id| ProcessorRef::new(processor, id).unwrap().tx();
        assert_eq!(tx("a", "b1"), tx("a", "b1"));
        assert_ne!(tx("a", "b1"), tx("ab", "1"), "where the name ends makes a difference");
    }

    #[test]
    fn parts_add_up_to_the_whole() {
        let of = |reversed| reversed_credits(100, TokenUnits::new(reversed), TokenUnits::new(3));
        assert_eq!([0, 1, 2, 3].map(of), [Some(0), Some(33), Some(66), Some(100)]);
        let largest = TokenUnits::new(u128::MAX);
        assert_eq!(reversed_credits(2, largest, largest), None);
        assert_eq!(reversed_credits(2, TokenUnits::ZERO, TokenUnits::ZERO), None);
    }
}
