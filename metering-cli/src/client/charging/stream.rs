//! `metering stream`: prints the events of a stream as they arrive, one per line.

mod bounds;
mod follow;
mod line;
mod retry;

use std::io::{IsTerminal, Write};
use std::time::Duration;

use clap::Args;
use http::Method;
use metering_client::Client;

use crate::client::catalogue::routes;
use crate::client::charging::call::target::{self, Param, RequestTarget};
use crate::client::charging::stream::bounds::{Bounds, End, read_duration};
use crate::client::charging::stream::follow::{Follower, Options};
use crate::client::charging::stream::line::Form;
use crate::client::session::ProfileArgs;
use crate::client::session::interruption::Interruption;
use crate::failure::Failure;

/// Follow an event stream.
///
/// Prints each event's data as one line on standard output as soon as it arrives. A stream is charged once per
/// connection, however long it lasts; the charge and the balance go to stderr. Without --max-events and --for, stop
/// with Ctrl-C, which is not a failure. If the service ends the stream, the exit code is 8.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  metering stream /mpp/stream/allTrades --max-events 10
  metering stream /mpp/stream/allTrades --for 1h --reconnect --events | jq .data.block_number
  metering stream /mpp/stream/allTrades --param from_epoch=24000000")]
pub(crate) struct StreamArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    /// A path with its query, or a route of the catalogue whose parameters --param fills in.
    #[arg(value_name = "ROUTE")]
    route: String,
    /// A parameter of the route, for its path or query as the catalogue says; percent-encoded as needed.
    #[arg(long = "param", value_name = "NAME=VALUE")]
    params: Vec<Param>,
    /// Stop after this many events.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_events: Option<u64>,
    /// Stop after this time, such as 30s, 5m or 1h.
    #[arg(long = "for", value_name = "DURATION", value_parser = read_duration)]
    duration: Option<Duration>,
    /// Print each event as a JSON document with its type, id and data.
    #[arg(long)]
    events: bool,
    /// Reconnect when the stream breaks off, and resume after the last event; each connection is charged.
    #[arg(long)]
    reconnect: bool,
    /// Do not print the charge and the balance.
    #[arg(long, short)]
    quiet: bool,
}

impl StreamArgs {
    pub(crate) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let session = self.profile.open()?;
        let client = session.client()?;
        let mut bounds = Bounds::new(Interruption::watch()?, self.max_events, self.duration);
        let target = match bounds.wait_for(self.target(&session.anonymous())).await {
            Ok(target) => target?,
            Err(End::Reached) => return Ok(()),
            Err(End::Interrupted) => return Err(Failure::Interrupted("stopped; nothing was charged".to_owned())),
        };
        let form = Form { events: self.events, terminal: std::io::stdout().is_terminal() };
        let options = Options { form, reconnect: self.reconnect, quiet: self.quiet };
        Follower::new(client, target, options, bounds).follow(out).await
    }

    /// The target to follow, checked before anything is charged.
    async fn target(&self, client: &Client) -> Result<String, Failure> {
        let RequestTarget { method, target, .. } = target::resolve(client, None, &self.route, &self.params).await?;
        if method != Method::GET {
            return Err(Failure::Usage(format!(
                "{method} {target} is not a stream: streams use GET; for events of another method, use `metering call`"
            )));
        }
        check_stream(client, &target).await?;
        Ok(target)
    }
}

/// Rejects a route that is not a stream before it is charged. Routes missing from the catalogue are left to the
/// service.
async fn check_stream(client: &Client, target: &str) -> Result<(), Failure> {
    let catalogue = match routes::catalogue(client).await {
        Ok(catalogue) => catalogue,
        // A service without a catalogue.
        Err(Failure::NotFound(_)) => return Ok(()),
        Err(failure) => return Err(failure),
    };
    let path = target.split_once('?').map_or(target, |(path, _)| path);
    let route = catalogue.path(path).ok().and_then(|path| catalogue.find("GET", &path).ok());
    match route {
        Some(route) if route.websocket => Err(Failure::Usage(format!(
            "{} takes WebSocket connections: use a client for those, with the key in the header Authorization",
            route.template
        ))),
        Some(route) if !route.sse => {
            Err(Failure::Usage(format!("{} is not a stream; use `metering call`", route.template)))
        }
        _ => Ok(()),
    }
}
