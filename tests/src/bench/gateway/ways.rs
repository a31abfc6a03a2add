//! The ways to the upstream that are compared.

use super::fleet::Fleet;
use crate::bench::accounts::Populated;
use crate::bench::generator::Target;
use crate::bench::sample::Sample;
use crate::bench::upstream::{charged, free};
use crate::load::request;
use crate::process::memory;

/// A way to the upstream.
#[derive(Debug)]
pub(super) struct Way {
    pub(super) kind: Kind,
    pub(super) name: String,
    /// The index of the `metering-server` in use; 0 for none.
    pub(super) server: usize,
    pub(super) target: Target,
    /// The processes whose memory is shown.
    processes: Vec<u32>,
}

/// The program between client and upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// nginx as a plain reverse proxy: the yardstick.
    Nginx,
    /// nginx, which has our server charge each request.
    AuthRequest,
    /// Our gateway, on a free route.
    NotMetered,
    /// Our gateway, on a metered route.
    Charged,
}

impl Kind {
    /// Whether its requests are charged.
    pub(super) fn charges(self) -> bool {
        matches!(self, Self::AuthRequest | Self::Charged)
    }
}

impl Way {
    pub(super) fn with_memory(&self, sample: Sample) -> Sample {
        Sample { memory: memory(&self.processes), ..sample }
    }
}

/// All ways to a response with `body` bytes, the reference first.
pub(super) fn ways(fleet: &Fleet, accounts: &Populated, body: usize) -> Vec<Way> {
    // All ways get the same bytes, with a key, apart from the path.
    let requests = |path: String| accounts.requests(|key| request("GET", &path, Some(key), &[]));
    let (charged, free) = (requests(charged(body)), requests(free(body)));
    let mut ways = Vec::new();
    if let Some(proxies) = &fleet.nginx {
        ways.push(Way {
            kind: Kind::Nginx,
            name: "nginx, plain proxy".to_owned(),
            server: 0,
            target: Target::new(proxies.plain, charged.clone()),
            processes: proxies.nginx.processes(),
        });
    }
    for (index, metered) in fleet.servers.iter().enumerate() {
        let way = |kind, name: &str, address, requests| Way {
            kind,
            name: format!("{name}{}", metered.label),
            server: index,
            target: Target::new(address, requests),
            processes: vec![metered.server.id()],
        };
        if let Some(proxies) = &fleet.nginx {
            let name = "nginx, `auth_request` to deduct";
            ways.push(way(Kind::AuthRequest, name, proxies.charging[index], charged.clone()));
        }
        ways.push(way(Kind::NotMetered, "gateway, not metered", metered.server.address(), free.clone()));
        ways.push(way(Kind::Charged, "gateway, charged", metered.server.address(), charged.clone()));
    }
    ways
}
