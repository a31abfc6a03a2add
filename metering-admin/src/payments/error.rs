//! Why a scan or an assignment failed.
//!
//! Messages describe what happened. What to do next depends on the surface: the command line names its options, and
//! [`AdminError`] describes it without them.

use metering_core::access::{AccountId, AgentName};
use metering_core::chains::{ChainError, Depth, TxHash, TxRef};
use metering_core::clock::Timestamp;
use metering_core::money::Credits;
use metering_core::payments::{PaymentFault, PaymentRecord, PlanKey};
use metering_core::store::StoreError;

use crate::AdminError;
use crate::payments::status::use_of;

/// Why a chain was not scanned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScanError {
    /// The last block has too few confirmations.
    #[error("block {to_block} is not confirmed yet; the newest confirmed block is {confirmed}")]
    NotConfirmed {
        /// The requested block.
        to_block: u64,
        /// The newest block that can be scanned.
        confirmed: u64,
    },
    /// The first block is after the last one.
    #[error("block {from_block} is after block {to_block}, the last block to read")]
    Backwards {
        /// The first block.
        from_block: u64,
        /// The last block.
        to_block: u64,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The chain could not be read.
    #[error("could not read chain {chain}: {error}")]
    Chain {
        /// The chain's name.
        chain: String,
        /// What happened.
        error: ChainError,
    },
}

/// Why a payment was not assigned. Unless [`AssignError::Store`] says otherwise, nothing changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AssignError {
    /// The chain has no such plan.
    #[error("no plan {0}")]
    NoSuchPlan(PlanKey),
    /// There is no such account.
    #[error("no account {0}")]
    NoSuchAccount(AccountId),
    /// The account is revoked.
    #[error("account {account} was revoked at {at}; a revoked account cannot be changed")]
    Revoked {
        /// The account.
        account: AccountId,
        /// When it was revoked.
        at: Timestamp,
    },
    /// The operator gave zero or negative credits for the payment.
    #[error("the credits must be above zero")]
    NotPositive,
    /// The transaction was credited to another account, or paid for a signup.
    #[error("transaction {tx} was used before{}; nothing was assigned", used(.record.as_deref()))]
    Used {
        /// The transaction.
        tx: TxRef,
        /// Its use, if the store has it.
        record: Option<Box<PaymentRecord>>,
    },
    /// The chain does not have the transaction.
    #[error("chain {chain} has no transaction {hash}")]
    UnknownTransaction {
        /// The chain's name.
        chain: String,
        /// The transaction.
        hash: TxHash,
    },
    /// It needs more confirmations.
    #[error("the payment has {} of {} confirmations; try again later", .0.confirmations, .0.required)]
    Unconfirmed(Depth),
    /// The transaction failed, and paid nothing.
    #[error("{}", PaymentFault::Reverted)]
    Reverted,
    /// It pays the plan's recipient, but less than the plan costs.
    #[error("plan {plan} costs {price}, but only {paid} was paid")]
    TooLittle {
        /// The plan.
        plan: PlanKey,
        /// Its price, with the token's symbol.
        price: String,
        /// The amount paid, with the token's symbol.
        paid: String,
    },
    /// It does not pay the plan.
    #[error("the transaction does not pay plan {plan}: {fault}")]
    NotForPlan {
        /// The plan.
        plan: PlanKey,
        /// Why not.
        fault: PaymentFault,
    },
    /// It pays a recipient of the chain's plans in a way that leaves the amount or the payer unclear.
    #[error("it is not clear what the transaction pays: {0} Nothing was assigned")]
    Unclear(PaymentFault),
    /// It contains several payments.
    #[error("the transaction contains several payments: {}", .0.join(", "))]
    Several(Vec<String>),
    /// It pays no recipient of the chain's plans.
    #[error("the transaction has no transfer to a recipient of the chain's plans in the token of such a plan")]
    NoPayment,
    /// The chain has no plans or quotes to pay.
    #[error("no plan is paid on this chain, so no transfer on it counts as a payment")]
    NothingPaidHere,
    /// An open signup quote is waiting for it.
    #[error("the quote of {} is waiting for exactly this payment, and its owner can still claim it", quoted(.0.as_ref()))]
    Quoted(Option<AgentName>),
    /// An open top-up quote of another account is waiting for it.
    #[error("a top-up quote of {0} is waiting for exactly this payment")]
    TopUpQuoted(AccountId),
    /// The balance or a total of the account cannot hold the credits.
    #[error("{amount} more credits would take the balance of {account} out of range; nothing was assigned")]
    OutOfRange {
        /// The account.
        account: AccountId,
        /// The credits.
        amount: Credits,
    },
    /// The plan's credits cannot be held. Plans are validated before they are stored, so this is a corrupt plan.
    #[error("the plan's credits are more than a balance can hold")]
    PlanOutOfRange,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The chain could not be read.
    #[error("could not read chain {chain}: {error}")]
    Chain {
        /// The chain's name.
        chain: String,
        /// What happened.
        error: ChainError,
    },
}

fn used(record: Option<&PaymentRecord>) -> String {
    record.map(|record| format!(": {}", use_of(record))).unwrap_or_default()
}

fn quoted(agent_name: Option<&AgentName>) -> String {
    agent_name.map_or_else(|| "an unknown agent".to_owned(), ToString::to_string)
}

impl From<ScanError> for AdminError {
    fn from(error: ScanError) -> Self {
        match error {
            ScanError::NotConfirmed { .. } | ScanError::Backwards { .. } => Self::Invalid(error.to_string()),
            ScanError::Store(error) => Self::Store(error),
            ScanError::Chain { chain, error } => Self::Chain { chain, error },
        }
    }
}

impl From<AssignError> for AdminError {
    fn from(error: AssignError) -> Self {
        let text = format!("{error}{}", advice(&error));
        match error {
            AssignError::NoSuchPlan(_) | AssignError::NoSuchAccount(_) | AssignError::UnknownTransaction { .. } => {
                Self::NotFound(text)
            }
            AssignError::Revoked { .. }
            | AssignError::Used { .. }
            | AssignError::Unconfirmed(_)
            | AssignError::Quoted(_)
            | AssignError::TopUpQuoted(_)
            | AssignError::OutOfRange { .. }
            | AssignError::PlanOutOfRange => Self::Conflict(text),
            AssignError::NotPositive
            | AssignError::Reverted
            | AssignError::TooLittle { .. }
            | AssignError::NotForPlan { .. }
            | AssignError::Unclear(_)
            | AssignError::Several(_)
            | AssignError::NoPayment
            | AssignError::NothingPaidHere => Self::Invalid(text),
            AssignError::Store(error) => Self::Store(error),
            AssignError::Chain { chain, error } => Self::Chain { chain, error },
        }
    }
}

/// The next step for the operator, to append to the message.
const fn advice(error: &AssignError) -> &'static str {
    match error {
        AssignError::TooLittle { .. } => "; say how many credits that is worth instead of naming the plan",
        AssignError::Unclear(_) => "; to credit it anyway, grant the account credits",
        AssignError::Several(_) => "; name the plan to choose one",
        AssignError::Quoted(_) => "; to assign it anyway, confirm that you do so despite the quote",
        AssignError::TopUpQuoted(_) => "; assign it to that account, or confirm that you do so despite the quote",
        _ => "",
    }
}
