//! `metering routes`: lists the catalogue's routes, for use with `call` and `stream`.

use std::io::Write;

use clap::Args;
use metering_client::Client;
use metering_client::tools::{TOOL_PREFIX_HEADER, ToolPrefix};
use metering_core::Catalogue;
use metering_core::catalogue::{BodyUse, ParamLocation, ParamType, Pricing, Route};

use crate::client::session::options::CallOptions;
use crate::failure::Failure;
use crate::json::write_as_sent;
use crate::table::{Column, Table};

/// The path of the service's catalogue.
const CATALOGUE: &str = "/endpoints.json";

/// List the metered routes with their prices.
///
/// DATA is the body that `call` sends with --data: JSON, in brackets where it is optional. --json has the schemas.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  metering routes
  metering routes --json | jq -r .endpoints[].path")]
pub(crate) struct RoutesArgs {
    #[command(flatten)]
    options: CallOptions,
}

impl RoutesArgs {
    pub(crate) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let Fetched { catalogue, text, .. } = fetch(&self.options.open()?.anonymous()).await?;
        if self.options.json() {
            return write_as_sent(out, text.as_bytes());
        }
        table_of(&catalogue).write(out)
    }
}

const METHOD: Column = Column::word("METHOD");
const ROUTE: Column = Column::text("ROUTE");
const DATA: Column = Column::word("DATA").optional(2);
const CREDITS: Column = Column::text("CREDITS");
const DESCRIPTION: Column = Column::text("DESCRIPTION").optional(1);

/// The routes as a table. There is a column for bodies if any route takes one.
fn table_of(catalogue: &Catalogue) -> Table {
    if catalogue.routes().iter().all(|route| route.body_use() == BodyUse::None) {
        let mut table = Table::new(&[METHOD, ROUTE, CREDITS, DESCRIPTION]);
        for route in catalogue.routes() {
            table.row([&route.method, &target(route), &price(route), &route.description]);
        }
        return table;
    }
    let mut table = Table::new(&[METHOD, ROUTE, DATA, CREDITS, DESCRIPTION]);
    for route in catalogue.routes() {
        table.row([&route.method, &target(route), &data(route), &price(route), &route.description]);
    }
    table
}

/// The service's catalogue, requested without a key.
pub(crate) struct Fetched {
    pub(crate) catalogue: Catalogue,
    /// As the service wrote it.
    text: String,
    /// The prefix of its MCP tools' names.
    pub(crate) tool_prefix: ToolPrefix,
}

/// Requests only the routes of the service's catalogue.
///
/// # Errors
/// Same as [`fetch`].
pub(crate) async fn catalogue(client: &Client) -> Result<Catalogue, Failure> {
    fetch(client).await.map(|fetched| fetched.catalogue)
}

/// Requests the service's catalogue.
///
/// # Errors
/// When the service rejects the request, does not respond, or responds with something else.
pub(crate) async fn fetch(client: &Client) -> Result<Fetched, Failure> {
    let response = client.get(CATALOGUE).await?;
    // Earlier versions of the service do not send it.
    let tool_prefix = response.headers.get(TOOL_PREFIX_HEADER).and_then(|value| value.to_str().ok()?.parse().ok());
    let text = String::from_utf8(response.body.to_vec())
        .map_err(|_| Failure::Failed(format!("the service's {CATALOGUE} is not UTF-8")))?;
    let catalogue = Catalogue::from_published_json(&text)
        .map_err(|error| Failure::Failed(format!("the service's {CATALOGUE} is not a catalogue: {error}")))?;
    Ok(Fetched { catalogue, text, tool_prefix: tool_prefix.unwrap_or_default() })
}

/// The template with its query parameters, the optional ones in brackets.
fn target(route: &Route) -> String {
    let mut target = route.template.to_string();
    let query = route.params.iter().filter(|param| param.location == ParamLocation::Query);
    for (position, param) in query.enumerate() {
        let separator = if position == 0 { '?' } else { '&' };
        let piece = format!("{separator}{}={}", param.name, kind(param.kind));
        if param.required { target.push_str(&piece) } else { target.push_str(&format!("[{piece}]")) }
    }
    target
}

/// The body that `call --data` sends to the route.
fn data(route: &Route) -> &'static str {
    match route.body_use() {
        BodyUse::None => "",
        BodyUse::Any => "[JSON]",
        BodyUse::Declared(_) => "JSON",
    }
}

const fn kind(kind: ParamType) -> &'static str {
    match kind {
        ParamType::String => "TEXT",
        ParamType::Integer => "INTEGER",
        ParamType::Number => "NUMBER",
        ParamType::Boolean => "true|false",
    }
}

fn price(route: &Route) -> String {
    let price = route.price(0);
    match &route.pricing {
        _ if !route.metered => "free".to_owned(),
        Pricing::PerRequest(_) => price.to_string(),
        Pricing::PerConnection(_) => format!("{price} per connection"),
        Pricing::ByVolume(tiers) => tiers.to_string(),
        Pricing::ByUsage(price) if price.is_by_model() => route.price_in_words(),
        Pricing::ByUsage(price) => price.to_string(),
        Pricing::Unknown => "unknown".to_owned(),
        Pricing::PerLookback { param, .. } => format!("from {price}, by {param}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(routes: &str) -> String {
        let text = format!(r#"{{"market": "M", "version": 1, "endpoints": [{routes}]}}"#);
        let mut out = Vec::new();
        table_of(&Catalogue::from_json(&text).unwrap()).write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn bodies_have_a_column_where_a_route_has_one() {
        let get = r#"{"path": "/a", "method": "GET", "metered": true, "price": "1", "description": "A"}"#;
        assert_eq!(table(get), "METHOD  ROUTE  CREDITS  DESCRIPTION\nGET     /a     1        A\n");
        let post = r#"{"path": "/b", "method": "POST", "metered": true, "price": "2"}"#;
        let declared = r#"{"path": "/c", "method": "POST", "metered": true, "price": "3", "description": "C",
            "request": {"schema": {"type": "object"}}}"#;
        let lines = [
            "METHOD  ROUTE  DATA    CREDITS  DESCRIPTION",
            "GET     /a             1        A",
            "POST    /b     [JSON]  2",
            "POST    /c     JSON    3        C",
        ];
        assert_eq!(table(&[get, post, declared].join(",")), lines.map(|line| format!("{line}\n")).concat());
    }
}
