//! The MCP server: lists the tools, reports when the list changes, and runs calls.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use metering_core::access::Scope;
use metering_core::wire::{ErrorBody, ErrorCode};
use metering_core::{Catalogue, Error};
use rmcp::model::{
    CacheScope, CallToolRequestMethod, CallToolRequestParams, CallToolResponse, CallToolResult, ConstString,
    CustomRequest, CustomResult, DiscoverRequestMethod, DiscoverResult, Implementation, InitializeRequestParams,
    InitializeResult, InitializeResultMethod, JsonObject, ListToolsRequestMethod, ListToolsResult, MetaObject,
    PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig, SubscriptionFilter,
    SubscriptionsListenRequestMethod, Tool,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::json;
use tokio::sync::watch;

use super::callers::Callers;
use super::document::Document;
use super::failure::Failure;
use super::payment::{CalledTool, Mpp, Payment};
use super::toolbox::{Purpose, Toolbox};
use super::{arguments, call, receipt};
use crate::client::Client;

/// The instructions that agents get first; `{ROUTE_TOOLS}` is replaced by how to recognise route tools.
const INSTRUCTIONS: &str = "\
Tools of a metered service. {ROUTE_TOOLS} is one HTTP route; a call is charged to the account of the API key \
that this connection uses, or paid with the call. The argument max_cost bounds what it costs; the argument body of some \
tools is the request's body, which is sent as JSON. The tool's description states the price; the unit is 1/7200 credit. \
A call is accepted while the balance is above zero and, if its price depends on use, covers what is held. Its result is \
{data, credit_balance, credits_charged}: the route's response, the balance after the call and what it cost; while its \
cost is not known, it has credits_held and request_id instead of credits_charged. get_credit_balance and list_plans are free.

A call that fails returns a JSON error {error, message, ...}:
- insufficient_credits (402): too few credits left; nothing was charged. The error lists the plans and says where to \
register a payment (topup_url). If it has `accepts`, a client of x402 can pay one of these with the call, in \
_meta, as x402/payment. Otherwise tell the account's owner, and do not call again until they have paid.
- payment_required (402): the connection has no key; pay one of `accepts` with the call.
- payment_refused (402): nothing was taken. settlement_pending (503): the payment is in progress; call again with the \
same payment, and do not pay again. settlement_unavailable (503): nothing was taken; try again later. \
payment_credited (409): its credits are in the account; call without it.
- max_cost_exceeded (412): the call would cost more than its argument max_cost; nothing was charged or paid.
- key_budget_exhausted (402): the budget of this key does not cover the price; nothing was charged. If there is \
resets_at, call again after it, or call something cheaper; otherwise ask whoever gave you the key to raise its limit.
- key_scope, key_network (403): this key may not do that, or not from here; nothing was charged. Calling again does not \
help: use other tools, or ask whoever gave you the key.
- rate_limited, too_many_requests_in_flight, too_many_streams (429): nothing was charged. Wait retry_after_sec seconds, \
then call again.
- invalid_parameter (400): correct the arguments as `fields` says; places in the body are JSON pointers, such as \
/messages/0/role. Nothing was charged, unless credits_charged says so.
- unauthorized, key_expired (401): the key was rotated or revoked, or has expired. Keys are changed outside MCP; ask the owner for the new one.
- upstream_unreachable, upstream_unavailable, upstream_timeout: the charge was refunded. Try again later.
Other errors come from the data source behind the route; the call may have been charged: see credits_charged.";

/// The versions of the protocol that this serves. 2025-03-26 is not among them: it has batches, which this does not
/// accept.
const VERSIONS: &[ProtocolVersion] = &[
    ProtocolVersion::V_2024_11_05,
    ProtocolVersion::V_2025_06_18,
    ProtocolVersion::V_2025_11_25,
    ProtocolVersion::V_2026_07_28,
];

/// How long clients may keep the list of tools, in milliseconds. It is the same for every caller, so they may share it.
const CACHE_MS: u64 = 60_000;

/// The server's name.
const NAME: &str = "metering";

/// The member of a result's `_meta` that names the server.
const SERVER_INFO_META: &str = "io.modelcontextprotocol/serverInfo";

/// An MCP server with the tools of a catalogue. Cheap to clone; each session can have its own. Clones share the tools.
#[derive(Debug, Clone)]
pub struct McpServer {
    toolbox: watch::Sender<Arc<Toolbox>>,
    callers: Callers,
    settings: ToolSettings,
}

/// Limits of the tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolSettings {
    /// The longest that a stream tool waits for events, counted from the start of the call.
    pub stream_wait: Duration,
}

