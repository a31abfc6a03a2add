//! The processes for one number of keys: each proxy, plain and with authorization requests, and the `metering-server`
//! that decides them.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use crate::bench::accounts::{Populated, verified_calls};
use crate::bench::generator::Target;
use crate::bench::sample::Sample;
use crate::bench::serving::{end, server, start};
use crate::bench::tools::Tools;
use crate::bench::turns::{Handled, Measured};
use crate::bench::upstream::{Upstream, catalogue, charged};
use crate::bench::{Arguments, Failure};
use crate::load::request;
use crate::proxies::{Kind, Places, Proxy, deployed};
use crate::server::Server;

/// All that runs.
#[derive(Debug)]
pub(super) struct Fleet {
    ways: Vec<Way>,
    charged: Handled,
    // Before its data, so that it ends first.
    server: Server,
    data: Populated,
}

/// A way to the upstream.
#[derive(Debug)]
pub(super) struct Way {
    pub(super) who: Who,
    pub(super) target: Target,
    /// The processes between client and upstream.
    processes: Vec<u32>,
    /// Kept running.
    _proxy: Option<Proxy>,
}

/// The program between client and upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    /// A proxy that only forwards.
    Plain(Kind),
    /// A proxy that asks our server first, which charges.
    Asking(Kind),
    /// Envoy, which asks over gRPC.
    AskingOverGrpc,
    /// Our gateway, which charges.
    Gateway,
}

impl Who {
    /// All variants of a proxy.
    fn of(kind: Kind) -> Vec<Self> {
        let over_grpc = (kind == Kind::Envoy).then_some(Self::AskingOverGrpc);
        [Self::Plain(kind), Self::Asking(kind)].into_iter().chain(over_grpc).collect()
    }

    /// The proxy without authorization requests.
    pub(super) fn plain(self) -> Option<Self> {
        match self {
            Self::Asking(kind) => Some(Self::Plain(kind)),
            Self::AskingOverGrpc => Some(Self::Plain(Kind::Envoy)),
            Self::Plain(_) | Self::Gateway => None,
        }
    }

    /// The file of the proxy.
    fn file(self, kind: Kind) -> PathBuf {
        match self {
            Self::Plain(_) => Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bench/proxies/plain").join(kind.file()),
            Self::AskingOverGrpc => deployed("envoy-grpc.yaml"),
            Self::Asking(_) | Self::Gateway => deployed(kind.file()),
        }
    }

    fn charges(self) -> bool {
        !matches!(self, Self::Plain(_))
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(kind) => write!(f, "{}, plain proxy", kind.name()),
            Self::Asking(kind) => write!(f, "{}, asks", kind.name()),
            Self::AskingOverGrpc => f.write_str("Envoy, asks over gRPC"),
            Self::Gateway => f.write_str("gateway, charged"),
        }
    }
}

impl Fleet {
    pub(super) fn start(
        arguments: &Arguments,
        tools: &Tools,
        accounts: &Populated,
        upstream: &Upstream,
        body: usize,
    ) -> Result<Self, Failure> {
        let data = accounts.duplicate(&arguments.data_dir)?;
        let routes = data.folder().join("routes.json");
        fs::write(&routes, catalogue(&[body]))?;
        let setup = server(&arguments.servers()?[0], data.folder())
            .args(["--upstream", &format!("http://{}", upstream.address())])
            .args(["--catalogue".as_ref(), routes.as_os_str()])
            .args(["--surfaces", "metering,gateway,authorize"])
            .set("METERING_HTTP__TRUSTED_PROXIES", "127.0.0.1");
        let server = start(setup)?;
        let path = charged(body);
        let requests = accounts.requests(|key| request("GET", &path, Some(key), &[]));
        let places = places(&server, upstream);
        let mut ways = Vec::new();
        for kind in Kind::ALL {
            let Some(program) = tools.proxy(kind) else { continue };
            for who in Who::of(kind) {
                let proxy = Proxy::start(kind, program, &who.file(kind), &places)?;
                let mut processes = proxy.processes();
                if who.charges() {
                    processes.push(server.id());
                }
                let target = Target::new(proxy.address(), requests.clone());
                ways.push(Way { who, target, processes, _proxy: Some(proxy) });
            }
        }
        let target = Target::new(server.address(), requests);
        ways.push(Way { who: Who::Gateway, target, processes: vec![server.id()], _proxy: None });
        Ok(Self { ways, charged: Handled::default(), server, data })
    }

    pub(super) fn ways(&self) -> &[Way] {
        &self.ways
    }

    /// Uses each key once on each way, so that the first charge of a day is none of those measured. These responses are
    /// all awaited.
    pub(super) fn warm_up(&mut self) -> Result<(), Failure> {
        for way in &self.ways {
            let sample = way.target.warm_up().map_err(|error| format!("{}: {error}", way.who))?;
            if way.who.charges() {
                self.charged = self.charged.plus(&sample);
            }
        }
        Ok(())
    }

    /// Remembers which requests the server must have on record.
    pub(super) fn add_charged(&mut self, measured: &[Measured]) {
        let charging = self.ways.iter().zip(measured).filter(|(way, _)| way.who.charges());
        self.charged = charging.fold(self.charged, |sum, (_, measured)| sum.and(measured.handled()));
    }

    /// Ends everything, and fails unless the server's records agree with the responses.
    pub(super) async fn end(self) -> Result<(), Failure> {
        drop(self.ways);
        end(self.server)?;
        self.charged.require_recorded(verified_calls(&self.data.open()?).await?)
    }
}

impl Way {
    /// Measures, and adds the processor time of the processes in between.
    pub(super) fn with_processor_time(
        &self,
        measure: impl FnOnce() -> Result<Sample, Failure>,
    ) -> Result<Sample, Failure> {
        let sample = Sample::with_processor_time(&self.processes, measure);
        sample.map_err(|error| format!("{}: {error}", self.who).into())
    }
}

/// The upstream is the service. Connections are never closed for the number of their requests, as in the rest of the
/// benchmark.
fn places(server: &Server, upstream: &Upstream) -> Places {
    // Only nginx's files have this line, and only nginx closes them.
    let line = "    upstream service {\n";
    let endless = format!("    keepalive_requests 1000000000;\n{line}");
    Places { metering: server.address(), service: upstream.address(), texts: vec![(line, endless)] }
}
