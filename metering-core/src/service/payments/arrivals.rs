//! Finds payments on a chain, claimed or not, for the watcher and for operators.

use std::collections::{BTreeMap, BTreeSet};

use crate::chains::address::Address;
use crate::chains::chain::{Chain, ChainError, ChainReader, Evidence, TransactionStatus};
use crate::chains::transaction::{TxHash, TxRef};
use crate::payments::payment::{Arrival, ArrivalLocation, PaymentFault, PaymentTarget};
use crate::payments::plan::Plan;
use crate::store::{PaymentStore, StoreError};

/// Where payments may arrive on a chain: the targets of its plans, including plans off sale, and the targets of all
/// quotes still in the store. Customers with old instructions may still pay there.
///
/// ```
/// use metering_core::service::payment_targets;
/// use metering_core::PaymentStore;
/// use metering_sqlite::SqliteStore;
/// # use metering_core::chains::Chain;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let store = SqliteStore::in_memory()?;
/// # let chain: Chain = serde_json::from_str(r#"{"chain_id": 8453, "name": "Base", "public_rpc_url": "",
/// #     "recipient": "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "confirmations": 12}"#)?;
/// # store.put_plans(vec![serde_json::from_str(
/// #     r#"{"id": "starter", "chain_id": 8453, "token_symbol": "ETH", "payment_kind": "native_value", "credits": 10,
/// #         "token_amount": "0.002", "token_decimals": 18, "label": "Starter"}"#,
/// # )?]).await?;
/// let targets = payment_targets(&store, &chain, &store.plans().await?).await?;
/// assert!(targets.iter().all(|target| target.recipient == chain.recipient));
/// # assert_eq!(targets.len(), 1);
/// # Ok(())
/// # }
/// ```
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

/// The arrivals in a range of blocks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Arrivals {
    /// Sorted by block.
    pub read: Vec<Arrival>,
    /// Unreadable arrivals although the chain itself could be read, and why.
    pub unread: BTreeMap<ArrivalLocation, ChainError>,
}

/// Everything that arrived at `targets` of one chain in a range of confirmed blocks, both ends included.
///
/// A transaction that cannot be read does not stop the others from being read.
///
/// With the chain of the example `sell_a_plan`:
///
/// ```
/// use std::collections::BTreeSet;
///
/// use metering_core::payments::PaymentTarget;
/// use metering_core::service::arrivals;
/// # mod in_memory {
/// #     include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/sell_a_plan/in_memory.rs"));
/// # }
/// # use in_memory::{CHAIN_ID, MemoryChain, USDC, Wallet};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let (chain, customer) = (MemoryChain::default(), Wallet::of(7).address());
/// # let recipient = chain.listed().recipient;
/// chain.pay(customer, recipient, "5000000".parse()?);
/// let targets = BTreeSet::from([PaymentTarget { chain_id: CHAIN_ID, token: USDC, recipient }]);
/// let arrived = arrivals(&chain, &targets, 1, 1).await?;
/// let payment = arrived.read[0].payment.as_ref().map_err(|fault| fault.to_string())?;
/// assert_eq!((payment.payer, payment.amount.to_human(6).as_str()), (customer, "5"));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// When the chain cannot be read.
pub async fn arrivals(
    reader: &dyn ChainReader,
    targets: &BTreeSet<PaymentTarget>,
    from_block: u64,
    to_block: u64,
) -> Result<Arrivals, ChainError> {
    let mut tokens_of: BTreeMap<(u64, Address), Vec<Address>> = BTreeMap::new();
    for PaymentTarget { chain_id, token, recipient } in targets {
        tokens_of.entry((*chain_id, *recipient)).or_default().push(*token);
    }
    let mut arrivals = Arrivals::default();
    let mut seen = BTreeSet::new();
    for ((chain_id, recipient), tokens) in tokens_of {
        let found = reader.payments_to(recipient, &tokens, from_block, to_block).await?;
        for (block_number, why) in found.unreadable_blocks {
            let location = ArrivalLocation { chain_id, block_number, hash: None };
            arrivals.unread.insert(location, ChainError::Unreadable(why));
        }
        for (block_number, hash) in found.transactions {
            if !seen.insert((chain_id, hash)) {
                continue;
            }
            match arrivals_in(reader, targets, TxRef { chain_id, hash }).await {
                Ok(some) => arrivals.read.extend(some),
                Err(error) => {
                    check_chain_is_readable(reader, &error).await?;
                    arrivals.unread.insert(ArrivalLocation { chain_id, block_number, hash: Some(hash) }, error);
                }
            }
        }
    }
    arrivals.read.sort_by_key(|arrival| arrival.block.number);
    Ok(arrivals)
}

/// The arrivals in one transaction, at the targets of its chain.
pub(super) async fn arrivals_in(
    reader: &dyn ChainReader,
    targets: &BTreeSet<PaymentTarget>,
    tx: TxRef,
) -> Result<Vec<Arrival>, ChainError> {
    let evidence = mined(reader, &tx.hash).await?;
    let of_chain = targets.iter().filter(|target| target.chain_id == tx.chain_id);
    Ok(of_chain.filter_map(|target| arrival(tx, *target, &evidence)).collect())
}

/// Returns `Ok` if the error is about one transaction or block only, and fails if the whole chain cannot be read.
pub(super) async fn check_chain_is_readable(reader: &dyn ChainReader, error: &ChainError) -> Result<(), ChainError> {
    match error {
        ChainError::Unreadable(_) => Ok(()),
        _ => reader.heights().await.map(drop),
    }
}

async fn mined(reader: &dyn ChainReader, hash: &TxHash) -> Result<Evidence, ChainError> {
    match reader.transaction(hash).await? {
        TransactionStatus::Mined(evidence) if evidence.depth.is_enough() => Ok(evidence),
        // It was in a confirmed block a moment ago. Fail, so the blocks are read again and no payment is missed.
        other => Err(ChainError::Disagreement(format!("{hash} was in a confirmed block, and now is {other:?}"))),
    }
}

/// The arrival of a transaction at a target; `None` if it pays that target nothing.
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
