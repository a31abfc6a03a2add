//! Looks up a transaction at one source.
//!
//! This takes two batches, since the second depends on the first: receipt, transaction and newest block, and then the
//! block that the receipt names. A receipt alone proves little: after a reorganisation a source may keep serving it,
//! even forever, although the chain has another block at that height. The transaction is in the chain only if the block
//! with that number has the block hash of the receipt; until then it counts as pending.

use metering_core::chains::{Depth, Evidence, TransactionStatus, TxHash};
use serde::Deserialize;

use crate::block::Head;
use crate::call::Call;
use crate::encoding::{Height, Quantity, Word};
use crate::failure::Failure;
use crate::finality::Finality;
use crate::log::Log;
use crate::results::BatchResults;
use crate::source::Source;
use crate::transaction::Transaction;

/// The receipt of a transaction, with a status since EIP-658.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Receipt {
    transaction_hash: Word,
    block_hash: Word,
    block_number: Height,
    status: Option<Quantity>,
    logs: Vec<Log>,
}

/// The current state of the chain.
#[derive(Debug, Clone, Copy)]
struct Progress {
    newest: Height,
    rule: Rule,
}

/// Which blocks currently count.
#[derive(Debug, Clone, Copy)]
enum Rule {
    Confirmations(u64),
    /// This block and all before it.
    UpTo(Height),
}

/// The results of the first batch.
#[derive(Debug)]
struct FirstBatch {
    receipt: Option<Receipt>,
    transaction: Option<Transaction>,
    progress: Progress,
}

/// What `source` reports about a transaction.
pub(crate) async fn transaction_status(
    source: &Source,
    finality: Finality,
    hash: &TxHash,
) -> Result<TransactionStatus, Failure> {
    let mut calls = vec![Call::receipt(hash), Call::transaction(hash)];
    calls.extend(progress_calls(finality));
    let first = source.send_batch(&calls, |results| FirstBatch::read(results, finality, hash)).await?;
    let (receipt, transaction) = match (&first.receipt, &first.transaction) {
        (None, None) => return Ok(TransactionStatus::Unknown),
        (Some(receipt), Some(transaction)) if transaction.may_be_in(receipt.block_hash) => (receipt, transaction),
        // Not in a block, or the source is changing state and only some of its responses show that yet.
        (_, transaction) => return Ok(first.progress.pending(transaction.as_ref())),
    };
    let number = receipt.block_number;
    let block = |results: &mut BatchResults<'_>| {
        let head: Option<Head> = results.next()?;
        head.map(|head| head.block(number)).transpose()
    };
    match source.send_batch(&[Call::block(number.0, false)], block).await? {
        Some(block) if block.hash == receipt.block_hash.0 => {
            let depth = first.progress.depth(number);
            Ok(TransactionStatus::Mined(Evidence {
                succeeded: receipt.succeeded()?,
                block,
                depth,
                native: transaction.native(),
                transfers: receipt.logs.iter().filter_map(Log::transfer).collect(),
            }))
        }
        // A reorganisation removed the block, or the source no longer has it.
        _ => Ok(first.progress.pending(first.transaction.as_ref())),
    }
}

fn progress_calls(finality: Finality) -> Vec<Call> {
    let newest = [Call::block_number()];
    newest.into_iter().chain(finality.tag().map(Call::tagged_block)).collect()
}

impl FirstBatch {
    fn read(results: &mut BatchResults<'_>, finality: Finality, hash: &TxHash) -> Result<Self, Failure> {
        let receipt: Option<Receipt> = results.next()?;
        let transaction: Option<Transaction> = results.next()?;
        let progress = Progress::read(results, finality)?;
        if let Some(receipt) = &receipt {
            receipt.check(hash)?;
        }
        if transaction.as_ref().is_some_and(|transaction| transaction.has_other_hash_than(hash)) {
            return Err(Failure::malformed("eth_getTransactionByHash", "a transaction other than the requested one"));
        }
        Ok(Self { receipt, transaction, progress })
    }
}

