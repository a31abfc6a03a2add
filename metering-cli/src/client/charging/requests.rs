//! `metering requests`: requests whose cost was not known when they were accepted.

use std::io::Write;

use clap::{Args, Subcommand};
use metering_client::calls::account::{GetRequest, ListHeldRequests, OfRequest};
use metering_core::charging::HoldId;
use metering_core::wire::RequestsDocument;

use crate::client::session::documents::Document;
use crate::client::session::options::CallOptions;
use crate::failure::Failure;
use crate::output::notice;
use crate::requests;

/// The maximum number of requests that the service lists.
const MOST: usize = 100;

/// List the requests whose credits are held, newest first, or show one.
///
/// A route priced by usage costs what its response reports, so the service holds credits until it knows the cost. The
/// key needs the scope read to list requests; without it, it can show its own.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  metering requests
  metering requests --json
  metering requests show req_0123456789abcdef0123456789abcdef"
)]
pub(crate) struct RequestsArgs {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    options: CallOptions,
}

#[derive(Debug, Subcommand)]
enum Command {
    Show(ShowArgs),
}

/// Show a request: its held credits or its cost, and why.
#[derive(Debug, Args)]
#[command(after_help = "\
Responses have the id in the header X-BDS-Request-Id or X-Request-Id. Requests that held credits can be shown for a day
after they were settled, others while they are among the account's recent activity.

Examples:
  metering requests show req_0123456789abcdef0123456789abcdef
  metering requests show req_0123456789abcdef0123456789abcdef --json")]
struct ShowArgs {
    /// The request's id.
    #[arg(value_name = "REQUEST")]
    id: HoldId,
    #[command(flatten)]
    options: CallOptions,
}

impl RequestsArgs {
    pub(crate) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        if let Some(Command::Show(args)) = self.command {
            return args.run(out).await;
        }
        let client = self.options.client()?;
        let document: Document<RequestsDocument> = Document::of(client.call::<ListHeldRequests>(&(), &()).await?)?;
        if self.options.json() {
            document.write_json(out)?;
        } else {
            requests::write_list(out, &document.content.data)?;
        }
        out.flush()?;
        if document.content.data.len() >= MOST {
            notice(&format!("These are the newest {MOST}; there may be more."));
        }
        Ok(())
    }
}

impl ShowArgs {
    async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let of = OfRequest { id: self.id.to_string() };
        self.options.call::<GetRequest>(&of, &(), out, |request, out| requests::write(out, &[], request)).await
    }
}
