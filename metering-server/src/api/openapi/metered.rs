//! The metered routes of the catalogue as operations.

use std::collections::BTreeSet;

use metering_core::Catalogue;
use metering_core::catalogue::{ErrorShape, Param, ParamLocation, ParamType, Pricing, Route};
use metering_core::charging::RefusalKind;
use metering_core::wire::ErrorCode;
use serde_json::Value;
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::path::{HttpMethod, Operation, OperationBuilder, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::response::ResponseBuilder;
use utoipa::openapi::schema::{AllOfBuilder, ArrayBuilder, KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{Content, ContentBuilder, OpenApi, PathItem, Ref, RefOr, Required};

use super::body;
use super::bounds;
use super::free;
use super::offers;
use super::operation_id::operation_id;
use super::price;
use crate::endpoints::errors::operations;

/// Adds the routes of a catalogue to a document.
pub(super) fn add(document: &mut OpenApi, catalogue: &Catalogue) {
    add_groups(document, catalogue);
    let ids = ids(document, catalogue);
    let routes = catalogue.routes().iter().zip(&ids);
    add_routes(document, routes.filter_map(|(route, id)| Some((route, id.as_deref()?))));
}

/// The operation id of each route; `None` for a route that cannot be documented.
pub(super) fn ids(document: &mut OpenApi, catalogue: &Catalogue) -> Vec<Option<String>> {
    let own = document.paths.paths.values_mut().flat_map(operations);
    let mut ids: BTreeSet<String> = own.filter_map(|operation| operation.operation_id.clone()).collect();
    let id = |route: &Route| method(&route.method).map(|_| operation_id(route, &mut ids));
    catalogue.routes().iter().map(id).collect()
}

/// Adds routes with these operation ids.
pub(super) fn add_routes<'r>(document: &mut OpenApi, routes: impl Iterator<Item = (&'r Route, &'r str)>) {
    for (route, id) in routes {
        let Some(method) = method(&route.method) else { continue };
        let item = PathItem::new(method, operation(route, id.to_owned()));
        match document.paths.paths.get_mut(&*route.template) {
            Some(known) => known.merge_operations(item),
            None => drop(document.paths.paths.insert(route.template.to_string(), item)),
        }
    }
}

/// Adds what the routes of a catalogue have in common: the schema of what can be paid, and their groups.
pub(super) fn add_groups(document: &mut OpenApi, catalogue: &Catalogue) {
    offers::add_ways_to_pay(document);
    let mut groups: Vec<Value> = Vec::new();
    for route in catalogue.routes().iter().filter(|route| method(&route.method).is_some()) {
        if let Some(group) = route.group.as_deref().map(Value::from).filter(|group| !groups.contains(group)) {
            groups.push(group);
        }
    }
    // Paths are sorted, so the order of the groups would be lost.
    if !groups.is_empty() {
        document.extensions.get_or_insert_default().insert("x-groups".to_owned(), groups.into());
    }
}

fn method(name: &str) -> Option<HttpMethod> {
    Some(match name {
        "GET" => HttpMethod::Get,
        "POST" => HttpMethod::Post,
        "PUT" => HttpMethod::Put,
        "DELETE" => HttpMethod::Delete,
        "PATCH" => HttpMethod::Patch,
        "OPTIONS" => HttpMethod::Options,
        "HEAD" => HttpMethod::Head,
        "TRACE" => HttpMethod::Trace,
        _ => return None,
    })
}

/// The headers that a client may send with any metered request: name, longest value, description.
const HEADERS: [(&str, usize, &str); 3] = [
    (
        "Idempotency-Key",
        258,
        "Identifies the request, so that a retry is not charged again. 1 to 128 visible ASCII characters",
    ),
    ("Max-Cost", 64, "The maximum cost of the request, in credits. Above that, it is refused and costs nothing"),
    ("Prefer", 256, "`metering-receipt`: the response gets a signed receipt, if the service signs any (RFC 7240)"),
];

fn header((name, max_length, description): (&str, usize, &str)) -> Parameter {
    let schema = ObjectBuilder::new().schema_type(Type::String).min_length(Some(1)).max_length(Some(max_length));
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(description))
        .schema(Some(schema.build()))
        .build()
}

