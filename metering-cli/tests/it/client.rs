//! The client's commands as a person or a script runs them: the real program, against a stand-in for the service that
//! responds as the test says and records its requests.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

mod balance;
mod call;
mod config;
mod failures;
mod home;
mod keys;
mod mcp;
mod paying;
mod plans;
mod profiles;
mod recover;
mod requests;
mod rotate;
mod routes;
mod signup;
mod stand_in;
mod usage;
mod webhooks;
