//! End-to-end tests of the workspace: the real server and the real command-line program, over loopback, in their own
//! folders. Run `cargo build --workspace` first.
#![allow(clippy::unwrap_used, reason = "a test that cannot continue must stop")]

mod buying;
mod chain;
mod charging;
mod client;
mod clients;
mod gateway;
mod http;
mod keys;
mod llm;
mod log;
mod mail;
mod mcp;
mod nodes;
mod operations;
mod packages;
mod pages;
mod payments;
mod proxies;
mod repository;
mod signup;
mod support;
mod webhooks;
mod x402;
