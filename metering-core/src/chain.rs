//! Chains: where plans are paid, and what is read from them.
//!
//! A [`ChainReader`] returns *evidence* and judges nothing: whether a transaction pays for anything is for the pure
//! rules of [`payment`](crate::Evidence). So the rules are tested without a chain, and a reader without rules.

use std::fmt;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::address::Address;
use crate::clock::Timestamp;
use crate::transaction::TxHash;
use crate::units::TokenUnits;

/// A chain that plans may be paid on, as far as clients need to know it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chain {
    /// Its id (EIP-155).
    pub chain_id: u64,
    /// Its name for people.
    pub name: String,
    /// An RPC URL that anyone may use; empty when there is none to recommend. Never the operator's own.
    pub public_rpc_url: String,
    /// Who is paid.
    pub recipient: Address,
    /// How many confirmations a payment needs to be credited, its own block counted. The chain's reader may know
    /// better: see [`ChainReader::confirmations`].
    pub confirmations: u32,
}

/// Reads one chain.
///
/// Implementations retry and compare several sources as they see fit; what they return is taken as the truth. They
/// never guess: what they cannot find out for certain is a [`ChainError`], which consumes nothing and can be retried.
#[async_trait]
pub trait ChainReader: Send + Sync + fmt::Debug {
    /// What the chain says of a transaction at this moment.
    async fn transaction(&self, hash: &TxHash) -> Result<Sighting, ChainError>;

    /// How far the chain has come at this moment.
    async fn heights(&self) -> Result<Heights, ChainError>;

    /// The hash of the block at each of these heights, in the same order. `None` where the chain has no such block, or
    /// its sources do not agree on which block it has.
    async fn block_hashes(&self, numbers: &[u64]) -> Result<Vec<Option<BlockHash>>, ChainError>;

    /// How many confirmations a payment needs to be credited, as far as that is known without asking the chain.
    fn confirmations(&self) -> Option<u32>;

    /// Transactions that may have paid `recipient` in these blocks, both ends included: those with a `Transfer` log
    /// of one of `tokens` to it, and, where `tokens` holds the zero address, those that sent it the native coin. In
    /// the order of the chain, each once. What they really paid is for [`ChainReader::transaction`] to say.
    ///
    /// A single block that is too large to be searched is reported as such, so that it does not hide the others.
    async fn payments_to(
        &self,
        recipient: Address,
        tokens: &[Address],
        from_block: u64,
        to_block: u64,
    ) -> Result<PaymentsFound, ChainError>;

    /// What the token's contract says of its decimals (ERC-20); `None` when there is no such contract.
    async fn token_decimals(&self, token: Address) -> Result<Option<u8>, ChainError>;

    /// What code there is at `address`.
    async fn code(&self, address: Address) -> Result<AccountCode, ChainError>;

    /// Whether there is a contract at `address`. One that is there may belong to somebody else than one of the same
    /// address on another chain; where there is none, the address is its private key's on every chain.
    async fn has_code(&self, address: Address) -> Result<bool, ChainError> {
        Ok(self.code(address).await? == AccountCode::Contract)
    }

    /// Whether the contract at `wallet` accepts `signature` over `digest` (EIP-1271); `false` where there is no
    /// contract, or one that does not know the question.
    async fn accepts_signature(&self, wallet: Address, digest: [u8; 32], signature: &[u8]) -> Result<bool, ChainError>;
}

/// What a search for payments found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PaymentsFound {
    /// Transactions and the numbers of their blocks.
    pub transactions: Vec<(u64, TxHash)>,
    /// Blocks that could not be searched, and why.
    pub unreadable_blocks: Vec<(u64, String)>,
}

/// What code an address has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccountCode {
    /// None: nothing runs when the address is called, and it is its private key's.
    Empty,
    /// It delegates to a contract's code (EIP-7702), and is still its private key's.
    Delegated,
    /// A contract's own.
    Contract,
}

/// What a chain says of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sighting {
    /// It knows none of that hash.
    Unknown,
    /// It was sent and is in no block yet; so many confirmations will be needed.
    Pending {
        /// How many confirmations a payment needs.
        required: u64,
        /// What it will do, where that can be told from the transaction itself.
        transaction: Option<Box<PendingTransaction>>,
    },
    /// It is in a block.
    Mined(Evidence),
}

/// A transaction that is in no block yet and that runs no code but its target's: of one of Ethereum's types 0 to 3.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingTransaction {
    /// Its sender, target, value, and whether it has call data.
    pub native: NativeTransfer,
    /// What it calls when that is `transfer(address,uint256)` (ERC-20): the receiver and the amount.
    pub transfer: Option<(Address, TokenUnits)>,
}

/// A transaction in a block, as far as payments are concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// Whether it succeeded; one that reverted paid nothing.
    pub succeeded: bool,
    /// The block that holds it.
    pub block: Block,
    /// How deep that block is.
    pub depth: Depth,
    /// The native coin that it moved itself; what contracts moved on its behalf is not in it. `None` for transactions
    /// of a kind that does not show one, such as a list of calls.
    pub native: Option<NativeTransfer>,
    /// Every `Transfer` that a contract reported, in order (ERC-20). A contract can report what it likes: only those
    /// of a pinned token mean anything.
    pub transfers: Vec<TokenTransfer>,
}

/// A block's hash, which tells it from another one at the same height.
pub type BlockHash = [u8; 32];

/// How far a chain has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heights {
    /// The newest block.
    pub newest: u64,
    /// The newest block whose payments are credited.
    pub confirmed: u64,
    /// The newest block that counts as final: payments up to it are no longer watched. Never above `confirmed`.
    pub finalized: u64,
}

/// A block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Its number.
    pub number: u64,
    /// Its hash, which tells it from another of that number after a reorganisation.
    pub hash: BlockHash,
    /// When it was made, by its own word, to the second.
    pub time: Timestamp,
}

/// How deep a block is, and how deep it must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Depth {
    /// Blocks from this one to the newest, both counted: 1 for the newest.
    pub confirmations: u64,
    /// Confirmations that make a payment count. Where the chain itself says which block is `safe` or `finalized`,
    /// those that this block has at the moment.
    pub required: u64,
}

impl Depth {
    /// Whether it is deep enough.
    #[must_use]
    pub const fn is_enough(self) -> bool {
        self.confirmations >= self.required
    }
}

/// The native coin moved by a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NativeTransfer {
    /// The transaction's sender.
    pub from: Address,
    /// Its target; `None` for one that creates a contract.
    pub to: Option<Address>,
    /// How much.
    pub value: TokenUnits,
    /// Whether it carried call data.
    pub has_input: bool,
}

/// A `Transfer` as a token's contract reported it (ERC-20).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenTransfer {
    /// The contract that reported it.
    pub token: Address,
    /// Whose tokens.
    pub from: Address,
    /// Who got them.
    pub to: Address,
    /// How many.
    pub value: TokenUnits,
}

/// Why a chain could not be read. Retryable, all of them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// No source answered, or none in a way that makes sense.
    #[error("the chain's RPC failed: {0}")]
    Unavailable(String),
    /// A source is of another chain.
    #[error("the RPC is of chain {found}, not of chain {expected}")]
    WrongChain {
        /// The chain that was asked for.
        expected: u64,
        /// The chain that answered.
        found: u64,
    },
    /// The sources respond, but what they say of this transaction cannot be read: its receipt is too large, for example.
    /// Other transactions of the chain can be read.
    #[error("the chain's RPC response cannot be read: {0}")]
    Unreadable(String),
    /// Sources contradict each other.
    #[error("the chain's RPC sources disagree: {0}")]
    Disagreement(String),
}
