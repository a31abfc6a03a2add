//! The commands that send metered requests, each of which the service charges.

pub(crate) mod call;
pub(crate) mod catch_up;
pub(crate) mod mcp;
pub(crate) mod receipt;
pub(crate) mod requests;
mod service_keys;
pub(crate) mod signed_receipt;
pub(crate) mod statement;
pub(crate) mod stream;
