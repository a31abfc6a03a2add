//! The metering API: its routes as a table of contents, its handlers one file per noun.

mod account;
mod billing;
mod operations;
mod plans;
mod query;
mod routes;

pub(crate) use account::*;
pub(crate) use billing::*;
pub(crate) use operations::*;
pub(crate) use plans::*;
#[cfg(test)]
pub(crate) use routes::PATHS;
pub(crate) use routes::routes;
