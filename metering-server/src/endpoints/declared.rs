//! The endpoint of a call that is declared as a type: how the OpenAPI document describes it.

use std::collections::BTreeMap;

use http::{Method, StatusCode};
use metering_core::wire::call::{Access, Call, Parameter, ParameterVisitor, Parameters, Refusal, has_body};
use metering_core::wire::{ErrorBody, ErrorCode};
use serde::Serialize;
use serde_json::Value;
use utoipa::openapi::path::{
    HttpMethod, Operation, OperationBuilder, Parameter as Described, ParameterBuilder, ParameterIn, PathItem,
};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::response::ResponseBuilder;
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

/// The error in a body that cannot be read.
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

/// A call as values, so that what describes it is compiled once, and not for each of more than a hundred calls.
struct Declared {
    id: &'static str,
    method: Method,
    path: &'static str,
    tag: &'static str,
    summary: &'static str,
    description: &'static str,
    access: Access,
    parameters: Vec<Described>,
    is_repeatable: bool,
    /// `None` if it takes none.
    body: Option<RefOr<Schema>>,
    is_body_optional: bool,
    success: (u16, &'static str),
    media: &'static str,
    /// `None` if it returns none.
    reply: Option<RefOr<Schema>>,
    refusals: &'static [Refusal],
}

/// The OpenAPI document of a call alone, with the schemas that it needs.
pub(crate) fn describe<C>() -> OpenApi
where
    C: Call<Body: ToSchema, Reply: ToSchema>,
{
    let mut schemas = vec![(ErrorBody::name().into_owned(), ErrorBody::schema())];
    let mut found = Found { path: C::PATH, parameters: Vec::new() };
    C::Parameters::each(&mut found);
    let declared = Declared {
        id: C::ID,
        method: C::METHOD,
        path: C::PATH,
        tag: C::TAG,
        summary: C::SUMMARY,
        description: C::DESCRIPTION,
        access: C::ACCESS,
        parameters: found.parameters,
        is_repeatable: C::IS_REPEATABLE,
        body: has_body::<C>().then(|| reference::<C::Body>(&mut schemas)),
        is_body_optional: C::IS_BODY_OPTIONAL,
        success: C::SUCCESS,
        media: C::MEDIA,
        reply: (C::SUCCESS.0 != 204).then(|| reference::<C::Reply>(&mut schemas)),
        refusals: C::REFUSALS,
    };
    declared.document(schemas)
}

impl Declared {
    fn document(self, schemas: Vec<(String, RefOr<Schema>)>) -> OpenApi {
        let method = match self.method {
            Method::POST => HttpMethod::Post,
            Method::PUT => HttpMethod::Put,
            Method::PATCH => HttpMethod::Patch,
            Method::DELETE => HttpMethod::Delete,
            _ => HttpMethod::Get,
        };
        OpenApiBuilder::new()
            .paths(PathsBuilder::new().path(self.path, PathItem::new(method, self.operation())).build())
            .components(Some(ComponentsBuilder::new().schemas_from_iter(schemas).build()))
            .build()
    }

    fn operation(self) -> Operation {
        let refusals = self.refusals();
        let description: Vec<_> = self.description.trim().lines().map(str::trim).collect();
        let mut parameters = self.parameters;
        if self.is_repeatable {
            parameters.push(idempotency_key());
        }
        let mut operation = OperationBuilder::new()
            .operation_id(Some(self.id))
            .tag(self.tag)
            .summary(Some(self.summary.trim()))
            .description((!description.is_empty()).then(|| description.join("\n")))
            .parameters((!parameters.is_empty()).then_some(parameters));
        for schemes in self.access.schemes {
            let needed = schemes
                .iter()
                .fold(SecurityRequirement::default(), |needed, scheme| needed.add::<_, [&str; 0], &str>(*scheme, []));
            operation = operation.security(needed);
        }
        if let Some(body) = self.body {
            let content = ContentBuilder::new().schema(Some(body)).build();
            let required = if self.is_body_optional { Required::False } else { Required::True };
            operation = operation
                .request_body(Some(RequestBodyBuilder::new().content(JSON, content).required(Some(required)).build()));
        }
        let (status, success) = self.success;
        let mut response = ResponseBuilder::new().description(success);
        if let Some(reply) = self.reply {
            let is_file = self.media != JSON && !self.media.ends_with("+json") && !self.media.starts_with("text/");
            let reply = if is_file { file() } else { reply };
            response = response.content(self.media, ContentBuilder::new().schema(Some(reply)).build());
        }
        operation = operation.response(status.to_string(), response.build());
        for (status, description) in refusals {
            operation = operation.response(status.to_string(), error(&description));
        }
        operation.build()
    }

    /// The refusals of the call by HTTP status, each code with its description.
    fn refusals(&self) -> BTreeMap<u16, String> {
        let malformed = if self.body.is_some() { &MALFORMED[..] } else { &[] };
        let common = malformed.iter().chain(self.access.refusals);
        let common = common.filter(|(code, _)| self.refusals.iter().all(|(own, _)| own != code));
        let mut by_status = BTreeMap::<u16, String>::new();
        for (code, text) in common.chain(self.refusals) {
            let said = by_status.entry(code.status()).or_default();
            let separator = if said.is_empty() { "" } else { "; " };
            let colon = if text.is_empty() { "" } else { ": " };
            said.push_str(&format!("{separator}`{}`{colon}{text}", code.as_str()));
        }
        by_status
    }
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

/// The schema of a file, so that generated clients return its bytes.
fn file() -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::String).format(Some(SchemaFormat::KnownFormat(KnownFormat::Binary))).into()
}

/// The schema of a document: by its name, unless it is only a text. Adds the schema behind the name to the schemas.
fn reference<T: ToSchema>(schemas: &mut Vec<(String, RefOr<Schema>)>) -> RefOr<Schema> {
    let schema = if is_text::<T>() {
        T::schema()
    } else {
        schemas.push((T::name().into_owned(), T::schema()));
        RefOr::Ref(Ref::from_schema_name(T::name()))
    };
    T::schemas(schemas);
    schema
}

fn is_text<T: ToSchema>() -> bool {
    T::name() == "String"
}
