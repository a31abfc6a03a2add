//! The transport beneath the handlers: the accept loop, bodies in, replies out.

mod body;
mod client_address;
mod cross_origin;
mod listener;
mod problem;
mod reply;

pub(crate) use body::read_capped;
pub(crate) use client_address::ClientAddress;
pub(crate) use cross_origin::CrossOrigin;
pub(crate) use listener::{Listener, Shutdown};
pub(crate) use problem::Problem;
pub(crate) use reply::{Reply, Response, bytes, json, whole, with_headers};
