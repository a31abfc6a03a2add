//! Each row of a table is a payment with its reversals, and the amount that one more takes back.

use std::time::Duration;

use super::super::scene::{NOW, account, payment, purchase, record, revoked, sold};
use super::*;
use crate::payments::payment::PaymentUse;
use crate::store::QuotePrecedence;

/// The amount paid: the credits are three atoms for each unit.
const PAID: u128 = 100;
const BOUGHT: i128 = 300;

fn reference(id: &str) -> ProcessorRef {
    ProcessorRef::new("stripe", id).unwrap()
}

fn paid() -> PaymentRecord {
    let mut record = record(PaymentUse::Processor);
    record.payment.tx = reference("pi_1").tx();
    record.payment.amount = TokenUnits::new(PAID);
    PaymentRecord { settlement: PaymentSettlement::Final, processor: Some(reference("pi_1")), ..record }
}

fn reversal(id: &str, amount: u128, restored: bool) -> ProcessorReversal {
    ProcessorReversal {
        reference: reference(id),
        payment: reference("pi_1").tx().hash,
        amount: TokenUnits::new(amount),
        reason: "asked".to_owned(),
        reversed_at: NOW,
        restored_at: restored.then_some(NOW),
        interruptions: Vec::new(),
    }
}

fn change(id: &str, amount: Option<u128>, restored: bool) -> ReversalChange {
    ReversalChange {
        reversal: reference(id),
        payment: reference("pi_1"),
        amount: amount.map(TokenUnits::new),
        reason: "asked".to_owned(),
        restored,
        again: false,
        now: NOW,
    }
}

fn facts(reversals: &[ProcessorReversal], id: &str) -> ReversalFacts<i64> {
    let known = reversals.iter().find(|known| known.reference.id() == id).cloned();
    let account = Some((1, account()));
    ReversalFacts { record: Some(paid()), account, purchased: BOUGHT, reversals: reversals.to_vec(), known }
}

#[test]
fn reversals_take_back_their_part_in_any_order() {
    let of = |id, amount| reversal(id, amount, false);
    // recorded before, id, amount, restored, credits moved, whether all is reversed
    type Row<'t> = (&'t [ProcessorReversal], &'t str, Option<u128>, bool, i64, bool);
    let table: [Row<'_>; 9] = [
        (&[], "re_1", Some(50), false, -150, false),
        (&[], "re_1", Some(100), false, -300, true),
        (&[], "re_1", None, false, -300, true),
        (&[of("re_1", 50)], "re_2", Some(50), false, -150, true),
        // More than was paid is not taken back: a refund and a dispute may overlap.
        (&[of("re_1", 80)], "dp_1", Some(100), false, -60, true),
        (&[of("re_1", 100)], "dp_1", Some(100), false, 0, true),
        (&[of("re_1", 80), of("dp_1", 100)], "dp_1", None, true, 60, false),
        (&[of("re_1", 100), of("dp_1", 100)], "dp_1", None, true, 0, true),
        // It ended before it was known.
        (&[], "dp_1", Some(100), true, 0, false),
    ];
    for (before, id, amount, restored, moved, is_whole) in table {
        let decided = reverse_processor_payment(change(id, amount, restored), facts(before, id)).unwrap();
        let Decided::Accepted(changes) = decided else { panic!("{before:?} {id}: {decided:?}") };
        let posted = changes.posted.as_ref().map_or(0, |posted| posted.entry.amount.atoms());
        assert_eq!(posted, moved, "{before:?} {id}");
        let settlement = if is_whole { PaymentSettlement::Reversed { at: NOW } } else { PaymentSettlement::Final };
        assert_eq!(changes.record.settlement, settlement, "{before:?} {id}");
        assert_eq!(changes.reversal.restored_at.is_some(), restored, "{before:?} {id}");
        let balance = account().totals.balance.atoms() + moved;
        assert_eq!(changes.recorded.account.totals.balance.atoms(), balance, "it may go below zero");
    }
}

