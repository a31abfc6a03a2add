//! The endpoint of a call that is declared as a type: how the OpenAPI document describes it.

use std::collections::BTreeMap;

use http::{Method, StatusCode};
use metering_core::wire::call::{Call, Parameter, ParameterVisitor, Parameters, Refusal, has_body};
use metering_core::wire::{ErrorBody, ErrorCode};
use serde::Serialize;
use serde_json::Value;
use utoipa::openapi::path::{
    HttpMethod, Operation, OperationBuilder, Parameter as Described, ParameterBuilder, ParameterIn, PathItem,
};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::response::{Response, ResponseBuilder};
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{
    ComponentsBuilder, ContentBuilder, KnownFormat, OpenApi, OpenApiBuilder, PathsBuilder, Ref, RefOr, Required,
    SchemaFormat,
};
use utoipa::{PartialSchema, ToSchema};

use super::errors::error;
use crate::http::{Problem, Reply, json};

const JSON: &str = "application/json";

/// What is wrong with a body that cannot be read.
const MALFORMED: [Refusal; 2] = [(ErrorCode::InvalidJson, ""), (ErrorCode::ValidationFailed, "")];

/// The response to a call that succeeded.
///
/// # Errors
/// 500 when the call declares a status that does not exist.
pub(crate) fn reply<C>(reply: &C::Reply) -> Result<Reply, Problem>
where
    C: Call<Reply: Serialize>,
{
    let status = StatusCode::from_u16(C::SUCCESS.0).map_err(|_| Problem::internal())?;
    Ok(json(status, reply))
}

/// The OpenAPI document of a call alone, with the schemas that it needs.
pub(crate) fn describe<C>() -> OpenApi
where
    C: Call<Body: ToSchema, Reply: ToSchema>,
{
    let mut schemas = vec![(ErrorBody::name().into_owned(), ErrorBody::schema())];
    if has_body::<C>() {
        add::<C::Body>(&mut schemas);
    }
    if C::SUCCESS.0 != 204 {
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
        .paths(PathsBuilder::new().path(C::PATH, PathItem::new(method, operation::<C>())).build())
        .components(Some(ComponentsBuilder::new().schemas_from_iter(schemas).build()))
        .build()
}

fn operation<C>() -> Operation
where
    C: Call<Body: ToSchema, Reply: ToSchema>,
{
    let description: Vec<_> = C::DESCRIPTION.trim().lines().map(str::trim).collect();
    let parameters = parameters::<C>();
    let mut operation = OperationBuilder::new()
        .operation_id(Some(C::ID))
        .tag(C::TAG)
        .summary(Some(C::SUMMARY.trim()))
        .description((!description.is_empty()).then(|| description.join("\n")))
        .parameters((!parameters.is_empty()).then_some(parameters));
    for schemes in C::ACCESS.schemes {
        let needed = schemes
            .iter()
            .fold(SecurityRequirement::default(), |needed, scheme| needed.add::<_, [&str; 0], &str>(*scheme, []));
        operation = operation.security(needed);
    }
    if has_body::<C>() {
        let content = ContentBuilder::new().schema(Some(reference::<C::Body>())).build();
        let required = if C::IS_BODY_OPTIONAL { Required::False } else { Required::True };
        operation = operation
            .request_body(Some(RequestBodyBuilder::new().content(JSON, content).required(Some(required)).build()));
    }
    let (status, success) = C::SUCCESS;
    operation =
        operation.response(status.to_string(), response::<C::Reply>(success, (status != 204).then_some(C::MEDIA)));
    for (status, description) in refusals::<C>() {
        operation = operation.response(status.to_string(), error(&description));
    }
    operation.build()
}

/// The refusals of a call by HTTP status, each code with its description.
fn refusals<C: Call>() -> BTreeMap<u16, String> {
    let malformed = if has_body::<C>() { &MALFORMED[..] } else { &[] };
    let common = malformed.iter().chain(C::ACCESS.refusals);
    let common = common.filter(|(code, _)| C::REFUSALS.iter().all(|(own, _)| own != code));
    let mut by_status = BTreeMap::<u16, String>::new();
    for (code, text) in common.chain(C::REFUSALS) {
        let said = by_status.entry(code.status()).or_default();
        let separator = if said.is_empty() { "" } else { "; " };
        let colon = if text.is_empty() { "" } else { ": " };
        said.push_str(&format!("{separator}`{}`{colon}{text}", code.as_str()));
    }
    by_status
}

fn parameters<C: Call>() -> Vec<Described> {
    let mut found = Found { path: C::PATH, parameters: Vec::new() };
    C::Parameters::each(&mut found);
    if C::IS_REPEATABLE {
        found.parameters.push(idempotency_key());
    }
    found.parameters
}

/// The parameters of a call at this path.
struct Found {
    path: &'static str,
    parameters: Vec<Described>,
}

impl ParameterVisitor for Found {
    fn parameter<P: Parameter>(&mut self, name: &'static str, description: &'static str, example: Option<Value>) {
        let is_place = self.path.split('/').any(|segment| segment == format!("{{{name}}}"));
        let parameter = ParameterBuilder::new()
            .name(name)
            .parameter_in(if is_place { ParameterIn::Path } else { ParameterIn::Query })
            .required(if P::IS_REQUIRED { Required::True } else { Required::False })
            .description(Some(description.trim()))
            .schema(Some(P::schema()))
            .example(example);
        self.parameters.push(parameter.build());
    }
}

/// The header that makes a lost response available again.
fn idempotency_key() -> Described {
    let schema = ObjectBuilder::new().schema_type(Type::String).min_length(Some(32)).max_length(Some(258));
    ParameterBuilder::new()
        .name("Idempotency-Key")
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(
            "Makes a lost response available again. At least 32 random characters, such as a UUID; keep it secret",
        ))
        .schema(Some(schema))
        .build()
}

fn response<T: ToSchema>(description: &str, media: Option<&str>) -> Response {
    let response = ResponseBuilder::new().description(description);
    let Some(media) = media else { return response.build() };
    let schema = if media == JSON || media.starts_with("text/") { reference::<T>() } else { file() };
    response.content(media, ContentBuilder::new().schema(Some(schema)).build()).build()
}

/// The schema of a file, so that generated clients return its bytes.
fn file() -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::String).format(Some(SchemaFormat::KnownFormat(KnownFormat::Binary))).into()
}

/// The schema of a document: by its name, unless it is only a text.
fn reference<T: ToSchema>() -> RefOr<Schema> {
    if is_text::<T>() { T::schema() } else { RefOr::Ref(Ref::from_schema_name(T::name())) }
}

fn add<T: ToSchema>(schemas: &mut Vec<(String, RefOr<Schema>)>) {
    if !is_text::<T>() {
        schemas.push((T::name().into_owned(), T::schema()));
    }
    T::schemas(schemas);
}

fn is_text<T: ToSchema>() -> bool {
    T::name() == "String"
}
