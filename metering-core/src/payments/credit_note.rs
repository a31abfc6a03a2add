//! Credit notes: amounts that were taken back from a payment that has a receipt. Like receipts, they are not stored:
//! they are derived from the reversals, and their numbers depend only on data that never changes.
//!
//! The notes in force never exceed the payment, and together have its tax when they take the whole payment back.

use std::fmt;
use std::str::FromStr;

use sha3::{Digest, Sha3_256};

use crate::chains::transaction::TxRef;
use crate::chains::units::TokenUnits;
use crate::clock::Timestamp;
use crate::money::ledger::LedgerKind;
use crate::payments::exchange_rate::CurrencyAmount;
use crate::payments::payment::Payment;
use crate::payments::processor::{ProcessorRef, ProcessorReversal};
use crate::payments::receipt::{ReceiptNumber, ReceiptNumberError};
use crate::payments::tax::TaxRate;

/// The number of a credit note: the receipt's number with `C-` instead of `R-`, and its own part in hexadecimal.
///
/// ```
/// use metering_core::payments::CreditNoteNumber;
///
/// let number: CreditNoteNumber = "c-8453-9f86d081884c7d65-1".parse()?;
/// assert_eq!(number.to_string(), "C-8453-9F86D081884C7D65-1");
/// assert_eq!(number.receipt().to_string(), "R-8453-9F86D081884C7D65");
/// # Ok::<(), metering_core::payments::ReceiptNumberError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CreditNoteNumber {
    receipt: ReceiptNumber,
    part: u32,
}

impl CreditNoteNumber {
    /// The number of the credit note for a reversal that a processor reported: the first one, if it has several.
    #[must_use]
    pub fn of_reversal(reversal: &ProcessorReversal) -> Self {
        let payment = TxRef { chain_id: ProcessorRef::CHAIN_ID, hash: reversal.payment };
        let own = reversal.reference.tx().hash;
        let (part, _) = own.as_bytes().split_first_chunk().expect("a hash has 32 bytes");
        Self { receipt: ReceiptNumber::of(&payment), part: u32::from_be_bytes(*part).max(1) }
    }

    /// The number of the credit note for a reversal that has this many already.
    fn after(reversal: &ProcessorReversal, notes: usize) -> Self {
        let first = Self::of_reversal(reversal);
        if notes == 0 {
            return first;
        }
        let count = u32::try_from(notes).unwrap_or(u32::MAX).to_be_bytes();
        let own = Sha3_256::new().chain_update(reversal.reference.tx().hash.as_bytes()).chain_update(count).finalize();
        let own: [u8; 32] = own.into();
        let (part, _) = own.split_first_chunk().expect("a hash has 32 bytes");
        Self { part: u32::from_be_bytes(*part).max(1), ..first }
    }

    /// The number of the receipt that it corrects.
    #[must_use]
    pub const fn receipt(&self) -> ReceiptNumber {
        self.receipt
    }

    /// The part of the number, never 0: a count for removals by a chain, the beginning of a hash for reversals of a
    /// processor.
    #[must_use]
    pub const fn part(&self) -> u32 {
        self.part
    }
}

impl fmt::Display for CreditNoteNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let receipt = self.receipt.to_string();
        write!(f, "C{}-{:X}", receipt.trim_start_matches('R'), self.part)
    }
}

impl FromStr for CreditNoteNumber {
    type Err = ReceiptNumberError;

    fn from_str(text: &str) -> Result<Self, ReceiptNumberError> {
        let text = text.to_ascii_uppercase();
        let parts = text.strip_prefix('C').and_then(|rest| rest.rsplit_once('-')).ok_or(ReceiptNumberError)?;
        let part = u32::from_str_radix(parts.1, 16).map_err(|_| ReceiptNumberError)?;
        let number = Self { receipt: format!("R{}", parts.0).parse()?, part };
        // One spelling per number, as for receipts.
        if number.to_string() == text { Ok(number) } else { Err(ReceiptNumberError) }
    }
}

/// A credit note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CreditNote {
    pub(crate) number: CreditNoteNumber,
    pub(crate) issued_at: Timestamp,
    /// The amount of the payment that was taken back, in the smallest unit of its token or currency.
    pub(crate) amount: TokenUnits,
    /// Why; may be empty.
    pub(crate) reason: String,
    /// When that ended, as when a dispute was won, or the transaction was mined after all.
    pub(crate) cancelled_at: Option<Timestamp>,
}

