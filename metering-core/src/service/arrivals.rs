//! What arrived on a chain, whether or not anybody asked for credits: for the watcher, and for operators.

use std::collections::{BTreeMap, BTreeSet};

use crate::address::Address;
use crate::chain::{Block, Chain, ChainError, ChainReader, Evidence, Sighting};
use crate::payment::{Payment, PaymentFault, PaymentTarget};
use crate::plan::Plan;
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

/// Everything that arrived at the recipients and in the tokens of a chain's plans, those off sale included, in blocks
/// that are settled, both ends included; in the order of the chain.
///
/// # Errors
/// When the chain cannot be read, or changes while it is.
pub async fn arrivals(
    reader: &dyn ChainReader,
    chain: &Chain,
    plans: &[Plan],
    from_block: u64,
    to_block: u64,
) -> Result<Vec<Arrival>, ChainError> {
    let mut targets: BTreeMap<Address, BTreeSet<Address>> = BTreeMap::new();
    for plan in plans.iter().filter(|plan| plan.chain_id == chain.chain_id) {
        let target = plan.target(chain);
        targets.entry(target.recipient).or_default().insert(target.token);
    }
    let mut found = Vec::new();
    for (recipient, tokens) in targets {
        let tokens: Vec<Address> = tokens.into_iter().collect();
        for hash in reader.payments_to(recipient, &tokens, from_block, to_block).await? {
            let evidence = mined(reader, &hash).await?;
            let tx = TxRef { chain_id: chain.chain_id, hash };
            let target = |token: &Address| PaymentTarget { chain_id: chain.chain_id, token: *token, recipient };
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
        Err(PaymentFault::NoTransfer { .. } | PaymentFault::WrongRecipient { .. } | PaymentFault::Reverted) => None,
        _ => Some(Arrival { tx, target, block: evidence.block, payment }),
    }
}
