//! Serves calls: each is declared once, in `metering-admin`.

use std::collections::BTreeMap;

use http::{Method, StatusCode};
use metering_admin::{Authority, Body, Call, Described, Given, Parameters, Visitor, calls};
use metering_core::operators::{Actor, Role};
use metering_core::wire::{ErrorBody, ErrorCode};
use utoipa::openapi::path::{HttpMethod, OperationBuilder, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::response::{Response, ResponseBuilder};
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{ComponentsBuilder, ContentBuilder, OpenApi, OpenApiBuilder, PathsBuilder, Ref, RefOr, Required};
use utoipa::{PartialSchema, ToSchema};

use super::app::AdminApp;
use super::session::no_content;
use crate::endpoints::{Endpoint, Request, body};
use crate::http::{Problem, Reply, json};

/// The endpoints of all calls.
pub(super) fn endpoints() -> Vec<Endpoint<AdminApp>> {
    let mut endpoints = Endpoints(Vec::new());
    calls::each(&mut endpoints);
    endpoints.0
}

struct Endpoints(Vec<Endpoint<AdminApp>>);

impl Visitor for Endpoints {
    fn call<C: Call>(&mut self) {
        let endpoint =
            Endpoint::declared(C::METHOD, C::PATH, |app, request| Box::pin(serve::<C>(app, request)), describe::<C>);
        // What is read has no secrets.
        self.0.push(if C::METHOD == Method::GET { endpoint.compressed() } else { endpoint });
    }
}

async fn serve<C: Call>(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    // The caller is authenticated first, so that only operators learn what is wrong with a request.
    let caller = app.viewer(&request).await?;
    let body = match C::Body::none() {
        Some(none) => none,
        None => body::read(&request.body)?,
    };
    if C::By::ROLE == Role::Manager {
        caller.check_manager(&request.headers)?;
    }
    let by = C::By::of(Actor::Operator(caller.operator.name), body.reason())?;
    let parameters = C::Parameters::read(&Given::to::<C>(&request.path, &request.query))?;
    let reply = C::run(&app.administration, &by, parameters, body).await?;
    if C::By::ROLE == Role::Manager {
        // Some actions have something delivered.
        app.app.wake_courier.wake();
    }
    match StatusCode::from_u16(C::SUCCESS.0) {
        Ok(StatusCode::NO_CONTENT) => Ok(no_content()),
        Ok(status) => Ok(json(status, &reply)),
        Err(_) => Err(Problem::internal()),
    }
}

/// The OpenAPI document of a call alone, with the schemas that it needs.
fn describe<C: Call>() -> OpenApi {
    let places = format!("{}/", C::PATH);
    let parameters =
        C::Parameters::described().into_iter().map(|Described { name, description, is_required, schema }| {
            let is_place = places.contains(&format!("{{{name}}}"));
            ParameterBuilder::new()
                .name(name)
                .parameter_in(if is_place { ParameterIn::Path } else { ParameterIn::Query })
                .required(if is_required { Required::True } else { Required::False })
                .description(Some(description))
                .schema(Some(schema))
                .build()
        });
    let parameters: Vec<_> = parameters.collect();
    let mut schemas = vec![(ErrorBody::name().into_owned(), ErrorBody::schema())];
    let (status, success) = C::SUCCESS;
    let has_reply = status != 204;
    let responses =
        refusals(C::REFUSALS).into_iter().map(|(status, text)| (status, response::<ErrorBody>(&text, true)));
    let responses: Vec<_> = responses.chain([(status, response::<C::Reply>(success, has_reply))]).collect();
    let mut operation = OperationBuilder::new()
        .operation_id(Some(C::ID))
        .tag(C::TAG)
        .summary(Some(C::SUMMARY.trim()))
        .description(Some(C::DESCRIPTION.trim()).filter(|text| !text.is_empty()))
        .parameters((!parameters.is_empty()).then_some(parameters))
        .security(SecurityRequirement::new("operator", Vec::<String>::new()));
    for (status, response) in responses {
        operation = operation.response(status.to_string(), response);
    }
    if C::Body::none().is_none() {
        add::<C::Body>(&mut schemas);
        let content = ContentBuilder::new().schema(Some(reference::<C::Body>())).build();
        let body = RequestBodyBuilder::new().content("application/json", content).required(Some(Required::True));
        operation = operation.request_body(Some(body.build()));
    }
    if has_reply {
        add::<C::Reply>(&mut schemas);
    }
    let method = match C::METHOD {
        Method::POST => HttpMethod::Post,
        Method::PUT => HttpMethod::Put,
        Method::PATCH => HttpMethod::Patch,
        Method::DELETE => HttpMethod::Delete,
        _ => HttpMethod::Get,
    };
    OpenApiBuilder::new()
        .paths(PathsBuilder::new().path(C::PATH, PathItem::new(method, operation.build())).build())
        .components(Some(ComponentsBuilder::new().schemas_from_iter(schemas).build()))
        .build()
}

/// Groups the refusals by HTTP status, each code with its description.
fn refusals(refusals: &[(ErrorCode, &str)]) -> BTreeMap<u16, String> {
    let mut by_status = BTreeMap::<u16, String>::new();
    for (code, text) in refusals {
        let said = by_status.entry(code.status()).or_default();
        let separator = if said.is_empty() { "" } else { "; " };
        let colon = if text.is_empty() { "" } else { ": " };
        said.push_str(&format!("{separator}`{}`{colon}{text}", code.as_str()));
    }
    by_status
}

fn response<T: ToSchema>(description: &str, has_body: bool) -> Response {
    let response = ResponseBuilder::new().description(description);
    if !has_body {
        return response.build();
    }
    let content = ContentBuilder::new().schema(Some(reference::<T>())).build();
    response.content("application/json", content).build()
}

/// The schema of a document: by its name, unless it is only a text.
fn reference<T: ToSchema>() -> RefOr<utoipa::openapi::Schema> {
    if is_text::<T>() { T::schema() } else { RefOr::Ref(Ref::from_schema_name(T::name())) }
}

fn add<T: ToSchema>(schemas: &mut Vec<(String, RefOr<utoipa::openapi::Schema>)>) {
    if !is_text::<T>() {
        schemas.push((T::name().into_owned(), T::schema()));
    }
    T::schemas(schemas);
}

fn is_text<T: ToSchema>() -> bool {
    T::name() == "String"
}
