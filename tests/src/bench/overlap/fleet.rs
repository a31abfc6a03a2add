//! The processes: a `metering-server` whose flushes are delayed, and the requests through it and past it.

use std::fmt;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use serde_json::json;

use crate::bench::accounts::{Populated, verified_calls};
use crate::bench::generator::Target;
use crate::bench::sample::Sample;
use crate::bench::serving::{end, server, start};
use crate::bench::turns::{Handled, Measured};
use crate::bench::{Arguments, Failure};
use crate::load::request;
use crate::server::Server;
use crate::shim::Shim;

/// The additional time of each flush during measurements.
pub(super) const FLUSH_DELAY: Duration = Duration::from_millis(5);

/// All that runs.
#[derive(Debug)]
pub(super) struct Fleet {
    ways: Vec<Way>,
    charged: Handled,
    // Before its data and its shim, so that it ends first.
    server: Server,
    shim: Shim,
    data: Populated,
}

/// A way to the upstream.
#[derive(Debug)]
pub(super) struct Way {
    pub(super) kind: Kind,
    target: Target,
}

/// Whether a request goes through the gateway, and how it is charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It goes to the upstream alone.
    Direct,
    /// It goes through the gateway, on a free route.
    NotMetered,
    /// It is charged, and forwarded while the charge is flushed.
    Overlapping,
    /// It is charged, and forwarded after the flush.
    Waiting,
}

const KINDS: [Kind; 4] = [Kind::Direct, Kind::NotMetered, Kind::Overlapping, Kind::Waiting];

impl Fleet {
    pub(super) fn start(
        arguments: &Arguments,
        cc: &Path,
        data: Populated,
        upstream: SocketAddr,
    ) -> Result<Self, Failure> {
        let shim = Shim::build_with(cc)?;
        let routes = data.folder().join("routes.json");
        fs::write(&routes, catalogue())?;
        // SQLite opens its files under the folder's canonical name.
        let folder = data.folder().canonicalize()?;
        let setup = server(&arguments.servers()?[0], &folder)
            .args(["--upstream", &format!("http://{upstream}")])
            .args(["--catalogue".as_ref(), routes.as_os_str()]);
        let server = start(shim.under(setup, &folder))?;
        let way = |kind: Kind| {
            let address = if kind == Kind::Direct { upstream } else { server.address() };
            let requests = data.requests(|key| request("GET", kind.path(), Some(key), &[]));
            Way { kind, target: Target::new(address, requests) }
        };
        Ok(Self { ways: KINDS.map(way).into(), charged: Handled::default(), server, shim, data })
    }

    pub(super) fn ways(&self) -> &[Way] {
        &self.ways
    }

    /// Uses each key once on each way, before flushes are delayed. These responses are all awaited.
    pub(super) fn warm_up(&mut self) -> Result<(), Failure> {
        for way in &self.ways {
            let sample = way.target.warm_up().map_err(|error| format!("{}: {error}", way.kind))?;
            if way.kind.is_charged() {
                self.charged = self.charged.plus(&sample);
            }
        }
        self.shim.delay_flushes(FLUSH_DELAY);
        Ok(())
    }

    /// Measures a way, and adds the flushes of a charged one.
    ///
    /// # Errors
    /// If `measure` fails, or flushes took less than their delay.
    pub(super) fn measure(
        &self,
        way: &Way,
        measure: impl FnOnce(&Target) -> Result<Sample, Failure>,
    ) -> Result<Sample, Failure> {
        self.shim.forget_flushes();
        let sample = measure(&way.target).map_err(|error| format!("{}: {error}", way.kind))?;
        if !way.kind.is_charged() {
            return Ok(sample);
        }
        let flushes = self.shim.flushes();
        if flushes.p50 < Some(FLUSH_DELAY) {
            return Err(format!("{}: the flushes were not delayed: {flushes:?}", way.kind).into());
        }
        Ok(Sample { flushes: Some(flushes), ..sample })
    }

    /// Remembers which requests the server must have on record.
    pub(super) fn add_charged(&mut self, measured: &[Measured]) {
        let charged = self.ways.iter().zip(measured).filter(|(way, _)| way.kind.is_charged());
        self.charged = charged.fold(self.charged, |sum, (_, measured)| sum.and(measured.handled()));
    }

    /// Ends everything, and fails unless the server's records agree with the responses.
    pub(super) async fn end(self) -> Result<(), Failure> {
        self.shim.delay_flushes(Duration::ZERO);
        end(self.server)?;
        self.charged.require_recorded(verified_calls(&self.data.open()?).await?)
    }
}

impl Kind {
    fn path(self) -> &'static str {
        match self {
            Self::NotMetered => "/free",
            Self::Direct | Self::Overlapping => "/charged",
            Self::Waiting => "/charged/waiting",
        }
    }

    fn is_charged(self) -> bool {
        matches!(self, Self::Overlapping | Self::Waiting)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Direct => "upstream alone",
            Self::NotMetered => "gateway, not metered",
            Self::Overlapping => "gateway, charged",
            Self::Waiting => "gateway, charged, `\"overlap\": false`",
        })
    }
}

/// The routes of all kinds.
fn catalogue() -> String {
    let endpoints = [
        json!({"path": Kind::NotMetered.path(), "method": "GET", "metered": false}),
        json!({"path": Kind::Overlapping.path(), "method": "GET", "metered": true}),
        json!({"path": Kind::Waiting.path(), "method": "GET", "metered": true, "overlap": false}),
    ];
    json!({"market": "bench", "version": 1, "endpoints": endpoints}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use metering_core::Catalogue;

    #[test]
    fn routes_differ_in_what_their_requests_wait_for() {
        let catalogue = Catalogue::from_json(&catalogue()).unwrap();
        let found: Vec<_> =
            catalogue.routes().iter().map(|route| (&*route.template, route.metered, route.overlaps())).collect();
        let expected = [
            (Kind::NotMetered.path(), false, false),
            (Kind::Overlapping.path(), true, true),
            (Kind::Waiting.path(), true, false),
        ];
        assert_eq!(found, expected);
    }
}
