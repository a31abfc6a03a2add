//! The proxies whose streams are measured: our gateway, on a metered stream, and nginx.

use std::fs;
use std::net::SocketAddr;

use serde_json::json;

use crate::bench::accounts::{Populated, require_recorded, verified_calls};
use crate::bench::nginx::{Nginx, config};
use crate::bench::serving::{end, server, start};
use crate::bench::tools::Tools;
use crate::bench::{Arguments, Failure};
use crate::load::request;
use crate::ports::free_address;
use crate::server::Server;

/// The name of the yardstick.
pub(super) const NGINX: &str = "nginx, plain proxy";
/// The name of our server.
pub(super) const GATEWAY: &str = "gateway, charged";

const PATH: &str = "/stream";
/// Connections that the server accepts besides the streams.
const SPARE_CONNECTIONS: usize = 100;

/// A running proxy.
#[derive(Debug)]
pub(super) enum Proxy {
    Nginx(Nginx),
    Gateway { server: Server, data: Populated },
}

/// A request for the stream.
pub(super) fn request_with(key: &str) -> Vec<u8> {
    request("GET", PATH, Some(key), &[])
}

impl Proxy {
    pub(super) fn start(
        name: &str,
        arguments: &Arguments,
        tools: &Tools,
        accounts: &Populated,
        upstream: SocketAddr,
        streams: usize,
    ) -> Result<Self, Failure> {
        match &tools.nginx {
            Some(program) if name == NGINX => {
                let listen = free_address();
                let block = config::stream_proxy(listen, upstream);
                Ok(Self::Nginx(Nginx::proxies(program, &arguments.data_dir, &[(listen, block)])?))
            }
            _ => Self::gateway(arguments, accounts, upstream, streams),
        }
    }

    fn gateway(
        arguments: &Arguments,
        accounts: &Populated,
        upstream: SocketAddr,
        streams: usize,
    ) -> Result<Self, Failure> {
        let data = accounts.duplicate(&arguments.data_dir)?;
        let routes = data.folder().join("routes.json");
        fs::write(&routes, catalogue())?;
        let connections = (streams + SPARE_CONNECTIONS).to_string();
        let setup = server(&arguments.servers()?[0], data.folder())
            .args(["--upstream", &format!("http://{upstream}")])
            .args(["--catalogue".as_ref(), routes.as_os_str()])
            .set("METERING_HTTP__MAX_CONNECTIONS", &connections)
            .set("METERING_HTTP__MAX_CONNECTIONS_PER_ADDRESS", &connections);
        Ok(Self::Gateway { server: start(setup)?, data })
    }

    pub(super) fn address(&self) -> SocketAddr {
        match self {
            Self::Nginx(nginx) => nginx.address(),
            Self::Gateway { server, .. } => server.address(),
        }
    }

    pub(super) fn processes(&self) -> Vec<u32> {
        match self {
            Self::Nginx(nginx) => nginx.processes(),
            Self::Gateway { server, .. } => vec![server.id()],
        }
    }

    /// Ends it, and fails unless our server charged each of `opened` streams.
    pub(super) async fn end(self, opened: usize) -> Result<(), Failure> {
        if let Self::Gateway { server, data } = self {
            end(server)?;
            require_recorded(verified_calls(&data.open()?).await?, u64::try_from(opened)?)?;
        }
        Ok(())
    }
}

fn catalogue() -> String {
    let price = json!({"type": "stream_session", "credits_per_connection": 0.01});
    let stream = json!({"path": PATH, "method": "GET", "metered": true, "sse": true, "billing_modifier": price});
    json!({"market": "bench", "version": 1, "endpoints": [stream]}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use metering_core::Catalogue;

    #[test]
    fn the_stream_is_metered() {
        let catalogue = Catalogue::from_json(&catalogue()).unwrap();
        let [route] = catalogue.routes() else { panic!("one route") };
        assert!(route.metered && &*route.template == PATH);
    }
}
