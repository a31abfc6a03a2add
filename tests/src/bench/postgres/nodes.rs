//! Charges over HTTP: the real server, once and three times, on the same database.

use std::sync::Arc;
use std::time::Duration;

use super::Measured;
use super::accounts::Accounts;
use crate::bench::Failure;
use crate::bench::http::{PATH, require_success};
use crate::bench::serving::end;
use crate::load::{LoadPlan, Stop, request, run};
use crate::program;
use crate::server::{Server, ServerSetup};

/// Three nodes, of which one alone can be asked too.
pub(super) struct Nodes {
    // In this order: the servers end before their folder is removed.
    nodes: Vec<Server>,
    requests: Arc<[Vec<u8>]>,
    _folder: tempfile::TempDir,
}

impl Nodes {
    pub(super) fn start(accounts: &Accounts) -> Result<Self, Failure> {
        program::find("metering-server")?;
        let folder = tempfile::tempdir()?;
        let start = |number: usize| {
            let data = folder.path().join(number.to_string());
            ServerSetup::new(&data, "127.0.0.1:0").set("METERING_DATABASE", &accounts.url()).start()
        };
        let nodes = (0..3).map(start).collect();
        let requests = accounts.keys.iter().map(|key| request("GET", PATH, Some(key.expose()), &[])).collect();
        Ok(Self { nodes, requests, _folder: folder })
    }

    /// Asks the first so many nodes over so many connections in all.
    pub(super) fn run(&self, nodes: usize, connections: usize, time: Duration) -> Result<Measured, Failure> {
        let addresses: Vec<_> = self.nodes.iter().take(nodes).map(Server::address).collect();
        let first = *addresses.first().ok_or("there is no node")?;
        let plan = LoadPlan::new(first, connections, Stop::After(time), Arc::clone(&self.requests));
        let result = require_success(run(LoadPlan { addresses, ..plan }))?;
        let (charges, per_second) = (result.responses(), result.requests_per_second());
        Ok(Measured { charges, per_second, latencies: result.latencies })
    }

    pub(super) fn end(self) -> Result<(), Failure> {
        self.nodes.into_iter().try_for_each(end)
    }
}