impl Default for ToolSettings {
    /// 45 seconds for streams, because some clients time out after 60.
    fn default() -> Self {
        Self { stream_wait: Duration::from_secs(45) }
    }
}

impl McpServer {
    /// Serves these tools to these callers. Usage records name them `mcp`.
    #[must_use]
    pub fn new(toolbox: Arc<Toolbox>, callers: Callers, settings: ToolSettings) -> Self {
        Self { toolbox: watch::Sender::new(toolbox), callers: callers.as_mcp(), settings }
    }

    /// Serves other tools from now on, in open sessions too, and notifies the clients that subscribed to changes, if the
    /// list is another. Calls in progress are not affected.
    pub fn replace_tools(&self, toolbox: Arc<Toolbox>) {
        self.toolbox.send_if_modified(|current| {
            let changes = current.tools() != toolbox.tools();
            *current = toolbox;
            changes
        });
    }

    /// The scope that a key needs for a tool; `None` if every key may use it, or there is no such tool.
    #[must_use]
    pub fn scope_of(&self, tool: &str) -> Option<Scope> {
        match self.toolbox().purpose(tool)? {
            Purpose::Route(_) => Some(Scope::Call),
            Purpose::Balance => Some(Scope::Read),
            Purpose::Plans => None,
        }
    }

    fn toolbox(&self) -> Arc<Toolbox> {
        Arc::clone(&self.toolbox.borrow())
    }

    fn instructions(&self) -> String {
        let route_tools = match self.toolbox().prefix().as_str() {
            "" => "Each tool except get_credit_balance and list_plans".to_owned(),
            prefix => format!("Each tool named {prefix}..."),
        };
        INSTRUCTIONS.replace("{ROUTE_TOOLS}", &route_tools)
    }

    async fn call(
        &self,
        toolbox: &Toolbox,
        purpose: Purpose,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        let none = JsonObject::new();
        let arguments = request.arguments.as_ref().unwrap_or(&none);
        let client = match self.callers.client(&context.extensions) {
            Ok(client) => client,
            Err(error) => return Ok(Document::from(&error.body()).into_error()),
        };
        let client = match receipt::asking(client, context) {
            Ok(client) => client,
            Err(body) => return Ok(Document::from(&*body).into_error()),
        };
        let mpp = Mpp::of(context);
        let payment = match purpose {
            Purpose::Route(_) => Payment::read(&context.meta),
            // These are free.
            Purpose::Balance | Purpose::Plans => Ok(Payment::default()),
        };
        let payment = match payment {
            Ok(payment) => payment,
            Err(body) => return mpp.unreadable(&body),
        };
        let outcome = match purpose {
            Purpose::Route(index) => self.call_route(toolbox.catalogue(), &client, index, arguments, &payment).await,
            Purpose::Balance => Self::get(&client, "/credits/balance", arguments, true).await,
            Purpose::Plans => Self::get(&client, "/credits/plans", arguments, false).await,
        };
        match outcome {
            Ok(result) => Ok(result),
            Err(Stopped::Before(body)) => Ok(Document::from(&*body).into_error()),
            Err(Stopped::Failed(failure)) => {
                if let Some(fault) = failure.fault() {
                    tracing::warn!(%fault, "a tool call failed");
                }
                let tool = CalledTool { name: &request.name, priced: toolbox.priced_for(purpose) };
                mpp.refused(failure.into_result(tool, &payment, self.callers.are_local()))
            }
        }
    }

