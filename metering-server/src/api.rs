//! The metering API: a table of endpoints, and one file of handlers per resource.

mod account;
pub(crate) mod app;
mod billing;
mod device_signup;
mod email;
mod events;
mod holds;
mod keys;
pub(crate) mod openapi;
mod operations;
mod plans;
mod receipts;
mod recovery;
mod routes;
mod signup;
mod statements;
mod top_up_quotes;
mod topup;
mod webhooks;

pub(crate) use account::*;
pub(crate) use billing::*;
pub(crate) use device_signup::*;
pub(crate) use email::*;
pub(crate) use events::*;
pub(crate) use holds::*;
pub(crate) use keys::*;
pub(crate) use operations::*;
pub(crate) use plans::*;
pub(crate) use receipts::*;
pub(crate) use recovery::*;
pub(crate) use routes::{has_first_segment, is_compressed, is_everywhere, is_path, routes, takes_head};
pub(crate) use signup::*;
pub(crate) use statements::*;
pub(crate) use top_up_quotes::*;
pub(crate) use topup::*;
pub(crate) use webhooks::*;
