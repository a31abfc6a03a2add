//! The resources that a service sells, for agents that search for services: the document at `/.well-known/x402`.
//!
//! Two conventions are in use, and this document is both: x402scan reads `resources`; `items` follows the draft
//! `specs/extensions/well-known-discovery.md`. Prices are advisory; the prices of a 402 apply.

use metering_core::catalogue::{Catalogue, JsonText, Param, ParamLocation, Route};
use metering_core::clock::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::offers::Offers;
use crate::wire::x402::bazaar::{PricedTool, has_body, is_required, schema, template};
use crate::wire::x402::requirements::Requirements;
use crate::wire::x402::resource::Resource;
use crate::wire::x402::sign_in::SIGN_IN_EXTENSION;

/// The path of the document, as deployed directories look for it.
pub const MANIFEST_PATH: &str = "/.well-known/x402";

/// Where a wallet gets a key for its account.
const KEYS_PATH: &str = "/keys";

/// The metered routes of a service, and how each is paid and called.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    version: u8,
    #[serde(rename = "x402Version")]
    x402_version: u8,
    last_updated: i64,
    resources: Vec<String>,
    items: Vec<Item>,
}

/// A callable resource: a metered route, the tool of one, or a call that needs the sign-in of a wallet instead of a
/// payment.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Item {
    resource: Resource,
    #[serde(rename = "type")]
    kind: &'static str,
    accepts: Vec<Requirements>,
    input: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Value>,
    /// The extensions that it cannot be called without.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    requires: Vec<&'static str>,
}

impl Manifest {
    /// Describes the metered routes of a catalogue, except those for WebSocket connections. `public_url` is the
    /// service's, without a slash at its end.
    ///
    /// A route is among `resources` only if the catalogue has an example of each parameter that it requires: clients
    /// may try these URLs.
    #[must_use]
    pub fn new(catalogue: &Catalogue, offers: &Offers, public_url: &str, now: Timestamp) -> Self {
        // Clients of the manifest do not use WebSocket.
        let metered = || catalogue.routes().iter().filter(|route| route.metered && !route.websocket);
        let mut resources: Vec<String> = Vec::new();
        for target in metered().filter_map(example_target) {
            let url = format!("{public_url}{target}");
            if !resources.contains(&url) {
                resources.push(url);
            }
        }
        let items = metered().map(|route| Item::new(route, offers, public_url)).collect();
        Self { version: 1, x402_version: 2, last_updated: now.unix_seconds(), resources, items }
    }

    /// Adds the tools of the service's MCP server at `url`.
    #[must_use]
    pub fn with_tools<'t>(
        mut self,
        tools: impl IntoIterator<Item = PricedTool<'t>>,
        offers: &Offers,
        url: &str,
    ) -> Self {
        self.items.extend(tools.into_iter().map(|tool| Item::of_tool(tool, offers, url)));
        self
    }

    /// Adds the calls for wallets that sign in.
    #[must_use]
    pub(crate) fn with_sign_in(mut self, public_url: &str) -> Self {
        let resource = Resource {
            url: format!("{public_url}{KEYS_PATH}"),
            description: "A key for the account of the wallet that signs in".to_owned(),
            mime_type: "application/json".to_owned(),
        };
        let input = json!({"method": "POST", "bodyType": "json", "body": {"type": "object"}});
        let requires = vec![SIGN_IN_EXTENSION];
        self.items.push(Item { resource, kind: "http", accepts: Vec::new(), input, output: None, requires });
        self
    }
}

impl Item {
    fn new(route: &Route, offers: &Offers, public_url: &str) -> Self {
        let resource = Resource::at(format!("{public_url}{}", template(route)), Some(route));
        let accepts = accepts(route, offers);
        let output = |example: &JsonText| json!({"mimeType": resource.mime_type, "example": example.value()});
        let output = route.example.as_ref().map(output);
        Self { resource, kind: "http", accepts, input: input(route), output, requires: Vec::new() }
    }

    fn of_tool(tool: PricedTool<'_>, offers: &Offers, url: &str) -> Self {
        let PricedTool { route, name, description, input_schema } = tool;
        let resource = Resource {
            url: url.to_owned(),
            description: description.to_owned(),
            mime_type: "application/json".to_owned(),
        };
        let input = json!({"toolName": name, "inputSchema": input_schema, "transport": "streamable-http"});
        Self { resource, kind: "mcp", accepts: accepts(route, offers), input, output: None, requires: Vec::new() }
    }
}

/// The offers that cover the price of a route.
fn accepts(route: &Route, offers: &Offers) -> Vec<Requirements> {
    offers.covering(route.price(0)).iter().map(Requirements::from).collect()
}

/// How a route is called.
fn input(route: &Route) -> Value {
    let mut input = Map::from_iter([("method".to_owned(), json!(&*route.method))]);
    if route.template.contains('{') {
        input.insert("routeTemplate".to_owned(), json!(template(route)));
    }
    for (name, location) in [("pathParams", ParamLocation::Path), ("queryParams", ParamLocation::Query)] {
        let params: Vec<_> = route.params.iter().filter(|param| param.location == location).collect();
        if !params.is_empty() {
            input.insert(name.to_owned(), schema(&params, is_required));
        }
    }
    if has_body(&route.method) {
        input.extend([("bodyType".to_owned(), json!("json")), ("body".to_owned(), json!({"type": "object"}))]);
    }
    input.into()
}

