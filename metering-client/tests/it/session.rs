//! An MCP session: a real client of the tools, over a pipe.

use std::sync::Arc;
use std::time::Duration;

use metering_client::tools::{Callers, McpServer, ToolSettings, Toolbox};
use metering_core::{ApiKey, Catalogue, SystemRandomness};
use rmcp::model::{CallToolRequestParams, CallToolResult, ContentBlock, JsonObject};
use rmcp::service::RunningService;
use rmcp::{ClientHandler, RoleClient, ServerHandler, ServiceExt};
use serde_json::Value;

use crate::script::Script;

/// The server's default catalogue.
const DEFAULT_CATALOGUE: &str = include_str!("../../../metering-sample/routes.json");

/// How long stream tools wait in these tests, in which time is paused.
pub(crate) const STREAM_WAIT: Duration = Duration::from_secs(45);

/// A client of the tools. The server ends when the session does.
pub(crate) struct Session {
    pub(crate) mcp: RunningService<RoleClient, ()>,
    pub(crate) key: ApiKey,
}

pub(crate) fn default_catalogue() -> Catalogue {
    Catalogue::from_json(DEFAULT_CATALOGUE).unwrap()
}

pub(crate) fn toolbox() -> Arc<Toolbox> {
    Arc::new(Toolbox::new(&default_catalogue()).unwrap())
}

/// Connects a client to `server`, each in its own task.
pub(crate) async fn connect(server: impl ServerHandler) -> RunningService<RoleClient, ()> {
    connect_as((), server).await
}

/// Connects this client to `server`.
pub(crate) async fn connect_as<C: ClientHandler>(
    client: C,
    server: impl ServerHandler,
) -> RunningService<RoleClient, C> {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    tokio::spawn(async move { server.serve(theirs).await.unwrap().waiting().await });
    client.serve(ours).await.unwrap()
}

/// The tools of the default catalogue for one caller with a key, whose service follows the script.
pub(crate) fn server(script: &Script, key: &ApiKey) -> McpServer {
    let client = script.client().with_key(key.clone());
    McpServer::new(toolbox(), Callers::One(client), ToolSettings { stream_wait: STREAM_WAIT })
}

impl Session {
    /// A local session with a key and the tools of the default catalogue, for a service that follows the script.
    pub(crate) async fn start(script: &Script) -> Self {
        let key = ApiKey::generate(&SystemRandomness);
        let mcp = connect(server(script, &key)).await;
        Self { mcp, key }
    }

    /// Calls a tool.
    pub(crate) async fn call(&self, tool: &'static str, arguments: Value) -> CallToolResult {
        call(&self.mcp, tool, arguments).await
    }
}

pub(crate) fn request(tool: &'static str, arguments: Value) -> CallToolRequestParams {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    let mut request = CallToolRequestParams::new(tool);
    request.arguments = Some(arguments);
    request
}

pub(crate) async fn call(mcp: &RunningService<RoleClient, ()>, tool: &'static str, arguments: Value) -> CallToolResult {
    mcp.call_tool(request(tool, arguments)).await.unwrap()
}

/// The only text of a result.
pub(crate) fn text(result: &CallToolResult) -> &str {
    let [ContentBlock::Text(text)] = result.content.as_slice() else { panic!("{result:?}") };
    &text.text
}

/// The structured content of a result, which must match its text.
pub(crate) fn structured(result: &CallToolResult) -> &JsonObject {
    let Some(Value::Object(object)) = &result.structured_content else { panic!("{result:?}") };
    assert_eq!(serde_json::from_str::<JsonObject>(text(result)).unwrap(), *object);
    object
}

/// An error's structured content.
pub(crate) fn error(result: &CallToolResult) -> &JsonObject {
    assert_eq!(result.is_error, Some(true), "{result:?}");
    structured(result)
}

/// A success's structured content.
pub(crate) fn success(result: &CallToolResult) -> &JsonObject {
    assert_eq!(result.is_error, Some(false), "{result:?}");
    structured(result)
}
