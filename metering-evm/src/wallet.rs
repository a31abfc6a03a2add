//! Making payments: a [`Wallet`] signs, and a [`Payer`] sends.
//!
//! A payment takes two steps, so that it is never made twice. [`Payer::prepare`] checks everything that can go wrong
//! and signs the payment, but sends nothing. The caller writes the [`SignedPayment`] to disk. Then [`Payer::broadcast`]
//! sends it, as often as necessary: it is the same transaction each time, and a chain executes a transaction only once.
//!
//! A [`GasWallet`] sends other people's transfers in the same two steps.

mod broadcast;
mod calls;
mod error;
mod fees;
mod gas_wallet;
mod key;
mod keystore;
mod payer;
mod payment;
mod permit_call;
mod signed_transaction;
mod simulation;
mod status;
mod transaction;
mod transfer_call;

pub use error::{PayError, WalletError};
pub use gas_wallet::GasWallet;
pub use key::Wallet;
pub use payer::Payer;
pub use payment::{PaymentOrder, SignedPayment};
pub use status::PaymentStatus;
