//! Settles credited payments: each becomes final, or is reversed if a reorganisation removed it.
//!
//! Payments are credited before their block is final, so customers do not wait for finality. Until then the watcher
//! keeps checking them, and [`decide`] decides the next step. It is a pure function: no store, no network, no clock.

use crate::chains::chain::{Block, BlockHash, Evidence, Heights, TransactionStatus};
use crate::chains::transaction::TxRef;
use crate::clock::Timestamp;
use crate::money::credits::Credits;
use crate::money::ledger::{LedgerKind, NewLedgerEntry, PaymentRef};
use crate::payments::payment::{Payment, PaymentFault, PaymentRecord, PaymentSettlement, PaymentUse};

/// A change of a payment's settlement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettlementStep {
    /// Its block is final.
    Finalize,
    /// It was mined again, in another block.
    Move(Block),
    /// It vanished, so its credits are taken back.
    Reverse,
    /// It was reversed and then mined again, so its credits return.
    Restore(Block),
}

/// The ledger change of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettlementEntry {
    /// No entry, because it moves no credits.
    Nothing,
    /// This entry.
    Entry(NewLedgerEntry),
    /// The amount is outside the range of [`Credits`].
    OutOfRange,
}

/// The chain's evidence of a payment that is not final.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChainView {
    /// The block that it was recorded in is still part of the chain.
    InPlace,
    /// It is in another block, and pays the same.
    Elsewhere(Block),
    /// The chain has another block at that height, and the transaction is in no block or no longer pays.
    Missing,
    /// Unknown: sources lag or disagree, or the chain is shorter now.
    Unclear,
}

impl ChainView {
    /// Decides from the block hash at the recorded height alone; `None` when the transaction must be read too.
    #[must_use]
    pub fn in_place(record: &PaymentRecord, canonical: Option<BlockHash>) -> Option<Self> {
        let recorded = record.payment.block_hash;
        (canonical.is_some() && canonical == recorded).then_some(Self::InPlace)
    }

    /// Decides from the block hash at the recorded height (`None` if unknown) and the transaction.
    #[must_use]
    pub fn of(record: &PaymentRecord, canonical: Option<BlockHash>, status: &TransactionStatus) -> Self {
        if let Some(seen) = Self::in_place(record, canonical) {
            return seen;
        }
        let missing = if canonical.is_some() { Self::Missing } else { Self::Unclear };
        let TransactionStatus::Mined(evidence) = status else { return missing };
        match paid_again(record, evidence) {
            Some(now) if now.block_hash == record.payment.block_hash => Self::InPlace,
            Some(_) => Self::Elsewhere(evidence.block),
            None => missing,
        }
    }

    /// Whether the transaction is in the recorded block and pays the same. The block alone does not prove that: a
    /// source that invents a payment names a block that exists.
    #[must_use]
    pub fn is_confirmed_by(record: &PaymentRecord, status: &TransactionStatus) -> bool {
        let TransactionStatus::Mined(evidence) = status else { return false };
        paid_again(record, evidence).is_some_and(|now| now.block_hash == record.payment.block_hash)
    }
}

/// The recorded payment, if this evidence of its transaction shows the same payer and amount.
fn paid_again(record: &PaymentRecord, evidence: &Evidence) -> Option<Payment> {
    let recorded = &record.payment;
    let (target, paid) = (recorded.target(), (recorded.payer, recorded.amount));
    match record.used_as {
        PaymentUse::Authorization => target.transfer(recorded.tx, evidence, paid),
        _ => target.payment(recorded.tx, evidence).ok().filter(|now| (now.payer, now.amount) == paid),
    }
}

/// The next step for a payment that is not final.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettlementDecision {
    /// Nothing.
    Keep,
    /// Remember since which block it has been missing, and check again later.
    Wait {
        /// The newest block when it was first found to be missing.
        missing_since: u64,
    },
    /// Change the record.
    Step(SettlementStep),
}

