//! Blockchains as the rest of the domain sees them: addresses, amounts of tokens, transactions, signatures, and
//! [`ChainReader`], which reads evidence of payments.
//!
//! Nothing here uses plans, quotes or accounts: [`payments`](crate::payments) decides whether a transaction pays for
//! something.

pub(crate) mod address;
pub(crate) mod chain;
pub(crate) mod explorer;
pub(crate) mod signature;
pub(crate) mod transaction;
pub(crate) mod typed_data;
pub(crate) mod units;
mod wrapped_signature;

pub use address::{Address, AddressError};
pub use chain::{
    AccountCode, Block, BlockHash, Chain, ChainError, ChainReader, Depth, Evidence, Heights, NativeTransfer,
    PaymentsFound, PendingTransaction, SourceStatus, TokenTransfer, TransactionStatus,
};
pub use explorer::known_explorer;
pub use signature::{WalletSignature, WalletSignatureError, signer, signer_of_digest, signing_digest};
pub use transaction::{TxHash, TxHashError, TxRef};
pub use typed_data::TokenDomain;
pub use units::{TokenUnits, TokenUnitsError};