/// The codes of refused charges with this status, as text.
fn codes(status: u16) -> String {
    let codes = RefusalKind::ALL.into_iter().flat_map(RefusalKind::codes);
    // Has the plans with it.
    let codes = codes.filter(|code| code.status() == status && **code != ErrorCode::InsufficientCredits);
    codes.map(|code| format!("`{code}`")).collect::<Vec<_>>().join(", ")
}

fn refusals_of_charges() -> Vec<(&'static str, String)> {
    vec![
        ("400", "`invalid_parameter`, `invalid_path`; nothing was charged".to_owned()),
        ("401", format!("{}; nothing was charged", codes(401))),
        (
            "402",
            format!(
                "`insufficient_credits`, with the plans; {}; `payment_required` without a key; `payment_refused`; nothing \
                 was charged. Where the service offers payments with requests, `accepts` and the headers \
                 `PAYMENT-REQUIRED` and `WWW-Authenticate` have the offers",
                codes(402)
            ),
        ),
        ("403", format!("{}; nothing was charged", codes(403))),
        ("409", format!("{}, `payment_credited`; not charged again", codes(409))),
        ("412", format!("{}; nothing was charged or paid", codes(412))),
        ("422", format!("{}; nothing was charged", codes(422))),
        (
            "429",
            format!(
                "{}, `too_many_streams`; nothing was charged. Without one of these codes, it is the upstream's",
                codes(429)
            ),
        ),
        ("502", "`upstream_unreachable`; refunded".to_owned()),
        (
            "503",
            "`overloaded`, `storage_unavailable`, `upstream_unavailable`, `settlement_unavailable`; not charged, or \
             refunded; `outcome_unknown`: send it again with the same `Idempotency-Key`; `settlement_pending`: send it \
             again with the same payment"
                .to_owned(),
        ),
        ("504", "`upstream_timeout`; refunded".to_owned()),
    ]
}

fn operation(route: &Route, id: String) -> Operation {
    let mut operation = OperationBuilder::new()
        .tag("metered")
        .summary(Some(route.description.clone()))
        .description(Some(price::sentence(route)))
        .operation_id(Some(id))
        .request_body(body::request_body(route))
        .extensions(extensions(route));
    for param in &route.params {
        operation = operation.parameter(parameter(param, &route.pricing));
    }
    let (status, mut served) = served(route);
    if route.metered {
        served = served.header("PAYMENT-RESPONSE", offers::receipt_header());
        served = served.header("Payment-Receipt", offers::mpp_receipt_header());
        served = served.header("Metering-Receipt", offers::signed_receipt_header());
    }
    operation = operation.response(status, served.build());
    let refusals: Vec<(&str, String)> = if route.metered {
        for parameter in HEADERS.map(header) {
            operation = operation.parameter(parameter);
        }
        for scheme in ["bearer", "api_key", "api_key_azure", "api_key_google"] {
            operation = operation.security(SecurityRequirement::new::<_, [&str; 0], &str>(scheme, []));
        }
        refusals_of_charges()
    } else {
        [
            ("400", "`invalid_parameter`, `invalid_path`"),
            ("502", "`upstream_unreachable`"),
            ("504", "`upstream_timeout`"),
        ]
        .map(|(status, description)| (status, description.to_owned()))
        .into()
    };
    let upgrade = "`upgrade_required`: no WebSocket handshake; nothing was charged".to_owned();
    let upgrade = route.websocket.then_some(("426", upgrade));
    let by_model = route.usage_price().is_some_and(|price| price.is_by_model());
    let unsold = by_model.then(|| ("404", "`model_not_found`: the model has no price; nothing was charged".to_owned()));
    for (status, description) in refusals.into_iter().chain(upgrade).chain(unsold) {
        let schema = match (route.errors, status) {
            (ErrorShape::Own, "402") => shortage(),
            (ErrorShape::Own, _) => error_body(),
            _ => shaped_error(),
        };
        let content = ContentBuilder::new().schema(Some(schema)).build();
        let more = if status == "400" { body::refusal(route) } else { "" };
        let description = format!("{description}{more}");
        let mut refusal = ResponseBuilder::new().description(description).content(route.errors.content_type(), content);
        if status == "402" {
            refusal = refusal.header("PAYMENT-REQUIRED", offers::offers_header());
            refusal = refusal.header("WWW-Authenticate", offers::challenges_header());
        }
        operation = operation.response(status, refusal.build());
    }
    let upstream = ResponseBuilder::new().description(free::sentence(route));
    operation = operation.response("default", upstream.build());
    operation.build()
}

