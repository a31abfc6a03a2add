//! Payments that come with requests, through the layer, with a token whose contract checks real signatures.
#![allow(clippy::unwrap_used, reason = "a failed assumption must fail the test")]

mod attacks;
mod billing;
mod buying;
mod chain_trouble;
mod challenges;
mod crashes;
mod discovery;
mod facilitator;
mod ledger;
mod node;
mod paying;
mod repeats;
mod reverts;
mod scene;
mod sign_in;
mod theft;
mod usage;
mod wallet;
