//! The MCP tools: one per metered route, plus the balance and the plans.
//!
//! A tool call is a request to the gateway with the caller's key and the source `mcp`. Only the gateway decides and
//! charges. This module turns arguments into a request, and rejects arguments that the gateway would reject or that
//! could mean another route. A payment that came with the call is passed on, and offers are returned in the formats of
//! x402 and MPP; a signed receipt that the call requests is in its result. It turns responses and errors into results
//! that an agent can act on.
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
mod body;
mod call;
mod callers;
mod document;
mod failure;
mod name;
mod payment;
mod price;
mod receipt;
mod schema;
mod server;
mod settled;
mod stream;
mod toolbox;

pub use callers::Callers;
pub use name::{TOOL_PREFIX_HEADER, ToolPrefix, ToolPrefixError};
pub use server::{McpServer, ToolSettings};
pub use toolbox::{ToolNameClash, Toolbox};
