//! Proxies that ask metering before they forward: the endpoint, and real proxies with the files of `deploy/proxies`.

mod connections;
mod endpoint;
mod grpc;
mod paying;
mod proxy;
mod served;
mod settling;
mod sockets;