impl CreditNote {
    /// The credit notes for the reversals of a payment that its processor reported, in the order of issue. The sum of
    /// those in force equals the amount that the reversals take back: at most the amount paid.
    ///
    /// A note covers at most the amount that those in force leave, and never changes after that. When a reversal ends,
    /// its notes are cancelled, and reversals that were cut short get another note for the missing amount. So does a
    /// reversal that restarts.
    pub(crate) fn of_reversals(paid: TokenUnits, reversals: &[ProcessorReversal]) -> Vec<Self> {
        let mut notes: Vec<(usize, Self)> = Vec::new();
        let mut active: Vec<usize> = Vec::new();
        let (reversals, steps) = steps(reversals);
        for Step { at, kind, place: changed, ended } in steps {
            active.retain(|other| *other != changed);
            if kind == StepKind::Begins {
                active.push(changed);
            } else {
                let in_force = notes.iter_mut().filter(|(of, note)| *of == changed && note.cancelled_at.is_none());
                in_force.for_each(|(_, note)| note.cancelled_at = ended);
            }
            for place in &active {
                let (reversal, in_force) = (reversals[*place], |of: Option<usize>| sum_in_force(&notes, of));
                let lacks = reversal.amount.get().saturating_sub(in_force(Some(*place)));
                let amount = lacks.min(paid.get().saturating_sub(in_force(None)));
                if amount > 0 {
                    let earlier = notes.iter().filter(|(of, _)| of == place).count();
                    let note = Self {
                        number: CreditNoteNumber::after(reversal, earlier),
                        issued_at: at,
                        amount: TokenUnits::new(amount),
                        reason: reversal.reason.clone(),
                        cancelled_at: None,
                    };
                    notes.push((*place, note));
                }
            }
        }
        notes.into_iter().map(|(_, note)| note).collect()
    }

    /// The tax in each note, given the value of an amount in a currency: it and those in force when it was issued have
    /// together the tax in their sum. The note that completes the payment includes the rounding remainder of the
    /// receipt's tax. `None` where a value is not known, or too large.
    pub(crate) fn taxes(
        notes: &[Self],
        rate: TaxRate,
        value_of: impl Fn(TokenUnits) -> Option<CurrencyAmount>,
    ) -> Vec<Option<CurrencyAmount>> {
        let mut taxed: Vec<(&Self, CurrencyAmount, CurrencyAmount)> = Vec::with_capacity(notes.len());
        let mut taxes = Vec::with_capacity(notes.len());
        for note in notes {
            let gross = value_of(note.amount);
            let in_force = taxed.iter().filter(|(other, ..)| other.cancelled_at.is_none_or(|at| at > note.issued_at));
            let others = in_force.map(|(_, gross, tax)| (*gross, *tax));
            let tax = gross.and_then(|gross| rate.included_in_part(gross, others));
            taxed.extend(gross.zip(tax).map(|(gross, tax)| (note, gross, tax)));
            taxes.push(tax);
        }
        taxes
    }

    /// The credit notes for the times when reorganisations removed a payment. `settlements` are the ledger's entries about
    /// that, in order.
    pub(crate) fn of_removals(payment: &Payment, settlements: &[(LedgerKind, Timestamp)]) -> Vec<Self> {
        let mut notes: Vec<Self> = Vec::new();
        for (kind, at) in settlements {
            match kind {
                LedgerKind::PaymentReversed => notes.push(Self {
                    number: CreditNoteNumber {
                        receipt: ReceiptNumber::of(&payment.tx),
                        part: u32::try_from(notes.len() + 1).unwrap_or(u32::MAX),
                    },
                    issued_at: *at,
                    amount: payment.amount,
                    reason: "A reorganisation of its chain removed the payment".to_owned(),
                    cancelled_at: None,
                }),
                LedgerKind::PaymentRestored => {
                    if let Some(newest) = notes.last_mut() {
                        newest.cancelled_at = Some(*at);
                    }
                }
                _ => {}
            }
        }
        notes
    }
}

/// The steps of a reversal: when, and which reversal it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Step {
    at: Timestamp,
    kind: StepKind,
    place: usize,
    /// When it ended, unless it begins.
    ended: Option<Timestamp>,
}

/// Of steps at the same time, those that free an amount come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum StepKind {
    Ends,
    Begins,
    /// By the clocks of two processes, it ended before it began.
    EndsAtOnce,
}

/// Reversals in the order in which they began, and their steps, in order.
fn steps(reversals: &[ProcessorReversal]) -> (Vec<&ProcessorReversal>, Vec<Step>) {
    let mut reversals: Vec<_> = reversals.iter().collect();
    reversals.sort_unstable_by(|one, other| {
        one.reversed_at.cmp(&other.reversed_at).then_with(|| one.reference.cmp(&other.reference))
    });
    let mut steps = Vec::with_capacity(2 * reversals.len());
    for (place, reversal) in reversals.iter().enumerate() {
        for (begins, ended) in reversal.periods() {
            steps.push(Step { at: begins, kind: StepKind::Begins, place, ended: None });
            if let Some(ends) = ended {
                let kind = if ends > begins { StepKind::Ends } else { StepKind::EndsAtOnce };
                steps.push(Step { at: ends.max(begins), kind, place, ended });
            }
        }
    }
    steps.sort_unstable();
    (reversals, steps)
}

/// The sum of the notes in force: for one reversal, or for all.
fn sum_in_force(notes: &[(usize, CreditNote)], of: Option<usize>) -> u128 {
    let in_force = notes.iter().filter(|(place, note)| of.is_none_or(|of| of == *place) && note.cancelled_at.is_none());
    in_force.fold(0_u128, |sum, (_, note)| sum.saturating_add(note.amount.get()))
}

#[cfg(test)]
mod tests;
