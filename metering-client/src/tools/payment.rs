//! The payment of a tool call: a header of its request, and the payment members of its result.

use http::request::Parts;
use http::{HeaderMap, StatusCode, header::WWW_AUTHENTICATE};
use metering_core::Error;
use metering_core::wire::{ACCEPT_PAYMENT_HEADER, ErrorBody, PAYMENT_REQUIRED_HEADER};
use metering_pay::offers::PayRefusal;
use metering_pay::wire::mcp::{
    MPP_CREDENTIAL_META, MPP_REQUIRED_META, PaymentForm, payment_challenges, payment_header, payment_results,
};
use metering_pay::wire::x402::PricedTool;
use rmcp::model::{CallToolResult, ErrorCode, JsonObject};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Map, Value, json};

use super::document::{Document, Json};
use crate::client::Client;
use crate::error::ClientError;
use crate::response::header;

/// JSON-RPC errors of draft-payment-transport-mcp-00. MCP 2025-11-25 uses the first for another purpose too;
/// `challenges` in its data tell them apart.
const PAYMENT_REQUIRED: ErrorCode = ErrorCode(-32_042);
const VERIFICATION_FAILED: ErrorCode = ErrorCode(-32_043);
/// The capability of clients of MPP, among the experimental ones.
const CAPABILITY: &str = "payment";

/// The MPP data of a call. A client that supports it gets challenges as an error of JSON-RPC, as the draft requires.
/// Others get a result: clients of x402 and models read nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mpp {
    /// Nothing.
    Unknown,
    /// Its client supports MPP.
    Known,
    /// It has a credential.
    Pays,
}

impl Mpp {
    /// Clients show MPP support by a credential, by the header `Accept-Payment` of their HTTP requests, or by the
    /// capability `experimental.payment`.
    pub(super) fn of(context: &RequestContext<RoleServer>) -> Self {
        if context.meta.get(MPP_CREDENTIAL_META).is_some_and(|credential| !credential.is_null()) {
            return Self::Pays;
        }
        let head = context.extensions.get::<Parts>();
        let has_header = head.is_some_and(|head| head.headers.contains_key(ACCEPT_PAYMENT_HEADER));
        let experimental = || context.client_capabilities().and_then(|capabilities| capabilities.experimental);
        if has_header || experimental().is_some_and(|experimental| experimental.contains_key(CAPABILITY)) {
            Self::Known
        } else {
            Self::Unknown
        }
    }

    /// The response to a payment that cannot be read. Nothing was taken.
    ///
    /// # Errors
    /// For clients with MPP support: invalid parameters.
    pub(super) fn unreadable(self, body: &ErrorBody) -> Result<CallToolResult, ErrorData> {
        match self {
            Self::Pays => Err(ErrorData::invalid_params(body.message.clone(), Some(json!({"detail": body.message})))),
            Self::Unknown | Self::Known => Ok(Document::from(body).into_error()),
        }
    }

    /// The result of a refused call.
    ///
    /// # Errors
    /// For clients with MPP support, if it has challenges: they and the members of the refusal are in the error's data.
    pub(super) fn refused(self, result: CallToolResult) -> Result<CallToolResult, ErrorData> {
        let required = result.meta.as_ref().and_then(|meta| meta.get(MPP_REQUIRED_META));
        let challenges = required.and_then(|required| required.get("challenges")).cloned();
        let (code, kind, title) = match self {
            Self::Unknown => return Ok(result),
            Self::Known => (PAYMENT_REQUIRED, "payment-required", "Payment Required"),
            Self::Pays => (VERIFICATION_FAILED, "verification-failed", "Payment Verification Failed"),
        };
        let Some(challenges) = challenges else { return Ok(result) };
        let mut data = match result.structured_content {
            Some(Value::Object(refusal)) => refusal,
            _ => Map::new(),
        };
        let (reason, detail) = (data.get("error").cloned(), data.get("message").cloned());
        let problem = json!({
            "type": format!("https://paymentauth.org/problems/{kind}"), "title": title, "status": 402, "detail": detail,
        });
        if self == Self::Pays {
            data.insert("failure".to_owned(), json!({"reason": reason, "detail": detail}));
        }
        data.extend([
            ("httpStatus".to_owned(), 402.into()),
            ("challenges".to_owned(), challenges),
            ("problem".to_owned(), problem),
        ]);
        Err(ErrorData::new(code, title, Some(data.into())))
    }
}

/// The tool of a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct CalledTool<'t> {
    /// Its name in the call.
    pub(super) name: &'t str,
    /// How it is listed, if it calls a route.
    pub(super) priced: Option<PricedTool<'t>>,
}

/// The payment of a call, if it has one.
#[derive(Debug, Default)]
pub(super) struct Payment {
    header: Option<(&'static str, String)>,
}

impl Payment {
    /// Reads the payment in `_meta` of a call.
    ///
    /// # Errors
    /// When it cannot be read. Nothing was taken.
    pub(super) fn read(meta: &JsonObject) -> Result<Self, Box<ErrorBody>> {
        let header = payment_header(meta).map_err(|error| Error::from(PayRefusal::Malformed(error)).body())?;
        Ok(Self { header })
    }

    /// The client whose requests carry the payment. `Accept-Payment` also keeps its key out of `Authorization`, so a
    /// credential can be there.
    ///
    /// # Errors
    /// When it cannot be a header.
    pub(super) fn client(&self, client: &Client) -> Result<Client, ClientError> {
        let client = client.with_header(ACCEPT_PAYMENT_HEADER, "evm/charge")?;
        match &self.header {
            Some((name, value)) => client.with_header(name, value),
            None => Ok(client),
        }
    }

    /// The result, with the payment members of the response.
    pub(super) fn complete(&self, mut result: CallToolResult, headers: &HeaderMap) -> CallToolResult {
        // Only the gateway's headers are trusted: an upstream may send such headers with any response.
        if self.header.is_some() {
            for (name, value) in payment_results(|name| header(headers, name)) {
                result.meta.get_or_insert_default().insert(name.to_owned(), value);
            }
        }
        result
    }
}

/// The result of a refused call, with the challenges of MPP, if the response has any next to its offers.
pub(super) fn with_challenges(mut result: CallToolResult, headers: &HeaderMap) -> CallToolResult {
    let is_payable = result.structured_content.as_ref().is_some_and(|error| error.get("accepts").is_some());
    let lines = headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|line| line.to_str().ok());
    if let Some(challenges) = payment_challenges(lines).filter(|_| is_payable) {
        result.meta.get_or_insert_default().insert(MPP_REQUIRED_META.to_owned(), challenges);
    }
    result
}

/// The refusal of a tool's call, with the offers of its response in the form that clients of x402 read.
pub(super) fn with_offers(
    document: Document,
    tool: CalledTool<'_>,
    status: StatusCode,
    headers: &HeaderMap,
) -> Document {
    let form = header(headers, PAYMENT_REQUIRED_HEADER).filter(|_| status == StatusCode::PAYMENT_REQUIRED);
    let Some(form) = form.and_then(|text| PaymentForm::of_tool(tool.name, text)) else { return document };
    let form = match &tool.priced {
        Some(priced) => form.described(priced),
        None => form,
    };
    let document = document.without(&PaymentForm::MEMBERS);
    form.into_members().fold(document, |document, (name, value)| document.with(name, Json::from(value)))
}
