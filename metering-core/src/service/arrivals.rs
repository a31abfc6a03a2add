//! What arrived on a chain, whether or not anybody asked for credits: for the watcher, and for operators.

use std::collections::{BTreeMap, BTreeSet};

use crate::address::Address;
use crate::chain::{Block, Chain, ChainError, ChainReader, Evidence, Sighting};
use crate::payment::{Payment, PaymentFault, PaymentTarget};
use crate::plan::Plan;
use crate::store::{PaymentStore, StoreError};
use crate::transaction::{TxHash, TxRef};

/// Something that arrived for a recipient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    /// The transaction.
    pub tx: TxRef,
    /// Where it went, and in what.
    pub target: PaymentTarget,
    /// Its block.
    pub block: Block,
    /// The payment, or why nobody can say what it pays: two transfers in one transaction, for example.
    pub payment: Result<Payment, PaymentFault>,
}

/// Where payments may arrive on a chain: where its plans are paid, those off sale included, and where they were to be
/// paid when a quote that is remembered was made. Whoever was told to pay there may still do so.
///
/// # Errors
/// When the store fails.
pub async fn payment_targets<S: PaymentStore + ?Sized>(
    store: &S,
    chain: &Chain,
    plans: &[Plan],
) -> Result<BTreeSet<PaymentTarget>, StoreError> {
    let of_plans = plans.iter().filter(|plan| plan.chain_id == chain.chain_id).map(|plan| plan.target(chain));
    Ok(of_plans.chain(store.quoted_targets(chain.chain_id).await?).collect())
}

/// Everything that arrived at such targets of one chain in blocks that are settled, both ends included; in the order
/// of the chain.
///
/// # Errors
/// When the chain cannot be read, or changes while it is.
pub async fn arrivals(
    reader: &dyn ChainReader,
    targets: &BTreeSet<PaymentTarget>,
    from_block: u64,
    to_block: u64,
) -> Result<Vec<Arrival>, ChainError> {
    let mut tokens_of: BTreeMap<(u64, Address), Vec<Address>> = BTreeMap::new();
    for PaymentTarget { chain_id, token, recipient } in targets {
        tokens_of.entry((*chain_id, *recipient)).or_default().push(*token);
    }
    let mut found = Vec::new();
    for ((chain_id, recipient), tokens) in tokens_of {
        for hash in reader.payments_to(recipient, &tokens, from_block, to_block).await? {
            let evidence = mined(reader, &hash).await?;
            let tx = TxRef { chain_id, hash };
            let target = |token: &Address| PaymentTarget { chain_id, token: *token, recipient };
            found.extend(tokens.iter().map(target).filter_map(|target| arrival(tx, target, &evidence)));
        }
    }
    found.sort_by_key(|arrival| arrival.block.number);
    Ok(found)
}

async fn mined(reader: &dyn ChainReader, hash: &TxHash) -> Result<Evidence, ChainError> {
    match reader.transaction(hash).await? {
        Sighting::Mined(evidence) if evidence.depth.is_enough() => Ok(evidence),
        // It was in a settled block a moment ago: the chain is read again rather than a payment missed.
        other => Err(ChainError::Disagreement(format!("{hash} was in a settled block, and now is {other:?}"))),
    }
}

/// What a transaction brought to a target; `None` where it brought nothing.
fn arrival(tx: TxRef, target: PaymentTarget, evidence: &Evidence) -> Option<Arrival> {
    let payment = target.payment(tx, evidence);
    match &payment {
        Ok(payment) if payment.amount.get() == 0 => None,
        Err(
            PaymentFault::NoTransfer { .. }
            | PaymentFault::WrongRecipient { .. }
            | PaymentFault::NoNativeTransfer { .. }
            | PaymentFault::Reverted,
        ) => None,
        _ => Some(Arrival { tx, target, block: evidence.block, payment }),
    }
}
