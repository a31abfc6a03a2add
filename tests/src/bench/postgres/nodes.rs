//! Charges over HTTP: one and three nodes of the real server on the same database.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::accounts::Accounts;
use super::measured::Measured;
use crate::bench::Failure;
use crate::bench::generator::require_success;
use crate::bench::http::PATH;
use crate::bench::serving::{end, server, start};
use crate::load::{LoadPlan, Stop, request, run};
use crate::server::Server;

/// The requests: the same route with each key.
pub(super) struct KeyedRequests(Arc<[Vec<u8>]>);

pub(super) fn keyed_requests(accounts: &Accounts) -> KeyedRequests {
    KeyedRequests(accounts.keys.iter().map(|key| request("GET", PATH, Some(key.expose()), &[])).collect())
}

impl KeyedRequests {
    /// Sends requests over `connections` connections in all, and continues with the account after the last one charged.
    pub(super) fn run(
        &self,
        accounts: &Accounts,
        addresses: &[SocketAddr],
        connections: usize,
        time: Duration,
    ) -> Result<Measured, Failure> {
        let measured =
            self.send(addresses, connections, Stop::After(time), accounts.next_account.load(Ordering::Relaxed))?;
        accounts.next_account.fetch_add(usize::try_from(measured.charges)?, Ordering::Relaxed);
        Ok(measured)
    }

    fn send(&self, to: &[SocketAddr], connections: usize, stop: Stop, first: usize) -> Result<Measured, Failure> {
        let address = *to.first().ok_or("there is no node")?;
        let plan = LoadPlan::new(address, connections, stop, Arc::clone(&self.0));
        let result = require_success(run(LoadPlan { addresses: to.to_vec(), first, ..plan }))?;
        let (charges, per_second) = (result.responses(), result.requests_per_second());
        Ok(Measured { charges, per_second, latencies: result.latencies })
    }
}

/// Three nodes; load can also go to the first one alone.
pub(super) struct Nodes {
    // In this order: the servers end before their folder is deleted.
    nodes: Vec<Server>,
    keyed_requests: KeyedRequests,
    _folder: tempfile::TempDir,
}

impl Nodes {
    pub(super) fn start(program: &Path, accounts: &Accounts) -> Result<Self, Failure> {
        let folder = tempfile::tempdir()?;
        let start = |number: usize| {
            let data = folder.path().join(number.to_string());
            start(server(program, &data).set("METERING_DATABASE", &accounts.url()))
        };
        Ok(Self {
            nodes: (0..3).map(start).collect::<Result<_, _>>()?,
            keyed_requests: keyed_requests(accounts),
            _folder: folder,
        })
    }

    /// Sends requests to the first `nodes` nodes over `connections` connections in all.
    pub(super) fn run(
        &self,
        accounts: &Accounts,
        nodes: usize,
        connections: usize,
        time: Duration,
    ) -> Result<Measured, Failure> {
        let addresses: Vec<_> = self.nodes.iter().take(nodes).map(Server::address).collect();
        self.keyed_requests.run(accounts, &addresses, connections, time)
    }

    /// Uses each key once on each node, because a node looks a key up on first use. Returns the number of charges.
    pub(super) fn charge_each_once(&self, connections: usize) -> Result<u64, Failure> {
        let (mut charges, keys) = (0, u64::try_from(self.keyed_requests.0.len())?);
        for node in &self.nodes {
            charges += self.keyed_requests.send(&[node.address()], connections, Stop::AfterRequests(keys), 0)?.charges;
        }
        Ok(charges)
    }

    pub(super) fn end(self) -> Result<(), Failure> {
        self.nodes.into_iter().try_for_each(end)
    }
}
