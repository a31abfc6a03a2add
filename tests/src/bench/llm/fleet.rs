//! The processes: nginx as a plain proxy, and a `metering-server`, and the requests through each.

use std::fmt;
use std::fs;
use std::net::SocketAddr;

use super::upstream::{self, EVENTS};
use crate::bench::accounts::{Populated, verified_calls};
use crate::bench::generator::Target;
use crate::bench::nginx::{Nginx, config};
use crate::bench::sample::Sample;
use crate::bench::serving::{end, server, start};
use crate::bench::tools::Tools;
use crate::bench::turns::{Handled, Measured};
use crate::bench::{Arguments, Failure};
use crate::load::{request, request_with_json};
use crate::ports::free_address;
use crate::server::Server;

/// All that runs.
#[derive(Debug)]
pub(super) struct Fleet {
    ways: Vec<Way>,
    charged: Handled,
    _nginx: Option<Nginx>,
    // Before its data, so that it ends first.
    server: Server,
    data: Populated,
}

/// A request and its way to the upstream.
#[derive(Debug)]
pub(super) struct Way {
    pub(super) request: Request,
    pub(super) place: Place,
    target: Target,
    /// The server processes between client and upstream.
    processes: Vec<u32>,
}

/// What is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Request {
    /// A language model's streamed response.
    Chat,
    /// A long document.
    Document,
}

/// The place of the cost in the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// No checks: nginx only forwards.
    Nginx,
    /// Nowhere: the price is fixed.
    Fixed,
    /// In a header.
    Header,
    /// In the body.
    Body,
}

const WAYS: [(Request, Place); 6] = [
    (Request::Chat, Place::Nginx),
    (Request::Chat, Place::Body),
    (Request::Document, Place::Nginx),
    (Request::Document, Place::Fixed),
    (Request::Document, Place::Header),
    (Request::Document, Place::Body),
];

impl Fleet {
    pub(super) fn start(
        arguments: &Arguments,
        tools: &Tools,
        data: Populated,
        upstream: SocketAddr,
    ) -> Result<Self, Failure> {
        let routes = data.folder().join("routes.json");
        fs::write(&routes, upstream::catalogue()?)?;
        let setup = server(&arguments.servers()?[0], data.folder())
            .args(["--upstream", &format!("http://{upstream}")])
            .args(["--catalogue".as_ref(), routes.as_os_str()]);
        let server = start(setup)?;
        // A stream needs each event immediately, but a document costs less when it is buffered.
        let (chats, documents) = (free_address(), free_address());
        let servers = [(chats, config::stream_proxy(chats, upstream)), (documents, config::proxy(documents, upstream))];
        let nginx = match &tools.nginx {
            Some(program) => Some(Nginx::proxies(program, &arguments.data_dir, &servers)?),
            None => None,
        };
        let mut ways = Vec::new();
        for (request, place) in WAYS {
            let (address, processes) = match (place, &nginx) {
                (Place::Nginx, Some(nginx)) => match request {
                    Request::Chat => (chats, nginx.processes()),
                    Request::Document => (documents, nginx.processes()),
                },
                (Place::Nginx, None) => continue,
                _ => (server.address(), vec![server.id()]),
            };
            let target = Target::new(address, data.requests(|key| request.with_key(key, place)));
            ways.push(Way { request, place, target, processes });
        }
        Ok(Self { ways, charged: Handled::default(), _nginx: nginx, server, data })
    }

    pub(super) fn ways(&self) -> &[Way] {
        &self.ways
    }

    /// Uses each key once on each way. These responses are all awaited.
    pub(super) fn warm_up(&mut self) -> Result<(), Failure> {
        for way in &self.ways {
            let sample = way.measure(Target::warm_up)?;
            if way.is_charged() {
                self.charged = self.charged.plus(&sample);
            }
        }
        Ok(())
    }

    /// Remembers which requests the server must have on record.
    pub(super) fn add_charged(&mut self, measured: &[Measured]) {
        let charged = self.ways.iter().zip(measured).filter(|(way, _)| way.is_charged());
        self.charged = charged.fold(self.charged, |sum, (_, measured)| sum.and(measured.handled()));
    }

    /// Ends everything, and fails unless the server's records agree with the responses.
    pub(super) async fn end(self) -> Result<(), Failure> {
        end(self.server)?;
        self.charged.require_recorded(verified_calls(&self.data.open()?).await?)
    }
}

impl Request {
    fn with_key(self, key: &str, place: Place) -> Vec<u8> {
        match (self, place) {
            (Self::Chat, _) => request_with_json("POST", upstream::CHAT, Some(key), &[], &upstream::chat_request()),
            (Self::Document, Place::Header) => request("GET", upstream::IN_HEADER, Some(key), &[]),
            (Self::Document, Place::Body) => request("GET", upstream::IN_BODY, Some(key), &[]),
            (Self::Document, Place::Nginx | Place::Fixed) => request("GET", upstream::FIXED, Some(key), &[]),
        }
    }
}

impl Way {
    /// Measures, and adds the processor time of the processes in between.
    pub(super) fn measure(&self, measure: impl FnOnce(&Target) -> Result<Sample, Failure>) -> Result<Sample, Failure> {
        let sample = Sample::with_processor_time(&self.processes, || measure(&self.target));
        sample.map_err(|error| format!("{self}: {error}").into())
    }

    fn is_charged(&self) -> bool {
        self.place != Place::Nginx
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.request {
            Request::Chat => write!(f, "LLM: 2 kB request, {EVENTS} SSE events, ")?,
            Request::Document => f.write_str("64 kB body, ")?,
        }
        f.write_str(match (self.request, self.place) {
            (_, Place::Nginx) => "nginx as a plain proxy",
            (Request::Chat, _) => "hold and capture",
            (_, Place::Fixed) => "charged, without a report",
            (_, Place::Header) => "charged, with a report in a header",
            (_, Place::Body) => "charged, with a report in the body",
        })
    }
}
