//! The reader against scripted nodes on loopback: honest ones, and every kind of wrong.
#![allow(clippy::unwrap_used, reason = "tests")]

mod contracts;
mod credited;
mod garbage;
mod node;
#[cfg(feature = "wallet")]
mod payer;
mod payments;
mod scene;
mod secrets;
mod settled;
mod several;
mod transaction;
mod trouble;
