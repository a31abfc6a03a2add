//! Each row of a table is a payment with its reversals, and the credit notes for them.

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

/// The amount paid, in cents.
const PAID: u128 = 1_190;

const fn at(second: i64) -> Timestamp {
    Timestamp::from_unix_millis(second * 1_000)
}

/// A reversal of this amount that began at a second, and may have ended.
fn reversal((id, amount, begins, ends): (&str, u128, i64, Option<i64>)) -> ProcessorReversal {
    let named = |id| ProcessorRef::new("paddle", id).unwrap();
    ProcessorReversal {
        reference: named(id),
        payment: named("txn_1").tx().hash,
        amount: TokenUnits::new(amount),
        reason: id.to_owned(),
        reversed_at: at(begins),
        restored_at: ends.map(at),
        interruptions: Vec::new(),
    }
}

fn notes(reversals: &[(&str, u128, i64, Option<i64>)]) -> Vec<CreditNote> {
    let reversals: Vec<_> = reversals.iter().copied().map(reversal).collect();
    CreditNote::of_reversals(TokenUnits::new(PAID), &reversals)
}

#[test]
fn notes_in_force_are_what_the_reversals_take_back_together() {
    /// Id, amount, second of the beginning and of the end.
    type Reversals<'t> = &'t [(&'t str, u128, i64, Option<i64>)];
    /// Id of the reversal, amount, seconds of issue and cancellation.
    type Notes<'t> = &'t [(&'t str, u128, i64, Option<i64>)];
    let table: [(Reversals<'_>, Notes<'_>); 14] = [
        (&[], &[]),
        (&[("re_1", 250, 1, None)], &[("re_1", 250, 1, None)]),
        (&[("re_1", 250, 1, None), ("re_2", 940, 2, None)], &[("re_1", 250, 1, None), ("re_2", 940, 2, None)]),
        // A dispute of all, after a refund; and if it is won.
        (&[("re_1", 250, 1, None), ("dp_1", 1_190, 2, None)], &[("re_1", 250, 1, None), ("dp_1", 940, 2, None)]),
        (&[("re_1", 250, 1, None), ("dp_1", 1_190, 2, Some(3))], &[("re_1", 250, 1, None), ("dp_1", 940, 2, Some(3))]),
        // The other order: the refund has a note when there is room.
        (&[("dp_1", 1_190, 1, None), ("re_1", 250, 2, None)], &[("dp_1", 1_190, 1, None)]),
        (
            &[("dp_1", 1_190, 1, Some(3)), ("re_1", 250, 2, None)],
            &[("dp_1", 1_190, 1, Some(3)), ("re_1", 250, 3, None)],
        ),
        // A refund of more than is left; it gets the missing amount when the dispute is won.
        (&[("dp_1", 600, 1, None), ("re_1", 800, 2, None)], &[("dp_1", 600, 1, None), ("re_1", 590, 2, None)]),
        (
            &[("dp_1", 600, 1, Some(3)), ("re_1", 800, 2, None)],
            &[("dp_1", 600, 1, Some(3)), ("re_1", 590, 2, None), ("re_1", 210, 3, None)],
        ),
        // The amount that an ended reversal frees goes to waiting reversals, in order.
        (
            &[("re_1", 700, 1, Some(4)), ("re_2", 600, 2, None), ("dp_1", 1_190, 3, None)],
            &[("re_1", 700, 1, Some(4)), ("re_2", 490, 2, None), ("re_2", 110, 4, None), ("dp_1", 590, 4, None)],
        ),
        // When a reversal ends, all of its notes end.
        (
            &[("dp_1", 600, 1, Some(3)), ("re_1", 800, 2, Some(4))],
            &[("dp_1", 600, 1, Some(3)), ("re_1", 590, 2, Some(4)), ("re_1", 210, 3, Some(4))],
        ),
        // One ends when another begins.
        (
            &[("dp_1", 1_190, 1, Some(2)), ("re_1", 250, 2, None)],
            &[("dp_1", 1_190, 1, Some(2)), ("re_1", 250, 2, None)],
        ),
        // It had ended before it was recorded; and by another clock.
        (&[("dp_1", 1_190, 1, Some(1))], &[]),
        (&[("dp_1", 1_190, 2, Some(1))], &[("dp_1", 1_190, 2, Some(1))]),
    ];
    for (reversals, expected) in table {
        let found = notes(reversals);
        let expected: Vec<_> = expected
            .iter()
            .map(|(id, amount, issued, cancelled)| (*id, *amount, at(*issued), cancelled.map(at)))
            .collect();
        let shown: Vec<_> = found
            .iter()
            .map(|note| (note.reason.as_str(), note.amount.get(), note.issued_at, note.cancelled_at))
            .collect();
        assert_eq!(shown, expected, "{reversals:?}");
        // In any order of reading.
        let reversed: Vec<_> = reversals.iter().rev().copied().collect();
        assert_eq!(notes(&reversed), found, "{reversals:?}");
        let in_force = found.iter().filter(|note| note.cancelled_at.is_none()).map(|note| note.amount.get());
        let recorded: Vec<_> = reversals.iter().copied().map(reversal).collect();
        let taken_back = ProcessorReversal::amount_of(TokenUnits::new(PAID), &recorded);
        assert_eq!(in_force.sum::<u128>(), taken_back.get(), "{reversals:?}");
    }
}

/// A dispute that was won and later lost, with a refund in between that took everything.
#[test]
fn notes_stay_when_a_reversal_takes_back_again() {
    let dispute = |ends, interruptions: &[(i64, i64)]| ProcessorReversal {
        interruptions: interruptions.iter().map(|(ended, again)| (at(*ended), at(*again))).collect(),
        ..reversal(("dp_1", 1_190, 1, ends))
    };
    let refund = |ends| reversal(("re_1", 1_190, 3, ends));
    // the reversals, and the id, amount, seconds of issue and cancellation of each note
    type Row<'t> = ([ProcessorReversal; 2], &'t [(&'t str, u128, i64, Option<i64>)]);
    let table: [Row<'_>; 4] = [
        ([dispute(Some(2), &[]), refund(None)], &[("dp_1", 1_190, 1, Some(2)), ("re_1", 1_190, 3, None)]),
        ([dispute(None, &[(2, 4)]), refund(None)], &[("dp_1", 1_190, 1, Some(2)), ("re_1", 1_190, 3, None)]),
        (
            [dispute(None, &[(2, 4)]), refund(Some(5))],
            &[("dp_1", 1_190, 1, Some(2)), ("re_1", 1_190, 3, Some(5)), ("dp_1", 1_190, 5, None)],
        ),
        (
            [dispute(Some(6), &[(2, 4)]), refund(Some(5))],
            &[("dp_1", 1_190, 1, Some(2)), ("re_1", 1_190, 3, Some(5)), ("dp_1", 1_190, 5, Some(6))],
        ),
    ];
    let mut numbers: Vec<CreditNoteNumber> = Vec::new();
    for (reversals, expected) in table {
        let found = CreditNote::of_reversals(TokenUnits::new(PAID), &reversals);
        let expected: Vec<_> =
            expected.iter().map(|(id, amount, issued, ended)| (*id, *amount, at(*issued), ended.map(at))).collect();
        let shown =
            found.iter().map(|note| (note.reason.as_str(), note.amount.get(), note.issued_at, note.cancelled_at));
        assert_eq!(shown.collect::<Vec<_>>(), expected);
        let now: Vec<_> = found.iter().map(|note| note.number).collect();
        assert!(now.starts_with(&numbers), "the earlier ones keep their numbers");
        numbers = now;
    }
}

#[test]
fn notes_in_force_have_the_tax_in_their_sum() {
    let euros = |amount: TokenUnits| CurrencyAmount::of_minor(amount.get(), 2);
    let rate: TaxRate = "0.19".parse().unwrap();
    // reversals, the tax in each note
    type Row<'t> = (&'t [(&'t str, u128, i64, Option<i64>)], &'t [&'t str]);
    let table: [Row<'_>; 4] = [
        (&[("re_1", 400, 1, None), ("re_2", 400, 2, None), ("re_3", 390, 3, None)], &["0.64", "0.64", "0.62"]),
        (&[("re_1", 333, 1, None), ("dp_1", 1_190, 2, None)], &["0.53", "1.37"]),
        // A cancelled note has its tax, and the next one takes that again.
        (&[("re_1", 333, 1, None), ("dp_1", 1_190, 2, Some(3)), ("re_2", 857, 4, None)], &["0.53", "1.37", "1.37"]),
        (&[("dp_1", 600, 1, Some(3)), ("re_1", 800, 2, None)], &["0.96", "0.94", "0.34"]),
    ];
    for (reversals, expected) in table {
        let notes = notes(reversals);
        let taxes: Vec<_> = CreditNote::taxes(&notes, rate, euros).into_iter().map(Option::unwrap).collect();
        assert_eq!(taxes.iter().map(ToString::to_string).collect::<Vec<_>>(), expected, "{reversals:?}");
        let sum = |of: &dyn Fn(usize) -> CurrencyAmount| {
            let in_force = (0..notes.len()).filter(|place| notes[*place].cancelled_at.is_none());
            in_force.map(of).reduce(|sum, next| sum.plus(next).unwrap()).unwrap()
        };
        let gross = sum(&|place| euros(notes[place].amount).unwrap());
        assert_eq!(rate.included_in(gross), Some(sum(&|place| taxes[place])), "{reversals:?}");
    }
    let unknown = CreditNote::taxes(&notes(&[("re_1", 400, 1, None)]), rate, |_| None);
    assert_eq!(unknown, [None], "its value is not known");
}

#[test]
fn each_note_of_a_payment_has_a_number_of_its_own() {
    let named = |id| ProcessorRef::new("paddle", id).unwrap();
    let notes = notes(&[("dp_1", 600, 1, Some(3)), ("re_1", 800, 2, None)]);
    let mut numbers: Vec<_> = notes.iter().map(|note| note.number.to_string()).collect();
    for note in &notes {
        assert_eq!(note.number.receipt(), ReceiptNumber::of(&named("txn_1").tx()));
        assert_eq!(note.number.to_string().parse(), Ok(note.number));
    }
    let first = CreditNoteNumber::of_reversal(&reversal(("re_1", 800, 2, None)));
    assert_eq!(notes[1].number, first, "its first one has the number that follows from the reversal alone");
    numbers.sort();
    numbers.dedup();
    assert_eq!(numbers.len(), notes.len());
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