impl Receipt {
    fn check(&self, hash: &TxHash) -> Result<(), Failure> {
        let of_another = |word: Word| word.0 != *hash.as_bytes();
        let of_another_if_named = |word: Option<Word>| word.is_some_and(of_another);
        let of_other_block = |log: &Log| log.block_hash.is_some_and(|block| block != self.block_hash);
        if of_another(self.transaction_hash) {
            return Err(Failure::malformed("eth_getTransactionReceipt", "a transaction other than the requested one"));
        }
        if self.logs.iter().any(|log| of_another_if_named(log.transaction_hash) || of_other_block(log)) {
            return Err(Failure::malformed("eth_getTransactionReceipt", "a log of another transaction or block"));
        }
        self.succeeded().map(|_| ())
    }

    fn succeeded(&self) -> Result<bool, Failure> {
        match self.status {
            Some(Quantity(1)) => Ok(true),
            Some(Quantity(0)) => Ok(false),
            Some(_) => Err(Failure::malformed("eth_getTransactionReceipt", "a status other than 0 and 1")),
            None => Err(Failure::NoStatus),
        }
    }
}

impl Progress {
    fn read(results: &mut BatchResults<'_>, finality: Finality) -> Result<Self, Failure> {
        let newest = results.next()?;
        let rule = match (finality, finality.tag()) {
            (Finality::Confirmations(count), _) => Rule::Confirmations(u64::from(count.get())),
            (_, tag) => {
                let head: Option<Head> = results.next()?;
                Rule::UpTo(head.ok_or(Failure::NotYet(tag.unwrap_or_default()))?.number)
            }
        };
        Ok(Self { newest, rule })
    }

    /// How deep `block` is. One URL may be served by several nodes, and the newest block of one may be older than a
    /// block that another has reported. So the highest block that any of them reported counts as the newest.
    fn depth(self, block: Height) -> Depth {
        let newest = match self.rule {
            Rule::Confirmations(_) => self.newest.max(block),
            Rule::UpTo(settled) => self.newest.max(block).max(settled),
        };
        // Does not underflow, since `block` is at most `newest`, and does not overflow, since both have 63 bits.
        let confirmations_of = |block: Height| newest.0 - block.0 + 1;
        let required = match self.rule {
            Rule::Confirmations(count) => count,
            Rule::UpTo(settled) => confirmations_of(settled),
        };
        Depth { confirmations: confirmations_of(block), required }
    }

    fn pending(self, transaction: Option<&Transaction>) -> TransactionStatus {
        let transaction = transaction.and_then(Transaction::pending).map(Box::new);
        TransactionStatus::Pending { required: self.depth(self.newest).required, transaction }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_counts_the_blocks_own_and_never_underflows() {
        // newest, rule, block, confirmations, required
        let table = [
            (100, Rule::Confirmations(12), 100, 1, 12),
            (100, Rule::Confirmations(12), 89, 12, 12),
            (100, Rule::Confirmations(12), 105, 1, 12),
            (100, Rule::UpTo(Height(90)), 90, 11, 11),
            (100, Rule::UpTo(Height(90)), 91, 10, 11),
            (100, Rule::UpTo(Height(100)), 100, 1, 1),
            (100, Rule::UpTo(Height(104)), 103, 2, 1),
            (100, Rule::UpTo(Height(90)), 105, 1, 16),
            (i64::MAX.unsigned_abs(), Rule::UpTo(Height(0)), 1, i64::MAX.unsigned_abs(), i64::MAX.unsigned_abs() + 1),
        ];
        for (newest, rule, block, confirmations, required) in table {
            let depth = Progress { newest: Height(newest), rule }.depth(Height(block));
            assert_eq!(depth, Depth { confirmations, required }, "{newest} {rule:?} {block}");
            if let Rule::UpTo(settled) = rule {
                assert_eq!(depth.is_enough(), block <= settled.0, "{newest} {rule:?} {block}");
            }
        }
    }
}
