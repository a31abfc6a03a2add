//! The workspace end to end: the real server and the real command-line program, over loopback, on folders of their
//! own. `cargo build --workspace` must have made them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

mod authentication;
mod bad_http;
mod bad_input;
mod billing;
mod calendar;
mod caps;
mod chain_harness;
mod chain_proxy;
mod client_address;
mod configuration;
mod exactness;
mod forwarding;
mod hanging_up;
mod market;
mod market_attacks;
mod market_depth;
mod market_faults;
mod market_limits;
mod market_path;
mod market_races;
mod market_rotation;
mod market_start;
mod market_topups;
mod market_watcher;
mod operations;
mod overload;
mod paths;
mod power_cut;
mod refunds;
mod sharing;
mod shutdown;
mod signup;
mod signup_abuse;
mod signup_turnstile;
mod streams;
mod upstream;
mod usage;
mod wire;
