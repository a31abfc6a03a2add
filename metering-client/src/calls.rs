//! The calls of the metering API, by subject, each declared once: the server's router and OpenAPI document are
//! generated from them. [`Client::call`](crate::Client::call) makes one.

mod access;
pub mod account;
pub mod billing;
pub mod child_accounts;
pub mod keys;
pub mod members;
pub mod oauth;
pub mod payments;
pub mod receipts;
pub mod sessions;
pub mod signup;
pub mod webhooks;
