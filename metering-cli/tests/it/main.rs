//! The command line as a person or a script runs it: the real program, as a process of its own.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

mod admin;
mod catch_up;
mod client;
mod log;
mod moving;
mod node;
mod payments;
mod program;
mod stand_in;
mod store;