/// Path and query of a request with the catalogue's examples; `None` if a required parameter has none.
fn example_target(route: &Route) -> Option<String> {
    let required = || route.params.iter().filter(|param| is_required(param));
    let mut path = route.template.to_string();
    for param in required().filter(|param| param.location == ParamLocation::Path) {
        path = path.replace(&format!("{{{}}}", param.name), &encoded(param.example.as_deref()?));
    }
    let in_query = required().filter(|param| param.location == ParamLocation::Query);
    let pair = |param: &Param| Some(format!("{}={}", encoded(&param.name), encoded(param.example.as_deref()?)));
    let query: Vec<_> = in_query.map(pair).collect::<Option<_>>()?;
    (!path.contains('{')).then(|| if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) })
}

/// Percent-encodes everything that has a meaning in a URL.
fn encoded(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(encode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::vectors::offers;

    fn manifest(routes: &str) -> Value {
        let text = format!(r#"{{"market":"M","version":1,"endpoints":[{routes}]}}"#);
        let now = Timestamp::from_unix_millis(1_750_000_000_000);
        let manifest = Manifest::new(&Catalogue::from_json(&text).unwrap(), &offers(), "https://api.example.com", now);
        serde_json::to_value(manifest).unwrap()
    }

    const ROUTES: &str = r#"
        {"path": "/price", "method": "GET", "metered": true, "description": "The price", "example": {"usd": 1},
         "params": [{"name": "of", "in": "query", "type": "string", "required": true, "example": "a&b"},
                    {"name": "depth", "in": "query", "type": "integer"}]},
        {"path": "/v1/{city}/now", "method": "GET", "metered": true, "sse": true, "params": [
         {"name": "city", "in": "path", "type": "string", "required": true, "example": "São Paulo"}]},
        {"path": "/v1/{city}", "method": "POST", "metered": true, "price": "0.3", "params": [
         {"name": "city", "in": "path", "type": "string", "required": true}]},
        {"path": "/free", "method": "GET", "metered": false}"#;

    #[test]
    fn both_conventions_list_what_is_metered() {
        let found = manifest(ROUTES);
        assert_eq!((&found["version"], &found["x402Version"]), (&json!(1), &json!(2)));
        assert_eq!(found["lastUpdated"], 1_750_000_000);
        let urls = ["https://api.example.com/price?of=a%26b", "https://api.example.com/v1/S%C3%A3o%20Paulo/now"];
        assert_eq!(found["resources"], json!(urls));
        let items = found["items"].as_array().unwrap();
        assert_eq!(items.len(), 3);
        let resource = json!({"url": "https://api.example.com/price", "description": "The price",
            "mimeType": "application/json"});
        assert_eq!((&items[0]["resource"], &items[0]["type"]), (&resource, &json!("http")));
        let query = json!({"type": "object", "required": ["of"], "properties": {
            "of": {"type": "string"}, "depth": {"type": ["string", "integer"]}}});
        assert_eq!(items[0]["input"], json!({"method": "GET", "queryParams": query}));
        assert_eq!(items[0]["output"], json!({"mimeType": "application/json", "example": {"usd": 1}}));
        assert_eq!(items[1]["resource"]["url"], "https://api.example.com/v1/:city/now");
        assert_eq!(items[1]["resource"]["mimeType"], "text/event-stream");
        assert_eq!(items[1]["input"]["pathParams"]["required"], json!(["city"]));
        assert_eq!((&items[2]["input"]["method"], &items[2]["input"]["bodyType"]), (&json!("POST"), &json!("json")));
        assert_eq!(items[2]["input"]["routeTemplate"], "/v1/:city");
        assert!(!found.to_string().contains("null"), "{found}");
    }

    #[test]
    fn tools_and_what_needs_a_sign_in_are_items_too() {
        let text = format!(r#"{{"market":"M","version":1,"endpoints":[{ROUTES}]}}"#);
        let catalogue = Catalogue::from_json(&text).unwrap();
        let now = Timestamp::from_unix_millis(1_750_000_000_000);
        let manifest = Manifest::new(&catalogue, &offers(), "https://api.example.com", now);
        let input_schema = Map::from_iter([("type".to_owned(), json!("object"))]);
        let route = &catalogue.routes()[2];
        let tool = PricedTool { route, name: "bds_v1_city", description: "A city", input_schema: &input_schema };
        let manifest = manifest.with_tools([tool], &offers(), "https://api.example.com/mcp");
        let found = serde_json::to_value(manifest.with_sign_in("https://api.example.com")).unwrap();
        let items = found["items"].as_array().unwrap();
        let [.., tool, keys] = items.as_slice() else { panic!("{found}") };
        assert_eq!((items.len(), &items[0].get("requires")), (5, &None));
        assert_eq!((&tool["type"], &tool["resource"]["url"]), (&json!("mcp"), &json!("https://api.example.com/mcp")));
        let input =
            json!({"toolName": "bds_v1_city", "inputSchema": {"type": "object"}, "transport": "streamable-http"});
        assert_eq!((&tool["input"], &tool["accepts"]), (&input, &items[2]["accepts"]));
        assert_eq!((&keys["requires"], &keys["accepts"]), (&json!(["sign-in-with-x"]), &json!([])));
        assert_eq!(keys["resource"]["url"], "https://api.example.com/keys");
    }

    #[test]
    fn offers_that_do_not_cover_the_price_are_left_out() {
        let found = manifest(ROUTES);
        let amounts = |index: usize| {
            let offers = found["items"][index]["accepts"].as_array().unwrap();
            offers.iter().map(|offer| offer["amount"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(
            (amounts(0), amounts(2)),
            (vec!["50000".to_owned(), "500000".to_owned()], vec!["500000".to_owned()])
        );
    }
}
