//! The workspace's end-to-end crate: the benchmark, the chaos campaigns, the model of a cluster, and what they share with
//! the tests.
//!
//! Like assertions, functions that return no `Result` panic when what they do fails. Only other reasons are documented.

mod batches;
pub mod bench;
pub mod booted_system;
pub mod chain;
pub mod chaos;
pub mod client;
pub mod cluster_model;
pub mod command;
mod daemon;
pub mod database_proxy;
pub mod debian_root;
pub mod documents;
pub mod latency;
pub mod listener;
pub mod litellm;
pub mod litestream;
pub mod llm_upstream;
pub mod load;
pub mod mail;
pub mod mcp;
pub mod patroni;
pub mod pgbouncer;
pub mod ports;
pub mod postgres;
pub mod posting_log;
mod process;
pub mod program;
pub mod proxies;
pub mod response;
#[cfg(test)]
mod scripted;
pub mod server;
mod shim;
pub mod site;
pub mod skipped;
pub mod stripe;
pub mod venv;
pub mod wait;
pub mod webhooks;
pub mod worker;
