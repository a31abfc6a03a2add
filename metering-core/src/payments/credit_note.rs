//! Credit notes: what was taken back of a payment that has a receipt. Like receipts, they are not stored: their numbers depend
//! only on what never changes.

use std::fmt;
use std::str::FromStr;

use crate::chains::transaction::TxRef;
use crate::chains::units::TokenUnits;
use crate::clock::Timestamp;
use crate::money::ledger::LedgerKind;
use crate::payments::payment::Payment;
use crate::payments::processor::{ProcessorRef, ProcessorReversal};
use crate::payments::receipt::{ReceiptNumber, ReceiptNumberError};

/// The number of a credit note: that of its receipt with `C-` instead of `R-`, and a part of its own in hexadecimal.
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
    /// The number of the credit note for a reversal that a processor reported.
    #[must_use]
    pub fn of_reversal(reversal: &ProcessorReversal) -> Self {
        let payment = TxRef { chain_id: ProcessorRef::CHAIN_ID, hash: reversal.payment };
        let own = reversal.reference.tx().hash;
        let (part, _) = own.as_bytes().split_first_chunk().expect("a hash has 32 bytes");
        Self { receipt: ReceiptNumber::of(&payment), part: u32::from_be_bytes(*part).max(1) }
    }

    /// The number of the receipt that it corrects.
    #[must_use]
    pub const fn receipt(&self) -> ReceiptNumber {
        self.receipt
    }

    /// Which credit note of its receipt it is, never 0: a count for removals by a chain, the beginning of a hash for those of
    /// a processor.
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
    /// How much of the payment was taken back, in the smallest unit of its token or currency.
    pub(crate) amount: TokenUnits,
    /// Why; may be empty.
    pub(crate) reason: String,
    /// When that ended, as when a dispute was won, or the transaction was mined after all.
    pub(crate) cancelled_at: Option<Timestamp>,
}

impl CreditNote {
    /// The credit note for a reversal that a processor reported; `None` if it had ended before it was recorded, and took
    /// nothing back.
    pub(crate) fn of_reversal(reversal: &ProcessorReversal) -> Option<Self> {
        if reversal.restored_at == Some(reversal.reversed_at) {
            return None;
        }
        Some(Self {
            number: CreditNoteNumber::of_reversal(reversal),
            issued_at: reversal.reversed_at,
            amount: reversal.amount,
            reason: reversal.reason.clone(),
            cancelled_at: reversal.restored_at,
        })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chains::address::Address;
    use crate::chains::transaction::TxHash;

    const NOON: Timestamp = Timestamp::from_unix_millis(1_000);
    const LATER: Timestamp = Timestamp::from_unix_millis(2_000);

    fn payment(tx: TxRef) -> Payment {
        Payment {
            tx,
            payer: Address::ZERO,
            recipient: Address::ZERO,
            token: Address::ZERO,
            amount: TokenUnits::new(5),
            block_number: 1,
            block_hash: None,
            mined_at: NOON,
        }
    }

    #[test]
    fn numbers_have_one_spelling_and_name_their_receipt() {
        let table = [
            ("C-1-ABABABABABABABAB-1", true),
            ("c-1-abababababababab-1f", true),
            ("C-1-ABABABABABABABAB-FFFFFFFF", true),
            ("C-1-ABABABABABABABAB-01", false),
            ("C-1-ABABABABABABABAB-+1", false),
            ("C-1-ABABABABABABABAB-100000000", false),
            ("C-1-ABABABABABABABAB-", false),
            ("C-1-ABABABABABABABAB", false),
            ("C-01-ABABABABABABABAB-1", false),
            ("R-1-ABABABABABABABAB", false),
            ("", false),
        ];
        for (text, valid) in table {
            let number = text.parse::<CreditNoteNumber>();
            assert_eq!(number.is_ok(), valid, "{text}");
            let receipt = number.map(|number| number.receipt().to_string());
            assert!(receipt.is_err() || receipt == Ok("R-1-ABABABABABABABAB".to_owned()), "{text}");
        }
    }

    #[test]
    fn each_reversal_of_a_payment_has_a_number_of_its_own() {
        let named = |id| ProcessorRef::new("paddle", id).unwrap();
        let reversal = |id| ProcessorReversal {
            reference: named(id),
            payment: named("txn_1").tx().hash,
            amount: TokenUnits::new(250),
            reason: "not as described".to_owned(),
            reversed_at: NOON,
            restored_at: Some(LATER),
        };
        let [first, second] = ["adj_1", "adj_2"].map(|id| CreditNote::of_reversal(&reversal(id)).unwrap());
        assert_eq!(first.number.receipt(), ReceiptNumber::of(&named("txn_1").tx()));
        assert_eq!(second.number.receipt(), first.number.receipt());
        assert_ne!(first.number, second.number);
        assert_eq!(first.number.to_string().parse(), Ok(first.number));
        assert_eq!((first.issued_at, first.amount, first.cancelled_at), (NOON, TokenUnits::new(250), Some(LATER)));
        let ended_before = ProcessorReversal { restored_at: Some(NOON), ..reversal("adj_3") };
        assert_eq!(CreditNote::of_reversal(&ended_before), None);
    }

    #[test]
    fn removals_are_counted_and_cancelled_when_the_payment_returns() {
        use LedgerKind::{PaymentRestored, PaymentReversed};
        let payment = payment(TxRef { chain_id: 1, hash: TxHash::from_bytes([0xab; 32]) });
        let notes = |settlements: &[_]| {
            let notes = CreditNote::of_removals(&payment, settlements);
            notes.iter().map(|note| (note.number.part, note.issued_at, note.cancelled_at)).collect::<Vec<_>>()
        };
        assert!(notes(&[]).is_empty());
        assert_eq!(notes(&[(PaymentReversed, NOON)]), [(1, NOON, None)]);
        let twice = [(PaymentReversed, NOON), (PaymentRestored, LATER), (PaymentReversed, LATER)];
        assert_eq!(notes(&twice), [(1, NOON, Some(LATER)), (2, LATER, None)]);
    }
}
