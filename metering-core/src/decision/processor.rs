//! Credits payments that processors took, and reverses them. Each is an entry of the audit log: no other record of the
//! money exists here.

use serde_json::{Map, Value};

use super::Decided;
use super::credit::{CreditChanges, CreditFacts, credit_even_if_revoked};
use super::entry::EntryChanges;
use crate::access::account::Account;
use crate::chains::units::TokenUnits;
use crate::clock::Timestamp;
use crate::money::credits::Credits;
use crate::money::ledger::{LedgerKind, NewLedgerEntry, PaymentRef};
use crate::operators::audit::{Actor, AuditOutcome, AuditResult, NewAuditEntry};
use crate::payments::credit_note::{CreditNote, CreditNoteNumber};
use crate::payments::payment::{PaymentRecord, PaymentSettlement};
use crate::payments::processor::{ProcessorRef, ProcessorReversal, reversed_credits};
use crate::store::{PaymentCredit, PaymentCredited, ProcessorReversed, RecordedReversal, ReversalChange, StoreError};

/// An entry of the audit log, with its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedAction {
    /// The entry.
    pub entry: NewAuditEntry,
    /// Its outcome.
    pub outcome: AuditOutcome,
}

/// Decides [`PaymentStore::credit_processor_payment`](crate::PaymentStore::credit_processor_payment): as
/// [`credit_payment`](super::credit_payment), with the processor in the record, and an entry for the audit log.
///
/// A revoked account is credited too. The processor has the money, so the payment must be in the books, or its refund
/// could not be. Nobody can spend the credits; [`OperatorStore::payments_of_revoked`] lists the payment until it is
/// refunded.
///
/// [`OperatorStore::payments_of_revoked`]: crate::store::OperatorStore::payments_of_revoked
pub fn credit_processor_payment<K>(
    credit: PaymentCredit,
    processor: &ProcessorRef,
    facts: CreditFacts<K>,
) -> Decided<(CreditChanges<K>, LoggedAction), PaymentCredited> {
    let (account, amount, now) = (credit.account.clone(), credit.entry.amount, credit.now);
    match credit_even_if_revoked(credit, facts) {
        Decided::Refused(refusal) => Decided::Refused(refusal),
        Decided::Accepted(mut changes) => {
            changes.record.processor = Some(processor.clone());
            changes.posted.name_processor(processor);
            // Clocks differ. It was revoked before, so the payment is not recorded as earlier than that.
            if let Some(revoked_at) = changes.posted.account.revoked_at {
                changes.record.recorded_at = changes.record.recorded_at.max(revoked_at);
            }
            let paid = vec![
                ("id", processor.id().into()),
                ("account", account.as_str().into()),
                ("plan_id", changes.record.plan_id.clone().into()),
                ("credits", amount.to_string().into()),
                ("amount", paid_amount(&changes.record).into()),
            ];
            let action = logged("payment.credit", processor, &changes.record, String::new(), paid, now);
            Decided::Accepted((changes, action))
        }
    }
}

/// The rows read before a processor's payment is reversed, or a reversal ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReversalFacts<K> {
    /// The record of the payment.
    pub record: Option<PaymentRecord>,
    /// Its account, revoked or not, and its row.
    pub account: Option<(K, Account)>,
    /// The sum, in atoms, of the account's entries of kind [`LedgerKind::PURCHASES`] for the payment. 0 without an account.
    pub purchased: i128,
    /// The recorded reversals of the payment.
    pub reversals: Vec<ProcessorReversal>,
    /// The recorded reversal with the id of the change, whatever it reverses.
    pub known: Option<ProcessorReversal>,
}

