//! The client commands: what account holders do with a service, over its HTTP routes.
//!
//! A command opens a [`session::Session`], which knows the profile, the service and the key, sends requests and prints
//! the responses. State that outlives a command is kept in the profile's directory, in one file per kind.

pub(crate) mod amount;
pub(crate) mod balance;
pub(crate) mod call;
pub(crate) mod catch_up;
pub(crate) mod config;
pub(crate) mod documents;
pub(crate) mod follow_up;
pub(crate) mod home;
pub(crate) mod interruption;
pub(crate) mod json_line;
pub(crate) mod mcp;
pub(crate) mod money;
pub(crate) mod payment;
pub(crate) mod percent;
pub(crate) mod plans;
pub(crate) mod private_file;
pub(crate) mod profile;
pub(crate) mod rotate;
pub(crate) mod routes;
pub(crate) mod session;
pub(crate) mod signup;
pub(crate) mod signup_pay;
pub(crate) mod stream;
pub(crate) mod topup;
pub(crate) mod usage;
pub(crate) mod wallet;
