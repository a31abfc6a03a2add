//! Error responses of the OpenAPI documents: one component for each HTTP status, which operations reference.

use http::StatusCode;
use metering_core::wire::ErrorCode;
use utoipa::openapi::path::Operation;
use utoipa::openapi::response::{Response, ResponseBuilder};
use utoipa::openapi::{ContentBuilder, OpenApi, PathItem, Ref, RefOr};

/// Adds the components, with the meaning of each code, and makes the errors of all operations reference them.
pub(crate) fn share(document: &mut OpenApi) {
    let components = document.components.get_or_insert_default();
    for code in ErrorCode::ALL {
        let of_status = ErrorCode::ALL.iter().filter(|other| other.status() == code.status());
        let meanings: Vec<_> = of_status.map(|code| format!("- `{code}`: {}", code.meaning())).collect();
        components.responses.entry(name(code.status())).or_insert_with(|| error(&meanings.join("\n")).into());
    }
    reference(document);
}

/// Makes the errors of all operations reference the components of [`share`]. An operation's own text about its codes
/// stays next to the reference.
pub(crate) fn reference(document: &mut OpenApi) {
    for operation in document.paths.paths.values_mut().flat_map(operations) {
        for (status, response) in &mut operation.responses.responses {
            let (RefOr::T(inline), Ok(status)) = (&*response, status.parse()) else { continue };
            if *inline == error(&inline.description) {
                let mut shared = Ref::from_response_name(name(status));
                shared.description.clone_from(&inline.description);
                *response = RefOr::Ref(shared);
            }
        }
    }
}

/// The operations of a path, by method.
pub(crate) fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let PathItem { get, head, post, put, delete, patch, options, trace, .. } = item;
    [get, head, post, put, delete, patch, options, trace].into_iter().flatten()
}

/// The response with an error.
pub(crate) fn error(description: &str) -> Response {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("ErrorBody"))).build();
    ResponseBuilder::new().description(description).content("application/json", content).build()
}

/// The name of the component of a status: `BadRequest`.
fn name(status: u16) -> String {
    let status = StatusCode::from_u16(status).ok();
    status.and_then(|status| status.canonical_reason()).unwrap_or("Error").split(' ').collect()
}
