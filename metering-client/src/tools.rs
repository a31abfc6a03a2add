//! The MCP tools: one per metered route, and what an account holder asks.
//!
//! A call of a tool is a request to the gateway, with the caller's key and the source `mcp`: the gateway alone decides
//! and charges. What is done here is to turn arguments into such a request, with everything refused that would only be
//! refused there or could mean another route, and answers and errors into results that an agent can act on.
//!
//! ```
//! use std::sync::Arc;
//!
//! use metering_client::tools::Toolbox;
//! use metering_core::Catalogue;
//!
//! let catalogue = Catalogue::from_json(
//!     r#"{"market": "M", "version": 1, "endpoints": [{"path": "/mpp/ethPrice/{block}", "method": "GET",
//!         "metered": true, "sse": false, "description": "ETH price at a block", "credit_weight": 10,
//!         "params": [{"name": "block", "in": "path", "type": "integer", "required": true}]}]}"#,
//! )?;
//! let toolbox = Arc::new(Toolbox::new(&catalogue)?);
//! let names: Vec<_> = toolbox.names().collect();
//! assert_eq!(names, ["bds_mpp_ethPrice_block", "get_credit_balance", "list_plans"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod arguments;
mod call;
mod callers;
mod document;
mod failure;
mod name;
mod price;
mod schema;
mod server;
mod stream;
mod toolbox;

pub use callers::Callers;
pub use server::{McpServer, ToolSettings};
pub use toolbox::{ToolNameClash, Toolbox};
