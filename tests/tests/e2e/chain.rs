//! The chain that these tests run, and the built-in wallet on it.

mod harness;
mod proxy;
mod tempo;
mod wallet;
