//! Chains that plans are paid on, and the data read from them.
//!
//! A [`ChainReader`] returns *evidence* and judges nothing. The pure rules in
//! [`payment`](crate::payments::PaymentTarget::payment) decide whether a transaction pays for anything, so rules and
//! readers can be tested separately.

use std::fmt;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::chains::address::Address;
use crate::chains::transaction::TxHash;
use crate::chains::units::TokenUnits;
use crate::clock::Timestamp;

/// A chain that plans may be paid on, with the details that clients need.
///
/// ```
/// use metering_core::ServiceConfig;
/// use metering_core::chains::Chain;
///
/// let base = Chain {
///     chain_id: 8453,
///     name: "Base".to_owned(),
///     public_rpc_url: "https://mainnet.base.org".to_owned(),
///     recipient: "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed".parse()?,
///     confirmations: 12,
///     explorer_url: "https://basescan.org".to_owned(),
/// };
/// let config = ServiceConfig { chains: vec![base], ..ServiceConfig::default() };
/// assert_eq!(config.chains[0].name, "Base");
/// # Ok::<(), metering_core::chains::AddressError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chain {
    /// Its id (EIP-155).
    pub chain_id: u64,
    /// Its display name.
    pub name: String,
    /// A public RPC URL to recommend to clients; may be empty. Never an address of the operator.
    pub public_rpc_url: String,
    /// The address that is paid.
    pub recipient: Address,
    /// How many confirmations a payment needs before it is credited; its own block counts. The chain's reader may have
    /// a more accurate number: see [`ChainReader::confirmations`].
    pub confirmations: u32,
    /// The block explorer to show transactions in, without a trailing slash; may be empty.
    #[serde(default)]
    pub explorer_url: String,
}

/// Reads one chain.
///
/// Implementations may retry and compare several sources; their callers trust what they return. They never guess:
/// anything uncertain is a [`ChainError`], which changes nothing and can be retried.
///
/// `metering-evm` has one for EVM chains. For tests, write an in-memory one, like the example `sell_a_plan`.
///
/// ```
/// use metering_core::chains::{ChainError, ChainReader, TransactionStatus, TxHash};
///
/// /// How many confirmations a payment still needs; `None` while it is in no block.
/// async fn missing(reader: &dyn ChainReader, hash: &TxHash) -> Result<Option<u64>, ChainError> {
///     let TransactionStatus::Mined(evidence) = reader.transaction(hash).await? else { return Ok(None) };
///     Ok(Some(evidence.depth.required.saturating_sub(evidence.depth.confirmations)))
/// }
/// # mod in_memory {
/// #     include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/sell_a_plan/in_memory.rs"));
/// # }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let chain = in_memory::MemoryChain::default();
/// # let (from, to) = (in_memory::Wallet::of(7).address(), chain.listed().recipient);
/// let hash = chain.pay(from, to, "5000000".parse()?);
/// assert_eq!(missing(&chain, &hash).await?, Some(0));
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait ChainReader: Send + Sync + fmt::Debug {
    /// The current state of a transaction.
    async fn transaction(&self, hash: &TxHash) -> Result<TransactionStatus, ChainError>;

    /// The current heights of the chain.
    async fn heights(&self) -> Result<Heights, ChainError>;

    /// The hash of the block at each of these heights, in the same order. `None` where the chain has no such block, or
    /// the sources disagree about it.
    async fn block_hashes(&self, numbers: &[u64]) -> Result<Vec<Option<BlockHash>>, ChainError>;

    /// How many confirmations a payment needs before it is credited, if that is known without reading the chain.
    fn confirmations(&self) -> Option<u32>;

    /// Transactions that may have paid `recipient` in these blocks, both ends included: those with a `Transfer` log of
    /// one of `tokens` to it, and, if `tokens` holds the zero address, those that sent it the native coin. In chain
    /// order, each once. Use [`ChainReader::transaction`] to read what they paid.
    ///
    /// A single block that is too large to search is reported separately, so it does not hide the others.
    async fn payments_to(
        &self,
        recipient: Address,
        tokens: &[Address],
        from_block: u64,
        to_block: u64,
    ) -> Result<PaymentsFound, ChainError>;

    /// The decimals that a token's contract reports (ERC-20); `None` when there is no such contract.
    async fn token_decimals(&self, token: Address) -> Result<Option<u8>, ChainError>;

    /// The kind of code at `address`.
    async fn code(&self, address: Address) -> Result<AccountCode, ChainError>;

    /// Whether there is a contract at `address`. Contracts at the same address on two chains may have different owners.
    /// An address without a contract belongs to the holder of its private key on every chain.
    async fn has_code(&self, address: Address) -> Result<bool, ChainError> {
        Ok(self.code(address).await? == AccountCode::Contract)
    }

    /// Identifies the code at `address`: its keccak-256. `None` if there is none. By default, all code counts as the
    /// same.
    async fn code_hash(&self, address: Address) -> Result<Option<[u8; 32]>, ChainError> {
        Ok((self.code(address).await? != AccountCode::Empty).then_some([0; 32]))
    }

    /// Whether the contract at `wallet` accepts `signature` over `digest` (EIP-1271); `false` when there is no
    /// contract, or it does not implement EIP-1271.
    async fn accepts_signature(&self, wallet: Address, digest: [u8; 32], signature: &[u8]) -> Result<bool, ChainError>;

    /// The state of the sources that the chain is read from, without querying them, in the order of the configuration;
    /// empty if there are none to tell apart.
    fn sources(&self) -> Vec<SourceStatus> {
        Vec::new()
    }
}

