//! The OpenAPI document. Calls, handlers and wire types describe themselves; the catalogue's routes are added at startup.

mod authored;
mod body;
mod bounds;
mod description;
mod free;
mod metered;
mod offers;
mod operation_id;
mod price;
mod written;

use metering_core::Catalogue;
use metering_core::wire::{ErrorBody, ErrorCode};
use metering_pay::wire::x402::PaymentRequiredV1;
use utoipa::openapi::path::{OperationBuilder, ParameterBuilder, ParameterIn};
use utoipa::openapi::response::ResponseBuilder;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{self, ContentBuilder, RefOr, Required, Server};
use utoipa::{Modify, OpenApi};

use crate::api;
use crate::api::routes::ENDPOINTS;
use crate::authorize;
use crate::config::{Config, Surface};
use crate::endpoints::errors::{self, operations};
pub(crate) use description::Description;

#[derive(OpenApi)]
#[openapi(
    info(title = "Metering", description = "API keys, prepaid credits and metered routes.", license(name = "MIT OR Apache-2.0")),
    components(schemas(ErrorBody, PaymentRequiredV1)),
    modifiers(&Security),
    tags(
        (name = "metered", description = "Metered routes: each accepted request is charged"),
        (name = "account", description = "Balance and usage of the caller's account"),
        (name = "keys", description = "Keys of the account, with scopes, limits and budgets"),
        (name = "webhooks", description = "Events of the account, and where they are sent"),
        (name = "plans", description = "Plans on sale"),
        (name = "payments", description = "Buying credits on a chain: a new account, or a top-up"),
        (name = "signup", description = "Signing up without paying, as a device flow (RFC 8628)"),
        (name = "child_accounts", description = "Accounts of a customer's customers, which the customer fills"),
        (name = "members", description = "People who sign in to an account as themselves, each with a role"),
        (name = "sessions", description = "Browsers that are signed in on the service's own pages"),
        (name = "oauth", description = "Programs that get a key by its owner's consent (OAuth 2.1)"),
        (name = "recovery", description = "Replacing a lost key with a wallet's signature"),
        (name = "descriptions", description = "A description of this service for programs"),
        (name = "operations", description = "Health and metrics, for operators and monitoring"),
        (name = "internal", description = "Charging over HTTP, for resolvers"),
    ),
)]
struct Document;

/// Tags of endpoints that are for operators and their own services. Pages for customers leave them out.
const FOR_OPERATORS: [&str; 2] = ["operations", "internal"];

struct Security;

impl Modify for Security {
    fn modify(&self, document: &mut openapi::OpenApi) {
        let components = document.components.get_or_insert_default();
        let header = |name: &str| SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::new(name)));
        let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        components.add_security_scheme("bearer", bearer);
        components.add_security_scheme("api_key", header("X-API-Key"));
        // The headers of Azure's and of Google's clients.
        components.add_security_scheme("api_key_azure", header("Api-Key"));
        components.add_security_scheme("api_key_google", header("X-Goog-Api-Key"));
        components.add_security_scheme("sign_in_with_x", header("SIGN-IN-WITH-X"));
        components.add_security_scheme("billing_secret", header("X-BDS-Internal-Billing-Secret"));
    }
}

/// The OpenAPI document of a server with this catalogue.
#[must_use]
pub fn document(catalogue: &Catalogue) -> openapi::OpenApi {
    let mut document = own();
    metered::add(&mut document, catalogue);
    bounds::add(&mut document);
    errors::reference(&mut document);
    document
}

