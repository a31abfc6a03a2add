//! The tools of a catalogue.

use std::collections::HashMap;
use std::fmt;

use metering_core::Catalogue;
use metering_core::catalogue::Route;
use rmcp::model::Tool;
use serde_json::json;

use super::name::tool_name;
use super::schema::{free_tool, route_tool};

/// The tools of a catalogue: one per metered route, and two about the account and the plans.
pub struct Toolbox {
    catalogue: Catalogue,
    tools: Vec<Tool>,
    by_name: HashMap<String, Purpose>,
}

/// Two routes would have the same tool name, so an agent could not tell which one it calls.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("routes {first} and {second} of the catalogue would both be the MCP tool {name}; rename a path or a parameter")]
pub struct ToolNameClash {
    /// The tool's name.
    pub name: String,
    /// The method and path of the route that has it.
    pub first: String,
    /// The method and path of the route that would have it too.
    pub second: String,
}

/// What a call of a tool requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The route at this index of the catalogue.
    Route(usize),
    /// The account's balance document.
    Balance,
    /// The plans.
    Plans,
}

impl fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Toolbox").field("tools", &self.len()).finish_non_exhaustive()
    }
}

impl Toolbox {
    /// Builds the tools of a catalogue.
    ///
    /// # Errors
    /// When two routes would have the same tool name.
    pub fn new(catalogue: &Catalogue) -> Result<Self, ToolNameClash> {
        let routes = catalogue.routes();
        let mut toolbox = Self { catalogue: catalogue.clone(), tools: Vec::new(), by_name: HashMap::new() };
        for (index, route) in routes.iter().enumerate().filter(|(_, route)| route.metered) {
            let shares =
                |other: &Route| other.metered && other.template == route.template && other.method != route.method;
            let name = tool_name(route, routes.iter().any(shares));
            if let Some(Purpose::Route(taken)) = toolbox.by_name.get(&name) {
                let title = |route: &Route| format!("{} {}", route.method, route.template);
                return Err(ToolNameClash { name, first: title(&routes[*taken]), second: title(route) });
            }
            toolbox.add(route_tool(name, route), Purpose::Route(index));
        }
        toolbox.add(balance_tool(), Purpose::Balance);
        toolbox.add(plans_tool(), Purpose::Plans);
        Ok(toolbox)
    }

    /// How many tools there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tools.len()
    }

    /// Whether there are no tools; never true, since balance and plans are always there.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// The tools' names, in the catalogue's order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|tool| &*tool.name)
    }

    pub(super) fn tools(&self) -> &[Tool] {
        &self.tools
    }

    pub(super) fn purpose(&self, name: &str) -> Option<Purpose> {
        self.by_name.get(name).copied()
    }

    pub(super) const fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    fn add(&mut self, tool: Tool, purpose: Purpose) {
        self.by_name.insert(tool.name.clone().into_owned(), purpose);
        self.tools.push(tool);
    }
}

fn balance_tool() -> Tool {
    let about = "The account's balance and rate limits: credits left, bought, granted and used, and how many requests \
                are allowed per minute and per day. Free of charge.";
    free_tool(
        "get_credit_balance",
        about,
        ("credit_balance", json!({"type": "number", "description": "Credits left."})),
    )
}

fn plans_tool() -> Tool {
    let about = "The plans for buying credits: credits, price, token, chain and where to pay. Free of \
                 charge. This tool cannot pay.";
    free_tool("list_plans", about, ("plans", json!({"type": "array", "items": {"type": "object"}})))
}
