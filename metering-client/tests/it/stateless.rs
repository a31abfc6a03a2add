//! MCP 2026-07-28: requests without a handshake, how long the list may be cached, and subscriptions to its changes.

use std::sync::Arc;
use std::time::Duration;

use metering_client::tools::{McpServer, Toolbox};
use metering_core::{ApiKey, Catalogue, SystemRandomness};
use rmcp::model::{CacheScope, ProtocolVersion, ServerNotification, SubscriptionFilter};
use rmcp::service::RunningService;
use rmcp::{ClientLifecycleMode, ClientServiceExt, RoleClient, ServiceExt};
use tokio::time::timeout;

use crate::script::Script;
use crate::session::{connect, server, toolbox};

const MINUTE: Duration = Duration::from_secs(60);

fn new_server() -> McpServer {
    server(&Script::default(), &ApiKey::generate(&SystemRandomness))
}

async fn connect_without_handshake(server: McpServer) -> RunningService<RoleClient, ()> {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    tokio::spawn(async move { server.serve(theirs).await.unwrap().waiting().await });
    let lifecycle = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    ().serve_with_lifecycle(ours, lifecycle).await.unwrap()
}

#[tokio::test]
async fn everyone_may_keep_the_list_for_a_minute() {
    let mcp = connect_without_handshake(new_server()).await;
    let list = mcp.list_tools(None).await.unwrap();
    assert_eq!((list.ttl_ms, list.cache_scope), (Some(60_000), Some(CacheScope::Public)));
    assert_eq!(list.meta.unwrap()["io.modelcontextprotocol/serverInfo"]["name"], "metering");
    let info = mcp.peer_info().unwrap();
    assert_eq!(info.capabilities.tools.as_ref().unwrap().list_changed, Some(true));
}

#[tokio::test]
async fn older_clients_get_what_their_version_has() {
    let mcp = connect(new_server()).await;
    let list = mcp.list_tools(None).await.unwrap();
    assert_eq!((list.ttl_ms, list.cache_scope, list.meta), (None, None, None));
    let info = mcp.peer_info().unwrap();
    assert_eq!(info.capabilities.tools.as_ref().unwrap().list_changed, None);
    assert!(mcp.listen(SubscriptionFilter::builder().tools_list_changed().build()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn subscribers_are_notified_of_another_list() {
    let server = new_server();
    let mcp = connect_without_handshake(server.clone()).await;
    let wanted = SubscriptionFilter::builder().tools_list_changed().prompts_list_changed().build();
    let mut changes = mcp.listen(wanted).await.unwrap();
    assert_eq!(*changes.acknowledged(), SubscriptionFilter::builder().tools_list_changed().build());
    let mut next = async || timeout(MINUTE, changes.next()).await.ok().map(|next| next.unwrap().unwrap());
    assert!(next().await.is_none());
    server.replace_tools(toolbox());
    assert!(next().await.is_none(), "the list is the same");
    let catalogue =
        r#"{"market": "M", "version": 1, "endpoints": [{"path": "/price", "method": "GET", "metered": true}]}"#;
    let other = Toolbox::new(&Catalogue::from_json(catalogue).unwrap()).unwrap();
    server.replace_tools(Arc::new(other));
    assert!(matches!(next().await, Some(ServerNotification::ToolListChangedNotification(_))));
    assert!(next().await.is_none(), "it changed once");
}
