//! `metering stream`: the events of a stream, each as a line, as they come.

mod bounds;
mod follow;
mod line;
mod reconnects;

use std::io::{IsTerminal, Write};
use std::time::Duration;

use clap::Args;
use http::Method;
use metering_client::Client;
use metering_core::RequestPath;

use crate::client::call::target::{self, Asked, Param};
use crate::client::interruption::Interruption;
use crate::client::routes;
use crate::client::session::ProfileArgs;
use crate::client::stream::bounds::{Bounds, End, read_duration};
use crate::client::stream::follow::{Follower, Wishes};
use crate::client::stream::line::Form;
use crate::failure::Failure;

/// Follow a stream of events.
///
/// Each event's data is a line on standard output as soon as it comes. A stream is charged once per connection, however
/// long it lasts; what it was charged and what is left go to stderr. Ctrl-C is the way to end a stream without bounds,
/// and no failure; the service ending it is one, with exit code 8.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  metering stream /mpp/stream/allTrades --max-events 10
  metering stream /mpp/stream/allTrades --for 1h --reconnect --events | jq .data.block_number
  metering stream /mpp/stream/allTrades --param from_epoch=24000000")]
pub(crate) struct StreamArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    /// A path with its query, or a route of the catalogue to be filled in by --param.
    #[arg(value_name = "ROUTE")]
    route: String,
    /// A parameter of the route, in its path or its query as the catalogue says; percent-encoded as needed.
    #[arg(long = "param", value_name = "NAME=VALUE")]
    params: Vec<Param>,
    /// End after so many events.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_events: Option<u64>,
    /// End after a time, such as 30s, 5m or 1h.
    #[arg(long = "for", value_name = "DURATION", value_parser = read_duration)]
    duration: Option<Duration>,
    /// Print each event as a JSON document with its type, id and data.
    #[arg(long)]
    events: bool,
    /// Connect again when the stream breaks off, and go on after the last event; each connection is charged.
    #[arg(long)]
    reconnect: bool,
    /// Say nothing about charge and balance.
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
        let wishes = Wishes { form, reconnect: self.reconnect, quiet: self.quiet };
        Follower::new(client, target, wishes, bounds).follow(out).await
    }

    /// What to follow; found wrong before anything is charged.
    async fn target(&self, client: &Client) -> Result<String, Failure> {
        let Asked { method, target } = target::resolve(client, None, &self.route, &self.params).await?;
        if method != Method::GET {
            return Err(Failure::Usage(format!("{method} {target} is no stream: those are followed with GET")));
        }
        check_stream(client, &target).await?;
        Ok(target)
    }
}

/// Refuses a route that is no stream before it is charged for. What the catalogue does not know is the service's to say.
async fn check_stream(client: &Client, target: &str) -> Result<(), Failure> {
    let catalogue = match routes::catalogue(client).await {
        Ok(catalogue) => catalogue,
        // A service without a catalogue.
        Err(Failure::NotFound(_)) => return Ok(()),
        Err(failure) => return Err(failure),
    };
    let path = target.split_once('?').map_or(target, |(path, _)| path);
    let route = RequestPath::parse(path).ok().and_then(|path| catalogue.find("GET", &path).ok());
    match route {
        Some(route) if !route.sse => {
            Err(Failure::Usage(format!("{} is no stream; `metering call` asks for it", route.template)))
        }
        _ => Ok(()),
    }
}