    async fn call_route(
        &self,
        catalogue: &Catalogue,
        client: &Client,
        index: usize,
        arguments: &JsonObject,
        payment: &Payment,
    ) -> Result<CallToolResult, Stopped> {
        let route = &catalogue.routes()[index];
        let request = arguments::read(catalogue, route, arguments)?;
        Ok(call::route(client, route, &request, payment, self.settings.stream_wait).await?)
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
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build())
            .with_server_info(Implementation::new(NAME, env!("CARGO_PKG_VERSION")))
            .with_instructions(self.instructions())
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(VERSIONS)
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let mut result = self.negotiate_initialize(&request)?;
        if request.protocol_version == ProtocolVersion::V_2025_03_26 {
            // Clients of that version support the previous one, but may not support any later one.
            result.protocol_version = ProtocolVersion::V_2024_11_05;
        }
        // Changes are sent on subscriptions, which the versions with this handshake do not have.
        if let Some(tools) = &mut result.capabilities.tools {
            tools.list_changed = None;
        }
        context.peer.set_peer_info(request);
        Ok(result)
    }

    async fn discover(&self, _context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let result = DiscoverResult::from_server_info(VERSIONS.to_vec(), self.get_info());
        Ok(result.with_ttl_ms(CACHE_MS).with_cache_scope(CacheScope::Public))
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        // rmcp removes the parts that the capabilities do not have.
        Some(requested.clone())
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let mut toolbox = self.toolbox.subscribe();
        let is_wanted = subscription.accepted().tools_list_changed == Some(true);
        loop {
            tokio::select! {
                () = subscription.cancelled() => return Ok(()),
                _ = toolbox.changed(), if is_wanted => {
                    if subscription.sink().notify_tool_list_changed().await.is_err() {
                        return Ok(());
                    }
                }
            }
        }
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.toolbox().tools().iter().find(|tool| tool.name == name).cloned()
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut list = ListToolsResult::with_all_items(self.toolbox().tools().to_vec());
        if is_stateless(&context) {
            name_server(&mut list.meta);
            list = list.with_ttl_ms(CACHE_MS).with_cache_scope(CacheScope::Public);
        }
        Ok(list)
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method;
        // rmcp treats an MCP method whose parameters it cannot parse as a custom one.
        let methods = [
            InitializeResultMethod::VALUE,
            DiscoverRequestMethod::VALUE,
            ListToolsRequestMethod::VALUE,
            CallToolRequestMethod::VALUE,
            SubscriptionsListenRequestMethod::VALUE,
        ];
        if methods.contains(&&*method) {
            return Err(ErrorData::invalid_params(format!("The params of {method} are not valid in MCP."), None));
        }
        Err(ErrorData::new(rmcp::model::ErrorCode::METHOD_NOT_FOUND, method, None))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let toolbox = self.toolbox();
        let Some(purpose) = toolbox.purpose(&request.name) else {
            return Err(ErrorData::invalid_params("No such tool; tools/list lists the available tools.", None));
        };
        tokio::select! {
            // Dropping the call closes its request. No caller waits for this response.
            () = context.ct.cancelled() => Err(ErrorData::internal_error("The call was cancelled.", None)),
            result = self.call(&toolbox, purpose, &request, &context) => result.map(|mut result| {
                if is_stateless(&context) {
                    name_server(&mut result.meta);
                }
                CallToolResponse::from(result)
            }),
        }
    }
}

/// Whether a request is of MCP 2026-07-28 or newer, in which requests are independent.
fn is_stateless(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| !version.has_initialize())
}

/// Puts the server's name into `_meta` of a result, because clients without a handshake have no other way to learn it.
fn name_server(meta: &mut Option<MetaObject>) {
    let server = json!({"name": NAME, "version": env!("CARGO_PKG_VERSION")});
    meta.get_or_insert_default().insert(SERVER_INFO_META.to_owned(), server);
}

/// Why a call has no result from its route.
enum Stopped {
    /// The request was rejected before it was sent.
    Before(Box<ErrorBody>),
    /// The request was sent and failed.
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

/// Rejects a call that only makes sense with a key before it is sent.
fn require_key(client: &Client) -> Result<(), Box<ErrorBody>> {
    if client.has_key() {
        return Ok(());
    }
    Err(Box::new(ErrorBody::new(ErrorCode::Unauthorized, Error::Unauthorized.to_string())))
}