/// A change of a processor's payment by a reversal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReversalChanges<K> {
    /// The reversal to write.
    pub reversal: ProcessorReversal,
    /// Whether it replaces its record.
    pub is_known: bool,
    /// The record of the payment. Its settlement may change.
    pub record: PaymentRecord,
    /// The ledger entry, unless no credits move.
    pub posted: Option<EntryChanges<K>>,
    /// The new credit notes, in the order of issue.
    pub notes: Vec<CreditNoteNumber>,
    /// The outcome.
    pub recorded: RecordedReversal,
    /// The audit log entry.
    pub action: LoggedAction,
}

/// Decides [`PaymentStore::reverse_processor_payment`](crate::PaymentStore::reverse_processor_payment).
///
/// Refused, in this order:
/// - [`ProcessorReversed::NoSuchPayment`];
/// - [`ProcessorReversed::OtherTerms`] when the reversal was recorded for another payment or amount;
/// - [`ProcessorReversed::Repeated`] when it was recorded and neither ends now nor restarts: a reversal that ended
///   stays ended despite late reports, unless a report has `again`;
/// - [`ProcessorReversed::TooMuch`] when it is of nothing, or of more than was paid;
/// - [`ProcessorReversed::OutOfRange`].
///
/// Credits move even for a revoked account, and the balance may go below zero.
///
/// # Errors
/// After the first refusal, when the account does not exist.
pub fn reverse_processor_payment<K>(
    change: ReversalChange,
    facts: ReversalFacts<K>,
) -> Result<Decided<ReversalChanges<K>, ProcessorReversed>, StoreError> {
    use Decided::{Accepted, Refused};
    let ReversalFacts { record, account, purchased, reversals, known } = facts;
    let Some(record) = record.filter(|record| record.processor.is_some()) else {
        return Ok(Refused(ProcessorReversed::NoSuchPayment));
    };
    let Some((row, account)) = account else {
        let tx = record.payment.tx;
        return Err(StoreError::Corrupt(format!("payment {tx} belongs to an account that does not exist")));
    };
    let (paid, hash, is_known) = (record.payment.amount, change.payment.tx().hash, known.is_some());
    let before = ProcessorReversal::amount_of(paid, &reversals);
    let at = ProcessorReversal::next_time(&reversals, change.now);
    let reversal = match known {
        Some(known) if known.payment != hash || change.amount.is_some_and(|amount| amount != known.amount) => {
            return Ok(Refused(ProcessorReversed::OtherTerms(Box::new(known))));
        }
        Some(known) if known.restored_at.is_some() && change.again => known.resumed(at),
        Some(known) if known.restored_at.is_some() || !change.restored => {
            let recorded =
                RecordedReversal { account, reversal: known, amount: before, currency: record.payment.token };
            return Ok(Refused(ProcessorReversed::Repeated(Box::new(recorded))));
        }
        Some(known) => ProcessorReversal { restored_at: Some(at), ..known },
        None => {
            let amount = change.amount.unwrap_or(paid);
            if amount.get() == 0 || amount > paid {
                return Ok(Refused(ProcessorReversed::TooMuch(paid)));
            }
            ProcessorReversal {
                reference: change.reversal,
                payment: hash,
                amount,
                reason: change.reason,
                reversed_at: at,
                restored_at: change.restored.then_some(at),
                interruptions: Vec::new(),
            }
        }
    };
    let others = reversals.iter().filter(|other| other.reference != reversal.reference);
    let all: Vec<_> = others.chain([&reversal]).cloned().collect();
    let after = ProcessorReversal::amount_of(paid, &all);
    let notes = new_notes(paid, &reversals, &all);
    let reversed = |amount| reversed_credits(purchased, amount, paid);
    let moved = reversed(before).zip(reversed(after)).and_then(|(before, after)| i64::try_from(before - after).ok());
    let Some(moved) = moved.map(Credits::from_atoms) else { return Ok(Refused(ProcessorReversed::OutOfRange)) };
    let settlement = if after == paid {
        PaymentSettlement::Reversed { at: record.settlement.reversed_at().unwrap_or(change.now) }
    } else {
        PaymentSettlement::Final
    };
    let record = PaymentRecord { settlement, ..record };
    let details = vec![
        ("id", reversal.reference.id().into()),
        ("payment_id", change.payment.id().into()),
        ("account", account.id.as_str().into()),
        ("amount", reversal.amount.to_string().into()),
        ("credits", moved.to_string().into()),
    ];
    let name = if reversal.restored_at.is_some() { "payment.restore" } else { "payment.reverse" };
    let action = logged(name, &reversal.reference, &record, reversal.reason.clone(), details, change.now);
    let posted = if moved == Credits::ZERO {
        None
    } else {
        let entry = entry(&reversal, &change.payment, &record, moved);
        match EntryChanges::of((row, account.clone()), entry, change.now) {
            Some(mut posted) => {
                posted.name_processor(&change.payment);
                Some(posted)
            }
            None => return Ok(Refused(ProcessorReversed::OutOfRange)),
        }
    };
    let account = posted.as_ref().map_or(account, |posted| posted.account.clone());
    let recorded =
        RecordedReversal { account, reversal: reversal.clone(), amount: after, currency: record.payment.token };
    Ok(Accepted(ReversalChanges { reversal, is_known, record, posted, notes, recorded, action }))
}

