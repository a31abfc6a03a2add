//! The transport beneath the handlers: the accept loop, bodies in, replies out.

mod body;
mod listener;
mod problem;
mod reply;

pub(crate) use body::read_capped;
pub(crate) use listener::{Listener, PeerAddress, Shutdown};
pub(crate) use problem::Problem;
pub(crate) use reply::{Reply, Response, bytes, json, whole, with_headers};
