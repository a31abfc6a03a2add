//! How a tool is described to agents: description, arguments, results and hints.

use std::sync::Arc;

use metering_core::catalogue::{Param, ParamLocation, ParamType, Pricing, Route};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

use super::body::BodyArgument;
use super::price::price_sentence;

/// The argument that bounds a stream.
pub(super) const MAX_EVENTS: &str = "max_events";
/// The argument that limits a call's cost.
pub(super) const MAX_COST: &str = "max_cost";
/// How many events a stream tool returns by default.
pub(super) const EVENTS_DEFAULT: usize = 5;
/// The most events a stream tool returns.
pub(super) const EVENTS_MAX: usize = 50;

/// Whether the tool has the `max_events` argument. If the route declares a parameter of that name, it is the route's.
pub(super) fn takes_max_events(route: &Route) -> bool {
    route.sse && route.params.iter().all(|param| param.name != MAX_EVENTS)
}

/// Whether the tool has the `max_cost` argument, as all have whose route has no parameter of that name.
pub(super) fn takes_max_cost(route: &Route) -> bool {
    route.params.iter().all(|param| param.name != MAX_COST)
}

/// The tool of a route.
pub(super) fn route_tool(name: String, route: &Route) -> Tool {
    // A priced call changes the balance every time. Agents use these hints to decide whether to ask their user, so a
    // charged call is marked even if the route only reads.
    let priced =
        !matches!(&route.pricing, Pricing::PerRequest(price) | Pricing::PerConnection(price) if !price.is_positive());
    let annotations = if &*route.method == "GET" && !priced {
        ToolAnnotations::new().read_only(true).open_world(true)
    } else {
        let harmless = &*route.method == "GET";
        ToolAnnotations::new().read_only(false).destructive(!harmless).idempotent(false).open_world(true)
    };
    Tool::new(name, description(route), Arc::new(input(route)))
        .with_raw_output_schema(Arc::new(output(route)))
        .with_annotations(annotations)
}

/// A free tool without arguments. `member` is the field that its document always has.
pub(super) fn free_tool(name: &'static str, description: &'static str, member: (&'static str, Value)) -> Tool {
    let (required, schema) = member;
    let properties = JsonObject::from_iter([(required.to_owned(), schema)]);
    Tool::new(name, description, Arc::new(arguments(JsonObject::new(), Vec::new())))
        .with_raw_output_schema(Arc::new(or_error(required, properties)))
        .with_annotations(ToolAnnotations::new().read_only(true).open_world(false))
}

fn description(route: &Route) -> String {
    let about = if route.title().is_empty() { "A metered route" } else { route.title() };
    let mut text = format!("{about}. {}\nRoute: {} {}", price_sentence(route), route.method, route.template);
    if route.sse {
        text.push_str(
            "\nA stream: the call waits for events and returns when it has `max_events` of them, when it times out \
             or when the stream ends; `ended_by` says which.",
        );
    }
    text
}

fn input(route: &Route) -> JsonObject {
    let mut properties = JsonObject::new();
    for param in &route.params {
        let (kind, about) = (json_type(param.kind), about(route, param));
        let schema = match param.array {
            true => json!({"type": "array", "items": {"type": kind}, "description": about}),
            false => json!({"type": kind, "description": about}),
        };
        properties.insert(param.name.clone(), schema);
    }
    let body = BodyArgument::of(route);
    if let Some(body) = body {
        properties.insert(body.name.to_owned(), body.schema());
    }
    if takes_max_events(route) {
        let about = format!("Return after this many events, 1 to {EVENTS_MAX}.");
        let schema = json!({"type": "integer", "minimum": 1, "maximum": EVENTS_MAX, "default": EVENTS_DEFAULT,
            "description": about});
        properties.insert(MAX_EVENTS.to_owned(), schema);
    }
    if takes_max_cost(route) {
        let schema = json!({"type": "string", "description":
            "The most that this call may cost, in credits, such as 0.01. Above that, it is refused and costs nothing."});
        properties.insert(MAX_COST.to_owned(), schema);
    }
    let required = route.params.iter().filter(|param| is_required(param)).map(|param| param.name.clone());
    let body = body.filter(|body| body.is_required()).map(|body| body.name.to_owned());
    arguments(properties, required.chain(body).map(Value::from).collect())
}

fn arguments(properties: JsonObject, required: Vec<Value>) -> JsonObject {
    let mut schema = JsonObject::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), properties.into());
    if !required.is_empty() {
        schema.insert("required".to_owned(), required.into());
    }
    schema.insert("additionalProperties".to_owned(), false.into());
    schema
}

