//! Reads payments from EVM chains over JSON-RPC: the [`ChainReader`](metering_core::chains::ChainReader) of the
//! service.
//!
//! [`ChainConfig`] is the configuration section of a chain, and creates the [`EvmReader`]. The reader queries all
//! configured sources in parallel and accepts a result that `agree` of them report identically. It returns evidence and
//! judges nothing; what it cannot determine for certain is a retryable error, never a guess.
//!
//! ```
//! use metering_evm::ChainConfig;
//!
//! let config: ChainConfig = toml::from_str(
//!     r#"
//!     chain_id = 8453
//!     rpc_urls = ["https://one.example.com/v2/key", "https://two.example.com/key"]
//!     agree = 2
//!     recipient = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
//!     confirmations = 12
//!     "#,
//! )?;
//! let reader = config.reader()?.expect("the section has URLs");
//! assert_eq!(reader.chain_id(), 8453);
//! assert!(!format!("{reader:?}").contains("key")); // URLs are secrets
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where next
//!
//! - Selling plans with the reader: [`ChainConfig::reader`] shows how it gets into a
//!   [`Service`](metering_core::Service).
//! - A check of the sources at start: [`EvmReader::check`].
//! - When a payment is credited, and when it is final: [`Finality`].
//! - Making payments, with the feature `wallet`: `Wallet` holds a private key, and `Payer` prepares, signs and sends.
//! - Having signed authorizations (EIP-3009) executed by a facilitator of x402: [`HttpFacilitator`].
//! - Executing them, with the feature `wallet`: `GasWallet` pays the gas.
//!
//! `docs/payments.md` in the repository is the guide for operators, and `docs/payment-security.md` says which payments
//! count.
#![deny(missing_docs)]

mod agreement;
mod block;
mod block_time;
mod call;
mod capacity;
mod config;
mod contract;
mod encoding;
mod facilitator;
mod failure;
mod finality;
#[cfg(fuzzing)]
pub mod fuzzing;
mod health;
mod heights;
mod http;
mod lenient;
mod log;
mod lookup;
mod poll;
mod reader;
mod results;
mod retry;
mod rpc_url;
mod scan;
mod source;
mod token;
mod transaction;
#[cfg(feature = "wallet")]
mod wallet;

pub use config::{ChainConfig, ChainConfigError};
pub use facilitator::{FacilitatorSetupError, HttpFacilitator};
pub use finality::{Finality, FinalityError};
pub use reader::EvmReader;
pub use reader::limits::SourceLimits;
pub use rpc_url::{RpcUrl, RpcUrlError};
#[cfg(feature = "wallet")]
pub use wallet::{GasWallet, PayError, Payer, PaymentOrder, PaymentStatus, SignedPayment, Wallet, WalletError};

/// Runs the program in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