/// The response to a request that was served, and its status.
fn served(route: &Route) -> (&'static str, ResponseBuilder) {
    let response = ResponseBuilder::new();
    if route.websocket {
        let description = "The connection is open: a WebSocket connection (RFC 6455), over HTTP/1.1";
        return ("101", response.description(description));
    }
    let media = if route.sse { "text/event-stream" } else { "application/json" };
    ("200", response.description("The upstream's response").content(media, content(route)))
}

fn error_body() -> RefOr<Schema> {
    RefOr::Ref(Ref::from_schema_name("ErrorBody"))
}

/// An error in the shape that the clients of a route read.
fn shaped_error() -> RefOr<Schema> {
    let description = "In the shape that the clients of this route read. All members of `ErrorBody` but `error` are \
                       beside it, with the offers of a 402";
    RefOr::T(ObjectBuilder::new().description(Some(description)).build().into())
}

/// The 402 error, with what can be paid.
fn shortage() -> RefOr<Schema> {
    let ways_to_pay = RefOr::Ref(Ref::from_schema_name(offers::WAYS_TO_PAY));
    let both = AllOfBuilder::new().item(error_body()).item(ways_to_pay).build();
    RefOr::T(Schema::AllOf(both))
}

fn extensions(route: &Route) -> Option<Extensions> {
    let price = route.metered.then(|| ("x-price", price::document(route)));
    let group = route.group.as_ref().map(|group| ("x-group", Value::from(group.as_str())));
    let free = route.metered.then(|| ("x-free-statuses", free::document(route)));
    let websocket = route.websocket.then_some(("x-websocket", Value::Bool(true)));
    let members: Vec<_> = [price, free, group, websocket].into_iter().flatten().collect();
    (!members.is_empty()).then(|| members.into_iter().collect())
}

/// The body of a response: its schema and example as the catalogue has them.
fn content(route: &Route) -> Content {
    let mut content = ContentBuilder::new().build();
    content.example = route.example.as_ref().map(|example| example.value().clone());
    // The catalogue's schema may have keywords that utoipa's type would drop, so it is written verbatim. OpenAPI 3.1
    // has no keyword for the events of a stream; `itemSchema` is from 3.2.
    let keyword = if route.sse { "x-event-schema" } else { "schema" };
    content.extensions =
        route.response.as_ref().map(|schema| [(keyword, schema.value().clone())].into_iter().collect());
    content
}

fn parameter(param: &Param, pricing: &Pricing) -> Parameter {
    // A look-back is a number of seconds, which the catalogue's type does not say.
    let is_lookback = matches!(pricing, Pricing::PerLookback { param: lookback, .. } if **lookback == *param.name);
    let place = match param.location {
        ParamLocation::Path => ParameterIn::Path,
        ParamLocation::Query => ParameterIn::Query,
    };
    let schema = match param.kind {
        ParamType::String => {
            let pattern = if param.location == ParamLocation::Path { bounds::SEGMENT } else { bounds::TEXT };
            ObjectBuilder::new().schema_type(Type::String).min_length(Some(1)).pattern(Some(pattern))
        }
        ParamType::Integer => ObjectBuilder::new()
            .schema_type(Type::Integer)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
            .minimum(is_lookback.then_some(0)),
        ParamType::Number => ObjectBuilder::new().schema_type(Type::Number),
        ParamType::Boolean => ObjectBuilder::new().schema_type(Type::Boolean),
    };
    let required = param.required || param.location == ParamLocation::Path;
    // Arrays of a query are written as `name=a&name=b` by default.
    let schema = match param.array {
        true => RefOr::T(Schema::Array(ArrayBuilder::new().items(schema).build())),
        false => RefOr::T(Schema::Object(schema.build())),
    };
    ParameterBuilder::new()
        .name(&param.name)
        .parameter_in(place)
        .description(Some(&param.description).filter(|description| !description.is_empty()))
        .example(param.example.as_deref().map(|example| match param.array {
            true => Value::Array(vec![example_value(param.kind, example)]),
            false => example_value(param.kind, example),
        }))
        .required(if required { Required::True } else { Required::False })
        .schema(Some(schema))
        .build()
}

