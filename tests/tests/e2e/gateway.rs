//! The gateway: what it forwards to the upstream, and what comes back.

mod bodies;
mod body_budget;
mod client_address;
mod disconnects;
mod early_refusals;
mod forwarding;
mod holds;
mod paths;
mod public_address;
mod resold;
mod responses;
mod sockets;
mod streams;
mod tls;
mod upstreams;
