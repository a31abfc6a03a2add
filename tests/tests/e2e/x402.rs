//! Published clients of x402 and MPP, unchanged, pay for metered routes on a real chain.
//!
//! `./test.sh` installs them from `tests/x402`.

mod client;
mod clients;
pub(crate) mod discovery;
mod facilitator;
mod faults;
pub(crate) mod market;
mod mcp;
mod mpp;
mod mpp_tools;
mod reverts;
mod sign_in;
mod signing;
mod topping_up;
mod upto;
