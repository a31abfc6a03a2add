//! The OpenAPI document. Handlers and wire types describe themselves; the catalogue's routes are added at startup.

mod bounds;

use metering_core::Catalogue;
use metering_core::catalogue::{ParamLocation, ParamType, Pricing, Route};
use metering_core::wire::{ErrorBody, ErrorCode};
use utoipa::openapi::path::{HttpMethod, OperationBuilder, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::response::ResponseBuilder;
use utoipa::openapi::schema::{AllOfBuilder, KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{self, ContentBuilder, PathItem, Ref, RefOr, Required};
use utoipa::{Modify, OpenApi};

use crate::api;
use crate::api::routes::ENDPOINTS;
use crate::config::{Config, Surface};

#[derive(OpenApi)]
#[openapi(
    info(title = "Metering", description = "API keys, prepaid credits and metered routes.", license(name = "MIT OR Apache-2.0")),
    components(schemas(ErrorBody)),
    modifiers(&Security),
    tags(
        (name = "plans", description = "Plans on sale"),
        (name = "account", description = "Balance and usage of the caller's account"),
        (name = "internal", description = "Charging over HTTP, for resolvers"),
        (name = "metered", description = "Metered routes: each accepted request is charged"),
        (name = "operations", description = "Health, metrics and API descriptions, for operators and monitoring"),
    ),
)]
struct Document;

struct Security;

impl Modify for Security {
    fn modify(&self, document: &mut openapi::OpenApi) {
        let components = document.components.get_or_insert_default();
        let header = |name: &str| SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::new(name)));
        let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        components.add_security_scheme("bearer", bearer);
        components.add_security_scheme("api_key", header("X-API-Key"));
        components.add_security_scheme("billing_secret", header("X-BDS-Internal-Billing-Secret"));
    }
}

/// The OpenAPI document of a server with this catalogue.
#[must_use]
pub fn document(catalogue: &Catalogue) -> openapi::OpenApi {
    let mut document = Document::openapi();
    for endpoint in ENDPOINTS.iter() {
        document.merge(endpoint.document());
    }
    let codes: Vec<_> = ErrorCode::ALL.iter().map(|code| format!("| `{code}` | {} |", code.status())).collect();
    let table = format!("Error codes:\n\n| code | status |\n|---|---|\n{}", codes.join("\n"));
    let description = document.info.description.take().unwrap_or_default();
    document.info.description = Some(format!("{description}\n\n{table}"));
    for (path, item) in &mut document.paths.paths {
        item.head = item.get.as_ref().filter(|_| api::takes_head(path)).map(head);
    }
    if let Some(verify) = document.paths.paths.get_mut("/verify") {
        let page = verify_page();
        verify.head = Some(head(&page));
        verify.get = Some(page);
    }
    for route in catalogue.routes() {
        let Some(method) = method(&route.method) else { continue };
        let item = PathItem::new(method, operation(route));
        match document.paths.paths.get_mut(&*route.template) {
            Some(known) => known.merge_operations(item),
            None => drop(document.paths.paths.insert(route.template.to_string(), item)),
        }
    }
    bounds::add(&mut document);
    document
}

/// The page where people approve a signup.
fn verify_page() -> openapi::path::Operation {
    let code = ParameterBuilder::new()
        .name("code")
        .parameter_in(ParameterIn::Query)
        .description(Some("The user code, to fill in the form"))
        .required(Required::False)
        .schema(Some(ObjectBuilder::new().schema_type(Type::String)));
    let page = ContentBuilder::new().schema(Some(ObjectBuilder::new().schema_type(Type::String))).build();
    let served = ResponseBuilder::new().description("The page").content("text/html; charset=utf-8", page);
    OperationBuilder::new()
        .tag("signup")
        .operation_id(Some("verify_page"))
        .summary(Some("The page that approves a signup"))
        .description(Some("For people, in a browser. Programs send `POST /verify`."))
        .parameter(code.build())
        .response("200", served.build())
        .build()
}

