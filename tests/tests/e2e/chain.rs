//! The chain that these tests run, the built-in wallet on it, and the wallet that executes signed authorizations.

mod authorizations;
mod harness;
mod tempo;
mod wallet;
