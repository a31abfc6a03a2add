//! `metering call`: one request to a metered route, its answer as it comes.

mod body;
mod payload;
mod retry;
pub(super) mod target;

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use http::{HeaderMap, Method};
use metering_client::OpenAnswer;
use metering_core::wire::{BALANCE_HEADER, CHARGED_HEADER};

use crate::client::call::body::Destination;
use crate::client::call::payload::Payload;
use crate::client::call::retry::Patience;
use crate::client::call::target::{Asked, Param};
use crate::client::session::ProfileArgs;
use crate::failure::Failure;
use crate::output::notice;
use crate::table::printable;

/// Call a metered route and print its answer.
///
/// The answer goes to standard output as it comes, byte by byte; what it was charged and what is left go to stderr.
/// `metering routes` lists what can be called.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  metering call /mpp/ethPrice
  metering call /mpp/snapshot/allTrades/19000000 --output trades.json
  metering call \"/mpp/ethPrice/{block_number}\" --param block_number=19000000 --retry")]
pub(crate) struct CallArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    /// A path with its query, or a route of the catalogue to be filled in by --param.
    #[arg(value_name = "ROUTE")]
    route: String,
    /// A parameter of the route, in its path or its query as the catalogue says; percent-encoded as needed.
    #[arg(long = "param", value_name = "NAME=VALUE")]
    params: Vec<Param>,
    /// The HTTP method; GET unless the route or --data says otherwise.
    #[arg(long, value_name = "METHOD", value_parser = read_method)]
    method: Option<Method>,
    /// A JSON document to send: itself, @FILE, or - for standard input.
    #[arg(long, value_name = "JSON|@FILE|-")]
    data: Option<Payload>,
    /// Write the answer to a file, which appears once all of it is there.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the file if it exists.
    #[arg(long, requires = "output")]
    force: bool,
    /// Wait and ask again when a cap is reached or the service is busy; neither is charged.
    #[arg(long)]
    retry: bool,
    /// For how many seconds to wait altogether.
    #[arg(long, value_name = "SECONDS", requires = "retry", default_value_t = 300)]
    retry_limit: u64,
    /// Say nothing about charge and balance.
    #[arg(long, short)]
    quiet: bool,
}

fn read_method(text: &str) -> Result<Method, &'static str> {
    let known =
        matches!(text.to_ascii_uppercase().as_str(), "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE" | "OPTIONS");
    let method = known.then(|| Method::from_bytes(text.to_ascii_uppercase().as_bytes()).ok()).flatten();
    method.ok_or("must be GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS")
}

impl CallArgs {
    pub(crate) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let session = self.profile.open()?;
        let client = session.client()?;
        // Whatever can be wrong here is found before anything is charged.
        let mut destination = Destination::open(self.output.as_deref(), self.force, out)?;
        let payload = self.data.as_ref().map(Payload::read).transpose()?;
        let method = self.method.clone().or_else(|| payload.as_ref().map(|_| Method::POST));
        let Asked { method, target } = target::resolve(&session.anonymous(), method, &self.route, &self.params).await?;
        let mut patience =
            Patience::new(if self.retry { Duration::from_secs(self.retry_limit) } else { Duration::ZERO });
        let answer = loop {
            match client.open(method.clone(), &target, payload.clone().map(Into::into)).await {
                Ok(answer) => break answer,
                Err(error) => match patience.pause_after(&error) {
                    Some(pause) => {
                        if !self.quiet {
                            let seconds = pause.as_secs();
                            notice(&printable(&format!("{error} Trying again in {seconds} s.")));
                        }
                        tokio::time::sleep(pause).await;
                    }
                    None => return Err(error.into()),
                },
            }
        };
        let OpenAnswer { headers, body, .. } = answer;
        let received = destination.receive(body).await;
        destination.end_line()?;
        if !self.quiet {
            tell_money(&headers);
        }
        received?;
        destination.finish()
    }
}

/// Says what the answer's headers say; nothing when it was no metered route.
fn tell_money(headers: &HeaderMap) {
    let amount = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(printable);
    match (amount(CHARGED_HEADER), amount(BALANCE_HEADER)) {
        (Some(charged), Some(balance)) => notice(&format!("Charged {charged} credits; the balance is {balance}.")),
        (None, Some(balance)) => notice(&format!("The balance is {balance} credits.")),
        (Some(charged), None) => notice(&format!("Charged {charged} credits.")),
        (None, None) => {}
    }
}
