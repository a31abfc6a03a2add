//! The payment of a tool call: a header of its request, and what its result says about it.

use http::{HeaderMap, StatusCode, header::WWW_AUTHENTICATE};
use metering_core::Error;
use metering_core::wire::{ACCEPT_PAYMENT_HEADER, ErrorBody, PAYMENT_REQUIRED_HEADER};
use metering_pay::offers::PayRefusal;
use metering_pay::wire::mcp::{MPP_REQUIRED_META, PaymentForm, payment_challenges, payment_header, payment_results};
use metering_pay::wire::x402::PricedTool;
use rmcp::model::{CallToolResult, JsonObject};

use super::document::{Document, Json};
use crate::client::Client;
use crate::error::ClientError;
use crate::response::header;

/// The tool of a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct CalledTool<'t> {
    /// Its name in the call.
    pub(super) name: &'t str,
    /// How it is listed, if it calls a route.
    pub(super) priced: Option<PricedTool<'t>>,
}

/// What a call pays with, if it pays.
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

    /// The client whose requests carry the payment, and ask for the offers of all protocols.
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

    /// The result, with what the response says about the payment.
    pub(super) fn complete(&self, mut result: CallToolResult, headers: &HeaderMap) -> CallToolResult {
        // Only the gateway's word counts: an upstream may send such headers with any response.
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