/// The document of the service's own endpoints.
fn own() -> openapi::OpenApi {
    let mut document = Document::openapi();
    for endpoint in ENDPOINTS.iter() {
        document.merge(endpoint.document());
    }
    let codes: Vec<_> = ErrorCode::ALL.iter().map(|code| format!("| `{code}` | {} |", code.status())).collect();
    let table = format!("Error codes:\n\n| code | status |\n|---|---|\n{}", codes.join("\n"));
    let description = document.info.description.take().unwrap_or_default();
    document.info.description = Some(format!("{description}\n\n{table}"));
    for (path, item) in &mut document.paths.paths {
        for operation in operations(item) {
            mark_internal(operation);
        }
        item.head = item.get.as_ref().filter(|_| api::takes_head(path)).map(head);
    }
    if let Some(verify) = document.paths.paths.get_mut("/verify") {
        let page = verify_page();
        verify.head = Some(head(&page));
        verify.get = Some(page);
    }
    errors::share(&mut document);
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

impl Description {
    /// With the service's name and URL, and without the paths of surfaces that this process does not serve.
    pub(crate) fn new(catalogue: &Catalogue, config: &Config) -> Self {
        let mut own = own();
        metered::add_groups(&mut own, catalogue);
        bounds::add(&mut own);
        let ids = if config.serves(Surface::Gateway) { metered::ids(&mut own, catalogue) } else { Vec::new() };
        config.brand.name.as_str().clone_into(&mut own.info.title);
        let url = config.public_url.as_deref().map(|url| url.trim_end_matches('/')).filter(|url| !url.is_empty());
        // A relative URL is resolved against the document's own.
        own.servers = Some(vec![Server::new(url.unwrap_or("/"))]);
        if !config.serves(Surface::Metering) {
            own.paths.paths.retain(|path, _| api::is_everywhere(path));
        }
        if config.serves(Surface::Authorize) {
            let mut asked = authorize::describe();
            asked.paths.paths.values_mut().flat_map(operations).for_each(mark_internal);
            own.merge(asked);
            errors::reference(&mut own);
        }
        Self { own, ids }
    }
}

/// Marks an operation that is not for customers, with the extension that Redoc and others know.
fn mark_internal(operation: &mut openapi::path::Operation) {
    if operation.tags.iter().flatten().any(|tag| FOR_OPERATORS.contains(&&**tag)) {
        operation.extensions.get_or_insert_default().insert("x-internal".to_owned(), true.into());
    }
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn served(catalogue: &Catalogue, config: &Config) -> serde_json::Value {
        serde_json::from_str(&Description::new(catalogue, config).to_json(catalogue).unwrap()).unwrap()
    }

    fn default_document() -> serde_json::Value {
        let catalogue = Catalogue::from_json(metering_sample::ROUTES).unwrap();
        serde_json::to_value(document(&catalogue)).unwrap()
    }

    #[test]
    fn the_document_is_written_route_by_route_with_the_same_result() {
        let text = r#"{"market":"M","version":1,"endpoints":[
            {"path":"/x","method":"GET","metered":true,"price":"0.02","group":"Prices","params":[
                {"name":"q","in":"query","type":"string"}]},
            {"path":"/a/{id}","method":"DELETE","metered":false,"params":[
                {"name":"id","in":"path","type":"string","required":true}]},
            {"path":"/x","method":"POST","metered":true,"price":"0.2"}]}"#;
        for catalogue in [Catalogue::from_json(text), Catalogue::from_json(metering_sample::ROUTES)] {
            let (catalogue, config) = (catalogue.unwrap(), Config::default());
            let written = Description::new(&catalogue, &config).to_json(&catalogue).unwrap();
            assert!(written.starts_with(r#"{"openapi":"#), "readers look at the beginning");
            let mut expected = document(&catalogue);
            config.brand.name.as_str().clone_into(&mut expected.info.title);
            expected.servers = Some(vec![Server::new("/")]);
            let written: serde_json::Value = serde_json::from_str(&written).unwrap();
            assert_eq!(written, serde_json::to_value(expected).unwrap());
        }
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
            let document = served(&catalogue, &config);
            let described = |path: &str| document["paths"].get(path).is_some();
            assert_eq!((described("/credits/balance"), described("/mpp/ethPrice")), (account, metered), "{surfaces:?}");
            let operations = ENDPOINTS.iter().filter(|endpoint| endpoint.is_everywhere);
            assert!(operations.map(|endpoint| &*endpoint.path).all(described), "{surfaces:?}");
        }
    }

    #[test]
    fn title_and_server_are_the_operators() {
        let catalogue = Catalogue::from_json(metering_sample::ROUTES).unwrap();
        // public_url, the server's URL
        let table = [(None, "/"), (Some("https://api.example.com/"), "https://api.example.com")];
        for (public_url, url) in table {
            let mut config = Config { public_url: public_url.map(str::to_owned), ..Config::default() };
            config.brand = toml::from_str("name = 'Acme Data'").unwrap();
            let document = served(&catalogue, &config);
            assert_eq!(document["info"]["title"], "Acme Data");
            assert_eq!(document["servers"], serde_json::json!([{ "url": url }]));
        }
    }

    #[test]
    fn operation_ids_are_unique_identifiers() {
        let document = default_document();
        let operations = document["paths"].as_object().unwrap().values().flat_map(|item| item.as_object().unwrap());
        let ids: Vec<_> = operations.map(|(_, operation)| operation["operationId"].as_str().unwrap()).collect();
        let plain =
            |id: &str| id.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        for id in &ids {
            assert!(plain(id) && id.starts_with(|first: char| first.is_ascii_lowercase()), "{id}");
        }
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
    }

    #[test]
    fn endpoints_for_operators_are_marked() {
        let document = default_document();
        let internal = |path: &str, method: &str| document["paths"][path][method]["x-internal"] == true;
        for path in ["/metrics", "/health", "/ready"] {
            assert!(internal(path, "get") && internal(path, "head"), "{path}");
        }
        assert!(internal("/internal/billing/deduct", "post"));
        for path in ["/credits/balance", "/mpp/ethPrice", "/openapi.json", "/endpoints.json"] {
            assert!(!internal(path, "get"), "{path}");
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
        let ways_to_pay = &document["components"]["schemas"]["WaysToPay"];
        assert_eq!(ways_to_pay["required"], serde_json::Value::Null, "without a key there are no plans");
        for member in ["plans", "chains", "terms_url", "x402Version", "accepts"] {
            assert!(ways_to_pay["properties"][member].is_object(), "{member}: {ways_to_pay}");
        }
    }

    #[test]
    fn files_are_bytes_and_texts_are_strings() {
        let document = default_document();
        let content = |path: &str| document["paths"][path]["get"]["responses"]["200"]["content"].clone();
        let bytes = serde_json::json!({"application/pdf": {"schema": {"type": "string", "format": "binary"}}});
        assert_eq!(content("/credits/receipt.pdf"), bytes);
        assert_eq!(content("/credits/ledger.csv"), serde_json::json!({"text/csv": {"schema": {"type": "string"}}}));
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
