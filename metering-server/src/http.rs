//! The HTTP transport: the accept loop, connection limits, request bodies and replies.

mod body;
mod client_address;
mod client_stream;
mod compression;
mod connection;
mod connections;
mod cross_origin;
pub(crate) mod csv;
mod descriptors;
mod event_stream;
mod json;
mod listener;
mod multiplexed;
mod negotiation;
mod next_step;
mod no_oauth;
mod problem;
mod reply;
mod shutdown;
mod tls;

pub(crate) use body::read_capped;
pub(crate) use client_address::ClientAddress;
pub(crate) use compression::{Document, compressed};
pub(crate) use connection::Connection;
pub(crate) use cross_origin::CrossOrigin;
pub(crate) use descriptors::connections_that_fit;
pub(crate) use event_stream::EventStream;
pub(crate) use json::json;
pub(crate) use listener::Listener;
pub(crate) use negotiation::{accepts_json, prefers_html};
pub(crate) use no_oauth::no_oauth;
pub(crate) use problem::Problem;
pub(crate) use reply::{Reply, Response, ResponseFuture, bytes, into_response, with_headers, without_body};
pub(crate) use shutdown::Shutdown;
pub(crate) use tls::{Certificates, Tls};
