//! What a payer needs: a [`Wallet`] that signs, and a [`Payer`] that sends.
//!
//! A payment is made in two steps, so that it is never sent twice. [`Payer::prepare`] finds out all that can be wrong
//! and signs; it sends nothing. The [`SignedPayment`] goes to disk. Only then [`Payer::broadcast`] sends it, as often as
//! it takes: it is the same transaction each time, and a chain takes a transaction once.

mod broadcast;
mod error;
mod fees;
mod key;
mod keystore;
mod payer;
mod payment;
mod questions;
mod standing;
mod transaction;

pub use error::{PayError, WalletError};
pub use key::Wallet;
pub use payer::Payer;
pub use payment::{PaymentOrder, SignedPayment};
pub use standing::Standing;