/// The credit notes that reversals have now, but did not have before.
fn new_notes(paid: TokenUnits, before: &[ProcessorReversal], after: &[ProcessorReversal]) -> Vec<CreditNoteNumber> {
    let numbers = |reversals| CreditNote::of_reversals(paid, reversals).into_iter().map(|note| note.number);
    let known: Vec<_> = numbers(before).collect();
    numbers(after).filter(|number| !known.contains(number)).collect()
}

impl<K> EntryChanges<K> {
    /// Names the payment in the events as its processor does.
    fn name_processor(&mut self, payment: &ProcessorRef) {
        for event in &mut self.events {
            event.data.paid_at(payment.processor(), payment.id());
        }
    }
}

fn entry(
    reversal: &ProcessorReversal,
    payment: &ProcessorRef,
    record: &PaymentRecord,
    moved: Credits,
) -> NewLedgerEntry {
    let (id, paid, processor) = (reversal.reference.id(), payment.id(), payment.processor());
    let (kind, description) = if moved.is_negative() {
        let why = if reversal.reason.is_empty() { String::new() } else { format!(": {}", reversal.reason) };
        (LedgerKind::PaymentReversed, format!("Reversal {id} of payment {paid} at {processor}{why}"))
    } else {
        (LedgerKind::PaymentRestored, format!("Reversal {id} of payment {paid} at {processor} ended"))
    };
    let payment = Some(PaymentRef { tx: record.payment.tx, plan_id: record.plan_id.clone() });
    NewLedgerEntry { kind, amount: moved, description, payment }
}

/// The amount paid, with its currency.
fn paid_amount(record: &PaymentRecord) -> String {
    let amount = record.payment.amount;
    let sold = record.sold.as_ref();
    sold.map_or_else(
        || amount.to_string(),
        |sold| format!("{} {}", amount.to_human(sold.token_decimals), sold.token_symbol),
    )
}

fn logged(
    action: &str,
    processor: &ProcessorRef,
    record: &PaymentRecord,
    reason: String,
    request: Vec<(&'static str, Value)>,
    now: Timestamp,
) -> LoggedAction {
    let tx = record.payment.tx;
    let request: Map<String, Value> = request.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    LoggedAction {
        entry: NewAuditEntry {
            at: now,
            actor: Actor::Processor(processor.processor().to_owned()),
            action: action.to_owned(),
            subject: format!("payment:{}:{}", tx.chain_id, tx.hash),
            reason,
            request: Value::Object(request).to_string(),
            before: None,
        },
        outcome: AuditOutcome { at: now, result: AuditResult::Done, detail: String::new(), after: None },
    }
}

#[cfg(test)]
mod tests;