#[test]
fn what_was_given_back_is_taken_again_only_if_that_is_said() {
    let ended = [reversal("re_1", 80, false), reversal("dp_1", 100, true)];
    let again = ReversalChange { again: true, ..change("dp_1", Some(100), false) };
    let Ok(Decided::Accepted(changes)) = reverse_processor_payment(again.clone(), facts(&ended, "dp_1")) else {
        panic!("it is taken back again")
    };
    assert_eq!(
        (changes.is_known, changes.reversal.restored_at, changes.action.entry.action.as_str()),
        (true, None, "payment.reverse")
    );
    assert_eq!(changes.posted.map(|posted| posted.entry.amount.atoms()), Some(-60));
    // A reversal that took nothing back before begins then; otherwise its credit note keeps its time, and there is
    // another one.
    let [later, latest] = [1, 2].map(|seconds| NOW.saturating_add(Duration::from_secs(seconds)));
    let just_later = later.saturating_add(Duration::from_millis(1));
    // when it ended, when it restarts, when it began, its interruptions, how many credit notes are new
    let table = [
        (NOW, later, later, vec![], 1),
        // In the same millisecond: what was cancelled stays cancelled.
        (later, later, NOW, vec![(later, just_later)], 1),
        (later, latest, NOW, vec![(later, latest)], 1),
    ];
    for (ended_at, now, begins_at, interruptions, notes) in table {
        let known = [ProcessorReversal { restored_at: Some(ended_at), ..reversal("dp_1", 100, true) }];
        let change = ReversalChange { now, ..again.clone() };
        let decided = reverse_processor_payment(change, facts(&known, "dp_1")).unwrap();
        let Decided::Accepted(changes) = decided else { panic!("{decided:?}") };
        assert_eq!((changes.reversal.reversed_at, changes.reversal.interruptions), (begins_at, interruptions));
        assert_eq!(changes.notes.len(), notes, "{known:?}");
    }
    let stands = [reversal("dp_1", 100, false)];
    let decided = reverse_processor_payment(again.clone(), facts(&stands, "dp_1")).unwrap();
    assert!(matches!(decided, Decided::Refused(ProcessorReversed::Repeated(_))), "{decided:?}");
    let decided = reverse_processor_payment(again, facts(&[], "dp_1")).unwrap();
    assert!(matches!(&decided, Decided::Accepted(changes) if !changes.is_known), "its end was never known");
}

/// A reversal of the same millisecond, or by a slower clock, takes no room from the credit notes of before.
#[test]
fn credit_notes_of_before_do_not_change() {
    let notes = |reversals: &[ProcessorReversal]| CreditNote::of_reversals(TokenUnits::new(PAID), reversals);
    let issued = |notes: &[CreditNote]| -> Vec<_> {
        notes.iter().map(|note| (note.number, note.issued_at, note.amount)).collect()
    };
    let known = [reversal("re_1", 80, false)];
    let before = issued(&notes(&known));
    for now in [NOW, NOW.saturating_sub(Duration::from_secs(1))] {
        // what is reported, and whether the credit note of before is in force then
        for (id, amount, restored, in_force) in [("dp_1", Some(100), false, true), ("re_1", None, true, false)] {
            let change = ReversalChange { now, ..change(id, amount, restored) };
            let decided = reverse_processor_payment(change, facts(&known, id)).unwrap();
            let Decided::Accepted(changes) = decided else { panic!("{id}: {decided:?}") };
            let others = known.iter().filter(|other| other.reference != changes.reversal.reference);
            let found = notes(&others.chain([&changes.reversal]).cloned().collect::<Vec<_>>());
            assert_eq!(issued(&found)[..1], before, "{id}");
            assert_eq!(found[0].cancelled_at.is_none(), in_force, "{id}");
            let new: Vec<_> = found[1..].iter().map(|note| note.number).collect();
            assert_eq!(changes.notes, new, "{id}");
        }
    }
}

