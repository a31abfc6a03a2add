//! The `metering-server` programs to measure, each on its own copy of the accounts, and nginx in front of the upstream.

use std::fs;
use std::net::SocketAddr;

use crate::bench::accounts::{Populated, verified_calls};
use crate::bench::nginx::{Nginx, config};
use crate::bench::serving::{BILLING_SECRET, BILLING_SECRET_SETTING, end, server, start};
use crate::bench::tools::Tools;
use crate::bench::turns::Handled;
use crate::bench::upstream::{Upstream, catalogue};
use crate::bench::{Arguments, Failure};
use crate::ports::free_address;
use crate::server::Server;

/// All that runs for one number of keys.
#[derive(Debug)]
pub(super) struct Fleet {
    pub(super) nginx: Option<Proxies>,
    // Before their data, so that they end first.
    pub(super) servers: Vec<Metered>,
}

/// A running `metering-server`.
#[derive(Debug)]
pub(super) struct Metered {
    /// Its program, as given; nothing if there is only one.
    pub(super) label: String,
    pub(super) server: Server,
    charged: Handled,
    data: Populated,
}

/// nginx as a plain proxy, and for each server one that has it charge.
#[derive(Debug)]
pub(super) struct Proxies {
    pub(super) nginx: Nginx,
    pub(super) plain: SocketAddr,
    pub(super) charging: Vec<SocketAddr>,
}

impl Fleet {
    pub(super) fn start(
        arguments: &Arguments,
        tools: &Tools,
        accounts: &Populated,
        upstream: &Upstream,
        bodies: &[usize],
    ) -> Result<Self, Failure> {
        let programs = arguments.servers()?;
        let mut servers = Vec::new();
        for program in &programs {
            let data = accounts.duplicate(&arguments.data_dir)?;
            let routes = data.folder().join("routes.json");
            fs::write(&routes, catalogue(bodies))?;
            let setup = server(program, data.folder())
                .args(["--upstream", &format!("http://{}", upstream.address())])
                .args(["--catalogue".as_ref(), routes.as_os_str()])
                .set(BILLING_SECRET_SETTING, BILLING_SECRET);
            let label = if programs.len() > 1 { format!(" ({})", program.display()) } else { String::new() };
            servers.push(Metered { label, server: start(setup)?, charged: Handled::default(), data });
        }
        let nginx = match &tools.nginx {
            Some(program) => {
                let meters = servers.iter().map(|metered| metered.server.address()).collect::<Vec<_>>();
                let plain = (free_address(), None);
                let all = [vec![plain], meters.iter().map(|meter| (free_address(), Some(*meter))).collect()].concat();
                Some(Proxies::start(program, arguments, upstream.address(), &all)?)
            }
            None => None,
        };
        Ok(Self { nginx, servers })
    }

    /// Remembers which requests a server must have on record.
    pub(super) fn add_charged(&mut self, server: usize, handled: Handled) {
        let charged = &mut self.servers[server].charged;
        *charged = charged.and(handled);
    }

    /// Ends all servers, and fails unless their records agree with the responses.
    pub(super) async fn end(self) -> Result<(), Failure> {
        drop(self.nginx);
        for Metered { server, charged, data, .. } in self.servers {
            end(server)?;
            charged.require_recorded(verified_calls(&data.open()?).await?)?;
        }
        Ok(())
    }
}

impl Proxies {
    /// Starts a server for each address: a plain proxy, or one that charges with that meter.
    fn start(
        program: &std::path::Path,
        arguments: &Arguments,
        upstream: SocketAddr,
        all: &[(SocketAddr, Option<SocketAddr>)],
    ) -> Result<Self, Failure> {
        let block = |(listen, meter): &(SocketAddr, Option<SocketAddr>)| {
            let block = match meter {
                None => config::proxy(*listen, upstream),
                Some(meter) => config::charging_proxy(*listen, upstream, *meter, BILLING_SECRET),
            };
            (*listen, block)
        };
        let blocks: Vec<_> = all.iter().map(block).collect();
        let nginx = Nginx::proxies(program, &arguments.data_dir, &blocks)?;
        let charging = all.iter().filter(|(_, meter)| meter.is_some()).map(|(listen, _)| *listen).collect();
        Ok(Self { plain: nginx.address(), nginx, charging })
    }
}
