//! The gateway: what it forwards to the upstream, and what comes back.

mod bodies;
mod client_address;
mod disconnects;
mod forwarding;
mod holds;
mod paths;
mod resold;
mod sockets;
mod streams;
mod tls;
