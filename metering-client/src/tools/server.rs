//! The MCP server: which tools there are, and calls of them.

use std::sync::Arc;
use std::time::Duration;

use metering_core::Error;
use metering_core::wire::{ErrorBody, ErrorCode};
use rmcp::model::{
    CallToolRequestMethod, CallToolRequestParams, CallToolResponse, CallToolResult, ConstString, CustomRequest,
    CustomResult, Extensions, Implementation, InitializeResultMethod, JsonObject, ListToolsRequestMethod,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};

use super::callers::Callers;
use super::document::Document;
use super::failure::Failure;
use super::toolbox::{Purpose, Toolbox};
use super::{arguments, call};
use crate::client::Client;

/// What agents are told first.
const INSTRUCTIONS: &str = "\
Tools of a metered service. Each tool named bds_... is one HTTP route; a call is charged to the account of the API key \
that this connection uses. The price stands in the tool's description; the unit is 1/7200 credit. A call is accepted \
while the balance is above zero. Its result is {data, credit_balance, credits_charged}: the route's answer, the \
balance after the call and what it cost. get_credit_balance and list_plans are free.

A call that fails has a JSON error {error, message, ...}:
- insufficient_credits (402): the credits are used up; nothing was charged. The error lists the plans, and where to \
register a payment (topup_url). There is no tool for paying: tell the account's owner, and do not repeat the call before.
- rate_limited, too_many_streams (429): nothing was charged. Wait retry_after_sec seconds, then call again.
- invalid_parameter (400): correct the arguments as `fields` says. Nothing was charged, unless credits_charged says so.
- unauthorized (401): the key was rotated or revoked. Keys change outside of MCP; ask for the new one.
- upstream_unreachable, upstream_unavailable, upstream_timeout: the charge was taken back. Try again later.
Other errors come from the data source behind the route and may have been charged: see credits_charged.";

/// An MCP server with the tools of a catalogue. Cheap to clone; every session can have its own.
#[derive(Debug, Clone)]
pub struct McpServer {
    toolbox: Arc<Toolbox>,
    callers: Callers,
    settings: ToolSettings,
}

/// Bounds of the tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolSettings {
    /// How long a stream tool waits for its events at most, counted from the call.
    pub stream_wait: Duration,
}

impl Default for ToolSettings {
    /// 45 seconds for streams: clients are known to give up after 60.
    fn default() -> Self {
        Self { stream_wait: Duration::from_secs(45) }
    }
}

impl McpServer {
    /// A server of these tools to these callers. Usage records will name them `mcp`.
    #[must_use]
    pub fn new(toolbox: Arc<Toolbox>, callers: Callers, settings: ToolSettings) -> Self {
        Self { toolbox, callers: callers.as_mcp(), settings }
    }

    async fn call(&self, purpose: Purpose, arguments: &JsonObject, caller: &Extensions) -> CallToolResult {
        let client = self.callers.client(caller);
        let outcome = match purpose {
            Purpose::Route(index) => self.call_route(&client, index, arguments).await,
            Purpose::Balance => Self::get(&client, "/credits/balance", arguments, true).await,
            Purpose::Plans => Self::get(&client, "/credits/plans", arguments, false).await,
        };
        match outcome {
            Ok(result) => result,
            Err(Stopped::Before(body)) => Document::from(&*body).into_error(),
            Err(Stopped::Failed(failure)) => {
                if let Some(fault) = failure.fault() {
                    tracing::warn!(%fault, "a tool call came to nothing");
                }
                failure.into_result(self.callers.are_local())
            }
        }
    }

    async fn call_route(
        &self,
        client: &Client,
        index: usize,
        arguments: &JsonObject,
    ) -> Result<CallToolResult, Stopped> {
        require_key(client)?;
        let catalogue = self.toolbox.catalogue();
        let route = &catalogue.routes()[index];
        let asked = arguments::read(catalogue, route, arguments)?;
        Ok(call::route(client, route, &asked, self.settings.stream_wait).await?)
    }

    async fn get(
        client: &Client,
        target: &str,
        arguments: &JsonObject,
        with_key: bool,
    ) -> Result<CallToolResult, Stopped> {
        if with_key {
            require_key(client)?;
        }
        arguments::none(arguments)?;
        Ok(call::document(client, target).await?)
    }
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("metering", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.toolbox.tools().iter().find(|tool| tool.name == name).cloned()
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.toolbox.tools().to_vec()))
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method;
        // A method of MCP whose parameters could not be read is taken for a custom one.
        if [InitializeResultMethod::VALUE, ListToolsRequestMethod::VALUE, CallToolRequestMethod::VALUE]
            .contains(&&*method)
        {
            return Err(ErrorData::invalid_params(format!("The params of {method} are not those that MCP has."), None));
        }
        Err(ErrorData::new(rmcp::model::ErrorCode::METHOD_NOT_FOUND, method, None))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(purpose) = self.toolbox.purpose(&request.name) else {
            return Err(ErrorData::invalid_params("There is no such tool; tools/list has those there are.", None));
        };
        let arguments = request.arguments.unwrap_or_default();
        tokio::select! {
            // Dropping the call closes its request. Nobody waits for this answer.
            () = context.ct.cancelled() => Err(ErrorData::internal_error("The call was cancelled.", None)),
            result = self.call(purpose, &arguments, &context.extensions) => Ok(result.into()),
        }
    }
}

/// Why a call has no result of its route.
enum Stopped {
    /// Nothing was sent.
    Before(Box<ErrorBody>),
    /// What was sent came to nothing.
    Failed(Failure),
}

impl From<Box<ErrorBody>> for Stopped {
    fn from(body: Box<ErrorBody>) -> Self {
        Self::Before(body)
    }
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// A key that is missing is told without asking: the transport should not have let the call in.
fn require_key(client: &Client) -> Result<(), Box<ErrorBody>> {
    if client.has_key() {
        return Ok(());
    }
    Err(Box::new(ErrorBody::new(ErrorCode::Unauthorized, Error::Unauthorized.to_string())))
}