/// A source that a chain is read from, as operators see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceStatus {
    /// Why its last request failed, if it did; with its host, without the secrets of its URL.
    pub problem: Option<String>,
    /// The newest block that it has shown.
    pub newest_block: Option<u64>,
}

/// The result of a search for payments.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PaymentsFound {
    /// Transactions and the numbers of their blocks.
    pub transactions: Vec<(u64, TxHash)>,
    /// Blocks that could not be searched, and why.
    pub unreadable_blocks: Vec<(u64, String)>,
}

/// The kind of code at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccountCode {
    /// No code: nothing runs when the address is called, and it belongs to the holder of its private key.
    Empty,
    /// A delegation to a contract's code (EIP-7702). The address still belongs to the holder of its private key.
    Delegated,
    /// A contract.
    Contract,
}

/// The state of a transaction on a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransactionStatus {
    /// The chain has no such transaction.
    Unknown,
    /// It was sent and is in no block yet.
    Pending {
        /// How many confirmations a payment will need.
        required: u64,
        /// The effect that it will have, if the transaction itself shows it.
        transaction: Option<Box<PendingTransaction>>,
    },
    /// It is in a block.
    Mined(Evidence),
}

/// A pending transaction that runs no code except its target's: one of Ethereum's transaction types 0 to 3.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingTransaction {
    /// Its sender, target, value, and whether it has call data.
    pub native: NativeTransfer,
    /// If it calls `transfer(address,uint256)` (ERC-20): the receiver and the amount.
    pub transfer: Option<(Address, TokenUnits)>,
}

/// The evidence of payments in a mined transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// Whether it succeeded. A reverted one paid nothing.
    pub succeeded: bool,
    /// The block that it is in.
    pub block: Block,
    /// The confirmations that the block has, and those it needs.
    pub depth: Depth,
    /// The native coin that the transaction itself moved, excluding transfers by contracts on its behalf. `None` for
    /// types of transaction that do not show it, such as a list of calls.
    pub native: Option<NativeTransfer>,
    /// Every `Transfer` event in its logs, in order (ERC-20). Any contract can emit any event, so only events of a
    /// known token count.
    pub transfers: Vec<TokenTransfer>,
}

/// A block's hash, which distinguishes it from other blocks at the same height.
pub type BlockHash = [u8; 32];

/// The heights of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heights {
    /// The newest block.
    pub newest: u64,
    /// The newest block whose payments are credited.
    pub confirmed: u64,
    /// The newest final block: payments up to it are no longer watched. At most `confirmed`.
    pub finalized: u64,
}

/// A block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Its number.
    pub number: u64,
    /// Its hash, which distinguishes it from another block with that number after a reorganisation.
    pub hash: BlockHash,
    /// Its own timestamp, in whole seconds.
    pub time: Timestamp,
}

/// The confirmations that a block has, and those it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Depth {
    /// Blocks from this one to the newest, inclusive: 1 for the newest.
    pub confirmations: u64,
    /// Confirmations that a payment needs. On chains that report a `safe` or `finalized` block, the number that this
    /// block has now.
    pub required: u64,
}

impl Depth {
    /// Whether there are enough confirmations.
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
    /// The amount.
    pub value: TokenUnits,
    /// Whether it carries call data.
    pub has_input: bool,
}

/// A `Transfer` event (ERC-20).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenTransfer {
    /// The contract that emitted it.
    pub token: Address,
    /// The owner of the moved tokens.
    pub from: Address,
    /// Who received them.
    pub to: Address,
    /// The amount.
    pub value: TokenUnits,
}

/// Why a chain could not be read. All of these can be retried.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChainError {
    /// No source sent a usable response.
    #[error("the chain's RPC failed: {0}")]
    Unavailable(String),
    /// A source serves another chain.
    #[error("the RPC serves chain {found}, not chain {expected}")]
    WrongChain {
        /// The chain that was expected.
        expected: u64,
        /// The chain that the source serves.
        found: u64,
    },
    /// The sources respond, but their data about this transaction cannot be read, for example because its receipt is
    /// too large. Other transactions of the chain can be read.
    #[error("the chain's RPC response cannot be read: {0}")]
    Unreadable(String),
    /// Sources contradict each other.
    #[error("the chain's RPC sources disagree: {0}")]
    Disagreement(String),
}