#[test]
fn a_credit_note_is_issued_once_and_when_there_is_room_for_it() {
    let later = NOW.saturating_add(Duration::from_secs(1));
    let after_that = NOW.saturating_add(Duration::from_secs(2));
    let of = |id, amount, begins| ProcessorReversal { reversed_at: begins, ..reversal(id, amount, false) };
    let (dispute, refund) = (of("dp_1", 60, NOW), of("re_1", 80, later));
    // recorded before, the change, the reversals that get credit notes
    let table: [(&[ProcessorReversal], ReversalChange, &[&str]); 6] = [
        (&[], change("dp_1", Some(60), false), &["dp_1"]),
        (std::slice::from_ref(&dispute), change("re_1", Some(80), false), &["re_1"]),
        (&[of("dp_1", 100, NOW)], change("re_1", Some(80), false), &[]),
        // The dispute is won: the refund gets the missing amount.
        (&[dispute.clone(), refund.clone()], change("dp_1", None, true), &["re_1"]),
        (&[of("dp_1", 100, NOW), refund], change("dp_1", None, true), &["re_1"]),
        (&[of("re_1", 80, NOW)], change("re_1", None, true), &[]),
    ];
    for (before, change, expected) in table {
        let change = ReversalChange { now: after_that, ..change };
        let id = change.reversal.id().to_owned();
        let decided = reverse_processor_payment(change, facts(before, &id)).unwrap();
        let Decided::Accepted(changes) = decided else { panic!("{before:?} {id}: {decided:?}") };
        let others = before.iter().filter(|other| other.reference != changes.reversal.reference);
        let after: Vec<_> = others.chain([&changes.reversal]).cloned().collect();
        let notes = CreditNote::of_reversals(TokenUnits::new(PAID), &after);
        let issued = notes.iter().filter(|note| note.issued_at == after_that);
        assert_eq!(changes.notes, issued.map(|note| note.number).collect::<Vec<_>>(), "{before:?} {id}");
        assert_eq!(changes.notes.len(), expected.len(), "{before:?} {id}");
        let first = |id: &str| CreditNoteNumber::of_reversal(&reversal(id, 1, false));
        let known = CreditNote::of_reversals(TokenUnits::new(PAID), before);
        for (number, id) in changes.notes.iter().zip(expected.iter().copied()) {
            let is_known = known.iter().any(|note| note.number == first(id));
            assert_eq!(*number == first(id), !is_known, "{before:?} {id}");
        }
    }
}

#[test]
fn the_first_reason_refuses() {
    let known = [reversal("re_1", 50, false), reversal("re_2", 10, true)];
    let other = ReversalFacts { record: Some(record(PaymentUse::Topup)), ..facts(&[], "re_1") };
    let huge = ReversalFacts { purchased: i128::MAX, ..facts(&[], "re_1") };
    type Refuses = fn(&ProcessorReversed) -> bool;
    // change, facts, refusal
    let table: [(ReversalChange, ReversalFacts<i64>, Refuses); 8] = [
        (change("re_1", Some(1), false), ReversalFacts { record: None, ..facts(&[], "re_1") }, |refusal| {
            matches!(refusal, ProcessorReversed::NoSuchPayment)
        }),
        (change("re_1", Some(1), false), other, |refusal| matches!(refusal, ProcessorReversed::NoSuchPayment)),
        (change("re_1", Some(51), false), facts(&known, "re_1"), |refusal| {
            matches!(refusal, ProcessorReversed::OtherTerms(_))
        }),
        (change("re_1", Some(50), false), facts(&known, "re_1"), |refusal| {
            matches!(refusal, ProcessorReversed::Repeated(_))
        }),
        // The reversal stays ended.
        (
            change("re_2", Some(10), false),
            facts(&known, "re_2"),
            |refusal| matches!(refusal, ProcessorReversed::Repeated(recorded) if recorded.amount.get() == 50),
        ),
        (change("re_1", Some(0), false), facts(&[], "re_1"), |refusal| {
            matches!(refusal, ProcessorReversed::TooMuch(_))
        }),
        (change("re_1", Some(101), false), facts(&[], "re_1"), |refusal| {
            matches!(refusal, ProcessorReversed::TooMuch(_))
        }),
        (change("re_1", None, false), huge, |refusal| matches!(refusal, ProcessorReversed::OutOfRange)),
    ];
    for (change, facts, refuses) in table {
        let decided = reverse_processor_payment(change.clone(), facts).unwrap();
        let Decided::Refused(refusal) = decided else { panic!("{change:?}: {decided:?}") };
        assert!(refuses(&refusal), "{change:?}: {refusal:?}");
    }
    let of_another = ReversalChange { payment: reference("pi_2"), ..change("re_1", None, false) };
    let decided = reverse_processor_payment(of_another, facts(&known, "re_1")).unwrap();
    assert!(matches!(decided, Decided::Refused(ProcessorReversed::OtherTerms(_))), "{decided:?}");
    let nobodys = ReversalFacts { account: None, ..facts(&[], "re_1") };
    assert!(reverse_processor_payment(change("re_1", None, false), nobodys).is_err());
}