/// The document without the paths of surfaces that this process does not serve.
pub(crate) fn served(catalogue: &Catalogue, config: &Config) -> openapi::OpenApi {
    let mut document = document(catalogue);
    document.paths.paths.retain(|path, _| {
        let path = path.as_str();
        let surface = if api::is_path(path) { Surface::Metering } else { Surface::Gateway };
        api::is_everywhere(path) || config.serves(surface)
    });
    document
}

/// The `HEAD` operation that corresponds to a `GET`.
fn head(get: &openapi::path::Operation) -> openapi::path::Operation {
    let mut head = get.clone();
    head.operation_id = get.operation_id.as_ref().map(|id| format!("head_{id}"));
    head.description = Some("Same as `GET`, without a body.".to_owned());
    for response in head.responses.responses.values_mut() {
        if let RefOr::T(response) = response {
            response.content.clear();
        }
    }
    head
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

/// The header that makes a request safe to retry.
fn idempotency_key() -> openapi::path::Parameter {
    let schema = ObjectBuilder::new().schema_type(Type::String).min_length(Some(1)).max_length(Some(258));
    ParameterBuilder::new()
        .name("Idempotency-Key")
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(
            "Identifies the request, so that a retry is not charged again. 1 to 128 visible ASCII characters",
        ))
        .schema(Some(schema.build()))
        .build()
}

fn operation(route: &Route) -> openapi::path::Operation {
    let mut operation = OperationBuilder::new()
        .tag("metered")
        .summary(Some(route.description.clone()))
        .description(Some(price(route)))
        .operation_id(Some(format!("{} {}", route.method, route.template)));
    for param in &route.params {
        operation = operation.parameter(parameter(param, &route.pricing));
    }
    let media = if route.sse { "text/event-stream" } else { "application/json" };
    let served =
        ResponseBuilder::new().description("The upstream's response").content(media, ContentBuilder::new().build());
    operation = operation.response("200", served.build());
    let refusals: &[(&str, &str)] = if route.metered {
        operation = operation.parameter(idempotency_key());
        operation = operation.security(SecurityRequirement::new::<_, [&str; 0], &str>("bearer", []));
        operation = operation.security(SecurityRequirement::new::<_, [&str; 0], &str>("api_key", []));
        &[
            ("400", "`invalid_parameter`, `invalid_path`; nothing was charged"),
            ("401", "`unauthorized`"),
            ("402", "`insufficient_credits`, with the plans"),
            ("409", "`request_in_progress`, `idempotency_key_used`; not charged again"),
            ("422", "`idempotency_key_reused`; nothing was charged"),
            ("429", "`rate_limited`, `too_many_streams`; nothing was charged"),
            ("502", "`upstream_unreachable`; refunded"),
            (
                "503",
                "`overloaded`, `storage_unavailable`, `upstream_unavailable`; not charged, or refunded; \
                 `outcome_unknown`: send it again with the same `Idempotency-Key`",
            ),
            ("504", "`upstream_timeout`; refunded"),
        ]
    } else {
        &[
            ("400", "`invalid_parameter`, `invalid_path`"),
            ("502", "`upstream_unreachable`"),
            ("504", "`upstream_timeout`"),
        ]
    };
    for (status, description) in refusals {
        let schema = if *status == "402" { shortage() } else { error_body() };
        let body = ContentBuilder::new().schema(Some(schema)).build();
        let refusal = ResponseBuilder::new().description(*description).content("application/json", body);
        operation = operation.response(*status, refusal.build());
    }
    let upstream = ResponseBuilder::new().description("Any other response of the upstream, such as 404; it is charged");
    operation = operation.response("default", upstream.build());
    operation.build()
}

fn error_body() -> RefOr<Schema> {
    RefOr::Ref(Ref::from_schema_name("ErrorBody"))
}

/// The 402 error, which includes the plans.
fn shortage() -> RefOr<Schema> {
    let plans = RefOr::Ref(Ref::from_schema_name("PlansDocument"));
    let both = AllOfBuilder::new().item(error_body()).item(plans).build();
    RefOr::T(Schema::AllOf(both))
}

