//! The signed receipt of a tool call: how a call requests it, and where its result has it.

use http::request::Parts;
use http::{HeaderMap, HeaderValue};
use metering_core::wire::{ErrorBody, ErrorCode, PREFER_HEADER, RECEIPT_HEADER, prefers_receipt};
use rmcp::RoleServer;
use rmcp::model::CallToolResult;
use rmcp::service::RequestContext;
use serde_json::Value;

use crate::client::Client;
use crate::response::header;

/// The member of `_meta`: `true` in a call requests a receipt, and in a result it is the receipt.
const RECEIPT_META: &str = "dev.metering/receipt";

/// The client whose requests ask for a receipt, if the call requests one: in `_meta`, else by the header `Prefer` of
/// its HTTP request.
///
/// # Errors
/// When the member of `_meta` is not true or false. Nothing was sent.
pub(super) fn asking(client: Client, context: &RequestContext<RoleServer>) -> Result<Client, Box<ErrorBody>> {
    let is_asked = match context.meta.get(RECEIPT_META) {
        Some(Value::Bool(is_asked)) => *is_asked,
        None | Some(Value::Null) => {
            let head = context.extensions.get::<Parts>();
            let lines = head.into_iter().flat_map(|head| head.headers.get_all(PREFER_HEADER));
            prefers_receipt(lines.map(HeaderValue::as_bytes))
        }
        Some(_) => {
            let message = format!("_meta[\"{RECEIPT_META}\"] must be true or false. Nothing was charged.");
            return Err(Box::new(ErrorBody::new(ErrorCode::ValidationFailed, message)));
        }
    };
    if !is_asked {
        return Ok(client);
    }
    Ok(client.with_header(PREFER_HEADER, RECEIPT_HEADER).expect("the name of a header is also a value of one"))
}

/// The result, with the receipt of its response. Routes and accounts that always get one need not request it.
pub(super) fn complete(mut result: CallToolResult, headers: &HeaderMap) -> CallToolResult {
    if let Some(receipt) = header(headers, RECEIPT_HEADER) {
        result.meta.get_or_insert_default().insert(RECEIPT_META.to_owned(), receipt.into());
    }
    result
}