/// A credit of five atoms.
fn credit() -> PaymentCredit {
    PaymentCredit {
        account: account().id,
        payment: payment(reference("pi_1").tx()),
        used_as: PaymentUse::Processor,
        entry: purchase(5),
        sold: Some(sold()),
        value: None,
        link_payer: false,
        quotes: QuotePrecedence::Account,
        now: NOW,
    }
}

#[test]
fn a_revoked_account_is_credited_with_money_that_was_taken() {
    let credited = |account: Option<Account>, record: Option<PaymentRecord>| {
        let facts = CreditFacts { account: account.map(|account| (1, account)), record, quote: None };
        credit_processor_payment(credit(), &reference("pi_1"), facts)
    };
    let Decided::Accepted((changes, _)) = credited(Some(revoked()), None) else { panic!("nothing refuses it") };
    let after = changes.posted.account;
    assert_eq!((after.totals.balance.atoms(), after.revoked_at), (account().totals.balance.atoms() + 5, Some(NOW)));
    // Another node's clock is ahead.
    let later = Account { revoked_at: Some(NOW.saturating_add(Duration::from_secs(1))), ..revoked() };
    let Decided::Accepted((changes, _)) = credited(Some(later.clone()), None) else { panic!("nothing refuses it") };
    assert_eq!(Some(changes.record.recorded_at), later.revoked_at, "the payment is listed as one of a revoked account");
    let repeated = PaymentCredited::Repeated(revoked(), Box::new(paid()));
    assert_eq!(credited(Some(revoked()), Some(paid())), Decided::Refused(repeated));
    assert_eq!(credited(None, None), Decided::Refused(PaymentCredited::NoSuchAccount));
}

#[test]
fn a_credit_has_its_processor_in_record_and_audit_log() {
    let facts = CreditFacts { account: Some((1, account())), record: None, quote: None };
    let Decided::Accepted((changes, action)) = credit_processor_payment(credit(), &reference("pi_1"), facts) else {
        panic!("nothing refuses it")
    };
    assert_eq!(changes.record.processor, Some(reference("pi_1")));
    assert_eq!(
        (action.entry.actor.to_string(), action.entry.action),
        ("processor:stripe".into(), "payment.credit".into())
    );
    assert!(action.entry.request.contains(r#""amount":"5.003817 USDC""#), "{}", action.entry.request);
}

#[test]
fn events_name_the_payment_as_its_processor_does() {
    let decided = reverse_processor_payment(change("re_1", None, false), facts(&[], "re_1")).unwrap();
    let Decided::Accepted(ReversalChanges { posted: Some(posted), .. }) = decided else {
        panic!("it takes credits back")
    };
    let named = r#""processor":"stripe","processor_id":"pi_1""#;
    assert!(posted.events.iter().any(|event| event.json().contains(named)), "{:?}", posted.events);
}