fn price(route: &Route) -> String {
    match &route.pricing {
        _ if !route.metered => "Not metered.".to_owned(),
        Pricing::PerRequest(price) => format!("Costs {price} credits per request."),
        Pricing::PerConnection(price) => format!("Costs {price} credits per connection."),
        Pricing::PerLookback { weight, param, .. } => {
            format!("Costs {weight}/7200 credits times a multiplier that grows with `{param}`.")
        }
    }
}

fn parameter(param: &metering_core::catalogue::Param, pricing: &Pricing) -> Parameter {
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
    ParameterBuilder::new()
        .name(&param.name)
        .parameter_in(place)
        .required(if required { Required::True } else { Required::False })
        .schema(Some(schema))
        .build()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn default_document() -> serde_json::Value {
        let catalogue = Catalogue::from_json(metering_sample::ROUTES).unwrap();
        serde_json::to_value(document(&catalogue)).unwrap()
    }

    #[test]
    fn openapi_describes_exactly_the_served_paths() {
        let document = default_document();
        let described: BTreeSet<_> = document["paths"]
            .as_object()
            .unwrap()
            .iter()
            .flat_map(|(path, item)| {
                let methods = item.as_object().unwrap().keys();
                methods.map(move |method| (path.clone(), method.to_uppercase())).collect::<Vec<_>>()
            })
            .collect();
        let catalogue = Catalogue::from_json(metering_sample::ROUTES).unwrap();
        let metered = catalogue.routes().iter().map(|route| (route.template.to_string(), route.method.to_string()));
        let own = ENDPOINTS.iter().map(|endpoint| (endpoint.path.clone(), endpoint.method.to_string()));
        let heads = ENDPOINTS.iter().filter(|endpoint| endpoint.takes_head);
        let heads = heads.map(|endpoint| (endpoint.path.clone(), "HEAD".to_owned()));
        let page = ["GET", "HEAD"].map(|method| ("/verify".to_owned(), method.to_owned()));
        assert_eq!(described, metered.chain(own).chain(heads).chain(page).collect());
    }

    #[test]
    fn surfaces_that_are_not_served_are_not_described() {
        let catalogue = Catalogue::from_json(metering_sample::ROUTES).unwrap();
        // surfaces, account paths described, metered routes described
        let table: [(&[Surface], bool, bool); 4] = [
            (&Surface::ALL, true, true),
            (&[Surface::Metering], true, false),
            (&[Surface::Gateway, Surface::Mcp], false, true),
            (&[Surface::Mcp], false, false),
        ];
        for (surfaces, account, metered) in table {
            let config = Config { surfaces: surfaces.iter().copied().collect(), ..Config::default() };
            let paths = served(&catalogue, &config).paths.paths;
            let described = |path: &str| paths.contains_key(path);
            assert_eq!((described("/credits/balance"), described("/mpp/ethPrice")), (account, metered), "{surfaces:?}");
            let operations = ENDPOINTS.iter().filter(|endpoint| endpoint.is_everywhere);
            assert!(operations.map(|endpoint| &*endpoint.path).all(described), "{surfaces:?}");
        }
    }

    #[test]
    fn every_error_code_is_listed() {
        let document = default_document();
        let description = document["info"]["description"].as_str().unwrap();
        for code in ErrorCode::ALL {
            assert!(description.contains(&format!("| `{code}` | {} |", code.status())), "{code}");
        }
    }

    #[test]
    fn error_requires_only_code_and_message() {
        let document = default_document();
        let required = &document["components"]["schemas"]["ErrorBody"]["required"];
        assert_eq!(*required, serde_json::json!(["error", "message"]));
        let metered = &document["paths"]["/mpp/ethPrice"]["get"]["responses"]["402"];
        let parts = &metered["content"]["application/json"]["schema"]["allOf"];
        assert_eq!(parts.as_array().map(Vec::len), Some(2), "402 includes the plans: {metered}");
    }

    #[test]
    fn every_reference_resolves() {
        let document = default_document();
        let text = document.to_string();
        let references: BTreeSet<_> =
            text.split("\"#/components/schemas/").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert!(references.contains("ErrorBody") && references.contains("UsageSummary"));
        for name in references {
            assert!(document["components"]["schemas"].get(name).is_some(), "{name}");
        }
    }
}
