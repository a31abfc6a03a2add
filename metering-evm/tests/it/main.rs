//! Tests of the reader and the payer against scripted nodes on loopback: honest ones, and every kind of faulty one.
#![allow(clippy::unwrap_used, reason = "tests")]

mod contracts;
mod credited;
mod failures;
mod malformed;
mod node;
#[cfg(feature = "wallet")]
mod payer;
mod payments;
mod scene;
mod secrets;
mod settled;
mod several_sources;
mod transaction;
