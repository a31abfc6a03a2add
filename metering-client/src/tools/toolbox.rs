//! The tools of a catalogue, by name.

use std::collections::HashMap;
use std::fmt;

use metering_core::Catalogue;
use metering_core::catalogue::Route;
use metering_pay::wire::x402::PricedTool;
use rmcp::model::Tool;
use serde_json::json;

use super::name::{MAX_CHARS, ToolPrefix, full_name, hashed, without_last_parameters};
use super::schema::{free_tool, route_tool};

/// The tools of a catalogue: one per metered route, and two about the account and the plans.
pub struct Toolbox {
    catalogue: Catalogue,
    tools: Vec<Tool>,
    /// By name, and by the full names of tools whose listed name is shorter.
    by_name: HashMap<String, Purpose>,
    prefix: ToolPrefix,
}

/// Two routes would have the same tool name, so an agent could not tell which one it calls.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("routes {first} and {second} of the catalogue would both be the MCP tool {name}; rename a path or a parameter")]
pub struct ToolNameClash {
    /// The tool's name.
    pub name: String,
    /// The method and path of its route.
    pub first: String,
    /// The method and path of the route that would have it too.
    pub second: String,
}

/// The request of a tool call.
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
    /// Builds the tools of a catalogue, with the default prefix.
    ///
    /// # Errors
    /// When two routes would have the same tool name.
    pub fn new(catalogue: &Catalogue) -> Result<Self, ToolNameClash> {
        Self::with_prefix(catalogue, ToolPrefix::default())
    }

    /// Builds the tools of a catalogue. Tools of routes have names of at most 60 characters. If a full name is longer,
    /// the tool is listed under a shorter one, and can be called by both.
    ///
    /// ```
    /// use metering_client::tools::Toolbox;
    /// use metering_core::Catalogue;
    ///
    /// let catalogue = Catalogue::from_json(
    ///     r#"{"market": "M", "version": 1, "endpoints": [{"path": "/price", "method": "GET", "metered": true}]}"#,
    /// )?;
    /// let toolbox = Toolbox::with_prefix(&catalogue, "acme_".parse()?)?;
    /// assert_eq!(toolbox.names().next(), Some("acme_price"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When two routes would have the same tool name.
    pub fn with_prefix(catalogue: &Catalogue, prefix: ToolPrefix) -> Result<Self, ToolNameClash> {
        let routes = catalogue.routes();
        let mut toolbox = Self { catalogue: catalogue.clone(), tools: Vec::new(), by_name: HashMap::new(), prefix };
        let own = [(balance_tool(), Purpose::Balance), (plans_tool(), Purpose::Plans)];
        for (tool, purpose) in &own {
            toolbox.by_name.insert(tool.name.clone().into_owned(), *purpose);
        }
        // A tool call is a request and a response, which a WebSocket connection is not.
        let is_tool = |route: &Route| route.metered && !route.websocket;
        let metered: Vec<_> = routes.iter().enumerate().filter(|(_, route)| is_tool(route)).collect();
        let full_names: Vec<_> = metered.iter().map(|(_, route)| toolbox.full_name(route)).collect();
        for ((index, route), name) in metered.iter().zip(&full_names) {
            toolbox.claim(name, *index, route)?;
        }
        // Short enough names never depend on other routes, so they are assigned first.
        let short_names = toolbox.short_names(&metered, &full_names);
        for (((index, route), full), short) in metered.iter().zip(full_names).zip(short_names) {
            let name = short.unwrap_or(full);
            toolbox.claim(&name, *index, route)?;
            toolbox.tools.push(route_tool(name, route));
        }
        toolbox.tools.extend(own.map(|(tool, _)| tool));
        Ok(toolbox)
    }

    /// Assigns a name to a route, which may have it already.
    fn claim(&mut self, name: &str, index: usize, route: &Route) -> Result<(), ToolNameClash> {
        let purpose = Purpose::Route(index);
        match self.by_name.insert(name.to_owned(), purpose) {
            Some(taken) if taken != purpose => {
                Err(ToolNameClash { name: name.to_owned(), first: self.title(taken), second: title(route) })
            }
            _ => Ok(()),
        }
    }

    /// The short name of each route whose full name is too long. It lacks the last path parameters, unless another tool
    /// has or would have that name: then it ends with a hash.
    fn short_names(&self, metered: &[(usize, &Route)], full_names: &[String]) -> Vec<Option<String>> {
        let wanted = |((_, route), full): (&(usize, &Route), &String)| {
            let too_long = full.len() > MAX_CHARS;
            too_long.then(|| without_last_parameters(&self.prefix, route, self.is_shared(route)))
        };
        let wanted: Vec<_> = metered.iter().zip(full_names).map(wanted).collect();
        let is_free = |name: &String| {
            let count = wanted.iter().flatten().flatten().filter(|other| *other == name).count();
            count == 1 && !self.by_name.contains_key(name)
        };
        let name = |(wanted, full): (&Option<Option<String>>, &String)| {
            let readable = wanted.as_ref()?.clone().filter(is_free);
            Some(readable.unwrap_or_else(|| hashed(full)))
        };
        wanted.iter().zip(full_names).map(name).collect()
    }

    fn full_name(&self, route: &Route) -> String {
        full_name(&self.prefix, route, self.is_shared(route))
    }

    /// Whether another metered route has the same path.
    fn is_shared(&self, route: &Route) -> bool {
        let shares = |other: &Route| other.metered && other.template == route.template && other.method != route.method;
        self.catalogue.routes().iter().any(shares)
    }

    fn title(&self, purpose: Purpose) -> String {
        match purpose {
            Purpose::Route(index) => title(&self.catalogue.routes()[index]),
            Purpose::Balance => "GET /credits/balance".to_owned(),
            Purpose::Plans => "GET /credits/plans".to_owned(),
        }
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

    /// The prefix of route tool names.
    #[must_use]
    pub const fn prefix(&self) -> &ToolPrefix {
        &self.prefix
    }

    /// The tools of routes, for listings of a service's resources.
    pub fn priced(&self) -> impl Iterator<Item = PricedTool<'_>> {
        self.tools.iter().filter_map(move |tool| match self.purpose(&tool.name)? {
            Purpose::Route(index) => Some(self.as_priced(tool, index)),
            Purpose::Balance | Purpose::Plans => None,
        })
    }

    /// The listed tool that calls a route.
    pub(super) fn priced_for(&self, purpose: Purpose) -> Option<PricedTool<'_>> {
        let Purpose::Route(index) = purpose else { return None };
        let tool = self.tools.iter().find(|tool| self.purpose(&tool.name) == Some(purpose))?;
        Some(self.as_priced(tool, index))
    }

    fn as_priced<'t>(&'t self, tool: &'t Tool, index: usize) -> PricedTool<'t> {
        let (route, description) = (&self.catalogue.routes()[index], tool.description.as_deref().unwrap_or_default());
        PricedTool { route, name: &tool.name, description, input_schema: &tool.input_schema }
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
}

fn title(route: &Route) -> String {
    format!("{} {}", route.method, route.template)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashed_name_that_another_route_has_is_a_clash() {
        let long = format!("/{}", "word_".repeat(14));
        let hash = hashed(&format!("bds{}", long.replace('/', "_").trim_end_matches('_')));
        let same = hash.strip_prefix("bds_").unwrap();
        let endpoint = |path: &str| json!({"path": path, "method": "GET", "metered": true});
        let endpoints = json!([endpoint(&long), endpoint(&format!("/{same}"))]);
        let text = json!({"market": "M", "version": 1, "endpoints": endpoints}).to_string();
        let clash = Toolbox::new(&Catalogue::from_json(&text).unwrap()).unwrap_err();
        assert_eq!(
            clash,
            ToolNameClash { name: hash.clone(), first: format!("GET /{same}"), second: format!("GET {long}") }
        );
    }
}
