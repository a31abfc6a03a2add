//! `metering mcp`: serves the tools of the hosted MCP server to clients on this machine, over standard input and
//! output.
//!
//! Only the protocol may write to standard output. The server ends when the client closes standard input.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use clap::builder::RangedU64ValueParser;
use metering_client::tools::{Callers, McpServer, ToolSettings, Toolbox};
use rmcp::service::{QuitReason, ServerInitializeError};

use crate::client::catalogue::routes;
use crate::client::paying::arguments::PayArgs;
use crate::client::paying::transport::PayingTransport;
use crate::client::session::ProfileArgs;
use crate::failure::Failure;

/// Serve the metered routes as MCP tools over standard input and output.
///
/// For MCP clients that start their servers themselves. Calls are charged to the profile's account; the key comes from
/// the profile or from METERING_CLIENT_API_KEY. With --pay, a call that the account's credits do not cover is paid from
/// the wallet, and no key is needed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  metering mcp
  metering mcp --profile work --stream-wait 20
  metering mcp --pay --max 0.25 --daily-limit 2

In the configuration of an MCP client:
  {\"mcpServers\": {\"metering\": {\"command\": \"metering\", \"args\": [\"mcp\"]}}}")]
pub(crate) struct McpArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    /// How long a stream tool waits for events, in seconds.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 45,
        value_parser = RangedU64ValueParser::<u64>::new().range(1..=600)
    )]
    stream_wait: u64,
    #[command(flatten)]
    pay: PayArgs,
}

impl McpArgs {
    pub(crate) async fn run(self, _out: &mut dyn Write) -> Result<(), Failure> {
        let session = self.profile.open()?;
        let client = match self.pay.payer_without_prompt(&session)? {
            Some(payer) => {
                let transport = PayingTransport::new(session.transport(), session.url().clone(), payer);
                session.client_over(Arc::new(transport))
            }
            None => session.client()?,
        };
        let routes = routes::fetch(&session.anonymous()).await?;
        let toolbox = Toolbox::with_prefix(&routes.catalogue, routes.tool_prefix);
        let toolbox = toolbox.map_err(|error| Failure::Failed(error.to_string()))?;
        let settings = ToolSettings { stream_wait: Duration::from_secs(self.stream_wait) };
        let server = McpServer::new(Arc::new(toolbox), Callers::One(client), settings);
        let running = match rmcp::serve_server(server, rmcp::transport::stdio()).await {
            Ok(running) => running,
            // A client that disconnects before it sends anything is not an error.
            Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => {
                return Err(Failure::Failed(format!("the MCP client did not initialize the session: {error}")));
            }
        };
        match running.waiting().await {
            Ok(QuitReason::JoinError(error)) | Err(error) => {
                Err(Failure::Failed(format!("the MCP server failed: {error}")))
            }
            Ok(_) => Ok(()),
        }
    }
}
