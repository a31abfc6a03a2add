//! The workspace's end-to-end crate: the benchmark, the chaos campaigns, and what they share with the tests.

pub mod answer;
pub mod bench;
pub mod chain;
pub mod chaos;
pub mod client;
pub mod latency;
pub mod link;
pub mod load;
pub mod mcp;
pub mod pgbouncer;
pub mod postgres;
pub mod program;
#[cfg(test)]
mod scripted;
pub mod server;
pub mod site;
pub mod skipped;