/// A parameter's example as a value of its type.
fn example_value(kind: ParamType, text: &str) -> Value {
    match kind {
        ParamType::String => text.into(),
        ParamType::Boolean => (text == "1" || text.eq_ignore_ascii_case("true")).into(),
        ParamType::Integer | ParamType::Number => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::api::openapi::document;

    fn described(route: &str) -> Value {
        let text = format!(r#"{{"market":"M","version":1,"endpoints":[{route}]}}"#);
        let document = document(&Catalogue::from_json(&text).unwrap());
        serde_json::to_value(document).unwrap()["paths"]["/x"]["get"].clone()
    }

    #[test]
    fn response_example_and_group_are_the_catalogues() {
        let schema = json!({"type": "object", "properties": {"a": {"const": 1, "multipleOf": 1}}});
        let route = json!({"path": "/x", "method": "GET", "metered": true, "group": "Prices", "response": schema,
            "example": {"a": 1}, "params": [{"name": "q", "in": "query", "type": "integer", "description": "How many",
            "example": 7}, {"name": "deep", "in": "query", "type": "boolean", "example": true}]});
        let operation = described(&route.to_string());
        let content = &operation["responses"]["200"]["content"]["application/json"];
        assert_eq!((&content["schema"], &content["example"]), (&schema, &json!({"a": 1})));
        assert_eq!((&operation["x-group"], &operation["tags"]), (&json!("Prices"), &json!(["metered"])));
        let [q, deep, ..] = &**operation["parameters"].as_array().unwrap() else { panic!("{operation}") };
        assert_eq!((&q["example"], &q["description"]), (&json!(7), &json!("How many")));
        assert_eq!(deep["example"], true);
        assert_eq!(deep["description"], Value::Null);
    }

    #[test]
    fn groups_are_in_the_catalogues_order() {
        let route = |path, group| format!(r#"{{"path":"{path}","method":"GET","metered":true,"group":{group}}}"#);
        let routes =
            [route("/b", "\"Second\""), route("/c", "null"), route("/a", "\"First\""), route("/d", "\"Second\"")];
        let text = format!(r#"{{"market":"M","version":1,"endpoints":[{}]}}"#, routes.join(","));
        let document = document(&Catalogue::from_json(&text).unwrap());
        assert_eq!(serde_json::to_value(document).unwrap()["x-groups"], json!(["Second", "First"]));
    }

    #[test]
    fn a_streams_schema_is_that_of_an_event() {
        let route = r#"{"path": "/x", "method": "GET", "metered": true, "sse": true, "response": {"type": "object"},
            "example": {}}"#;
        let operation = described(route);
        let content = &operation["responses"]["200"]["content"]["text/event-stream"];
        assert_eq!((&content["x-event-schema"], &content["schema"]), (&json!({"type": "object"}), &Value::Null));
    }

    #[test]
    fn a_websocket_route_responds_with_101_or_426() {
        let operation = described(r#"{"path": "/x", "method": "GET", "metered": true, "websocket": true}"#);
        let responses = operation["responses"].as_object().unwrap();
        assert!(responses.contains_key("101") && responses.contains_key("426") && !responses.contains_key("200"));
        assert_eq!(operation["x-websocket"], true);
    }

    #[test]
    fn a_free_route_has_no_price() {
        let operation = described(r#"{"path": "/x", "method": "GET", "metered": false}"#);
        assert_eq!((&operation["x-price"], &operation["description"]), (&Value::Null, &json!("Not metered.")));
    }
}