/// Whether calls without the parameter are rejected.
pub(super) fn is_required(param: &Param) -> bool {
    param.required || param.location == ParamLocation::Path
}

const fn json_type(kind: ParamType) -> &'static str {
    match kind {
        ParamType::String => "string",
        ParamType::Integer => "integer",
        ParamType::Number => "number",
        ParamType::Boolean => "boolean",
    }
}

fn about(route: &Route, param: &Param) -> String {
    let place = match param.location {
        ParamLocation::Path => "path",
        ParamLocation::Query => "query",
    };
    let words = param.name.replace('_', " ");
    let need = if is_required(param) { "Required" } else { "Optional" };
    let what = match param.description.trim().trim_end_matches('.') {
        "" => format!("The {words}"),
        description => description.to_owned(),
    };
    let example = param.example.as_ref().map(|example| format!(", such as {example}")).unwrap_or_default();
    let mut text = format!("{what}{example}. {need}; sent in the request's {place}.");
    if let Pricing::PerLookback { param: lookback, .. } = &route.pricing
        && *lookback == param.name
    {
        text.push_str(" In seconds, zero or more; determines the price of the call.");
    }
    text
}

/// The result schema of a route's tool.
fn output(route: &Route) -> JsonObject {
    let data = if route.sse { stream_data() } else { json!({"description": "The route's response: JSON, or text."}) };
    let balance = json!({"type": "number", "description": "The account's balance after the call, in credits."});
    let charged = json!({"type": "number", "description": "The cost of the call, in credits."});
    let mut properties = vec![("data", data), ("credit_balance", balance), ("credits_charged", charged)];
    if route.usage_price().is_some() {
        let held = json!({"type": "number", "description":
            "Credits held for the call until its cost is known."});
        let id = json!({"type": "string", "description":
            "With credits_held: the request's id. GET /requests/{id} returns its cost."});
        properties.extend([("credits_held", held), ("request_id", id)]);
    }
    or_error("data", properties.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect())
}

fn stream_data() -> Value {
    let event = json!({"type": "object", "required": ["event", "data"], "properties": {
        "event": {"type": "string", "description": "The event's type."},
        "id": {"type": "string", "description": "The id to resume after, if the stream sends ids."},
        "data": {"description": "The event's data: JSON, or text."},
    }});
    let ended_by = json!({"enum": ["count", "time", "end", "size", "break"], "description":
        "Why the call returned: it had `max_events` events; it timed out; the stream ended; the result got too large; \
         the stream broke off."});
    // No type: a route declared as a stream may respond with a document, which is passed on unchanged.
    json!({"properties": {
        "events": {"type": "array", "items": event},
        "count": {"type": "integer", "description": "The number of events."},
        "ended_by": ended_by,
    }})
}

/// A schema that also accepts errors: some clients validate the structured content of errors against it too.
fn or_error(required: &str, mut properties: JsonObject) -> JsonObject {
    properties.insert("error".to_owned(), json!({"type": "string", "description": "On error: its stable code."}));
    let message = json!({"type": "string", "description": "On error: what to do about it."});
    properties.insert("message".to_owned(), message);
    let mut schema = JsonObject::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), properties.into());
    schema.insert("anyOf".to_owned(), json!([{"required": [required]}, {"required": ["error", "message"]}]));
    schema
}
