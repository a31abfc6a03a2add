//! Tests of the reader and the payer against scripted nodes on loopback: correct ones, and every kind of faulty one.
#![allow(clippy::unwrap_used, reason = "tests")]

mod contracts;
mod credited;
mod facilitator;
mod failures;
#[cfg(feature = "wallet")]
mod gas_wallet;
mod limits;
mod malformed;
mod node;
#[cfg(feature = "wallet")]
mod payer;
mod payments;
mod scene;
mod secrets;
mod settled;
mod several_sources;
mod tokens;
mod transaction;