/// Decides the next step for a payment. `missing_since` comes from an earlier [`SettlementDecision::Wait`], and is
/// `None` once the payment has been seen again.
///
/// A payment is reversed when it has been missing for as many blocks as crediting one takes, and in at least two
/// checks. Most transactions are soon mined again, and stay credited throughout. When sources lag or disagree, nothing
/// is reversed.
#[must_use]
pub fn decide(
    record: &PaymentRecord,
    seen: ChainView,
    heights: Heights,
    missing_since: Option<u64>,
) -> SettlementDecision {
    use SettlementDecision::{Keep, Step, Wait};
    match (record.settlement, seen) {
        (PaymentSettlement::Final, _) | (_, ChainView::Unclear) => match missing_since {
            Some(missing_since) => Wait { missing_since },
            None => Keep,
        },
        (PaymentSettlement::Unsettled, ChainView::InPlace) if record.payment.block_number <= heights.finalized => {
            Step(SettlementStep::Finalize)
        }
        (PaymentSettlement::Unsettled, ChainView::InPlace) => Keep,
        (PaymentSettlement::Unsettled, ChainView::Elsewhere(block)) => Step(SettlementStep::Move(block)),
        (PaymentSettlement::Unsettled, ChainView::Missing) => match missing_since {
            Some(since) if since <= heights.confirmed => Step(SettlementStep::Reverse),
            Some(missing_since) => Wait { missing_since },
            None => Wait { missing_since: heights.newest },
        },
        (PaymentSettlement::Reversed { .. }, ChainView::InPlace) => match record.block() {
            Some(block) if block.number <= heights.confirmed => Step(SettlementStep::Restore(block)),
            _ => Keep,
        },
        (PaymentSettlement::Reversed { .. }, ChainView::Elsewhere(block)) if block.number <= heights.confirmed => {
            Step(SettlementStep::Restore(block))
        }
        (PaymentSettlement::Reversed { .. }, ChainView::Elsewhere(_) | ChainView::Missing) => Keep,
    }
}

impl PaymentRecord {
    /// The record after a step; `None` when its settlement does not allow the step.
    #[must_use]
    pub fn after(&self, step: &SettlementStep, now: Timestamp) -> Option<Self> {
        let in_block = |block: &Block| Payment {
            block_number: block.number,
            block_hash: Some(block.hash),
            mined_at: block.time,
            ..self.payment.clone()
        };
        let (payment, settlement) = match (self.settlement, step) {
            (PaymentSettlement::Unsettled, SettlementStep::Finalize) => {
                (self.payment.clone(), PaymentSettlement::Final)
            }
            (PaymentSettlement::Unsettled, SettlementStep::Move(block)) => {
                (in_block(block), PaymentSettlement::Unsettled)
            }
            (PaymentSettlement::Unsettled, SettlementStep::Reverse) => {
                (self.payment.clone(), PaymentSettlement::Reversed { at: now })
            }
            (PaymentSettlement::Reversed { .. }, SettlementStep::Restore(block)) => {
                (in_block(block), PaymentSettlement::Unsettled)
            }
            _ => return None,
        };
        Some(Self { payment, settlement, ..self.clone() })
    }

    /// The ledger entry of a step. `bought` is the number of atoms that the payment added to its account.
    #[must_use]
    pub fn entry_of(&self, step: &SettlementStep, bought: i128) -> SettlementEntry {
        let TxRef { chain_id, hash } = self.payment.tx;
        let (kind, atoms, description) = match step {
            SettlementStep::Finalize | SettlementStep::Move(_) => return SettlementEntry::Nothing,
            SettlementStep::Reverse => (
                LedgerKind::PaymentReversed,
                -bought,
                format!(
                    "A reorganisation of chain {chain_id} removed payment {hash}; its credits return if it is mined again"
                ),
            ),
            SettlementStep::Restore(block) => (
                LedgerKind::PaymentRestored,
                bought,
                format!("Payment {hash} was mined again, in block {} of chain {chain_id}", block.number),
            ),
        };
        let Ok(atoms) = i64::try_from(atoms) else { return SettlementEntry::OutOfRange };
        let payment = Some(PaymentRef { tx: self.payment.tx, plan_id: self.plan_id.clone() });
        SettlementEntry::Entry(NewLedgerEntry { kind, amount: Credits::from_atoms(atoms), description, payment })
    }

    /// Checks whether a transaction is this payment, mined again.
    ///
    /// # Errors
    /// The first problem found. Missing confirmations come last.
    pub fn judge_again(&self, evidence: &Evidence) -> Result<Payment, PaymentFault> {
        let recorded = &self.payment;
        let found = recorded.target().payment(recorded.tx, evidence)?;
        if found.payer != recorded.payer {
            return Err(PaymentFault::WrongPayer { expected: recorded.payer, found: found.payer });
        }
        if found.amount != recorded.amount {
            return Err(PaymentFault::WrongAmount { expected: recorded.amount, found: found.amount });
        }
        if evidence.depth.is_enough() { Ok(found) } else { Err(PaymentFault::Unconfirmed(evidence.depth)) }
    }

    /// The block that the payment was recorded in, if its hash is known.
    #[must_use]
    pub fn block(&self) -> Option<Block> {
        self.payment.block()
    }
}

impl Payment {
    /// Its block, if the hash is known.
    #[must_use]
    pub fn block(&self) -> Option<Block> {
        let Self { block_number, block_hash, mined_at, .. } = self;
        block_hash.map(|hash| Block { number: *block_number, hash, time: *mined_at })
    }
}

#[cfg(test)]
mod tests;
