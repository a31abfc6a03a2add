//! One tool call: its request, and the result built from the response.

use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use http::Method;
use metering_core::catalogue::Route;
use metering_core::wire::MAX_COST_HEADER;
use rmcp::model::CallToolResult;
use tokio::time::Instant;

use super::arguments::ToolRequest;
use super::document::{Document, Json};
use super::failure::{Failure, RESULT_BYTES_MAX, with_money};
use super::payment::Payment;
use super::receipt;
use super::settled::with_cost;
use super::stream::{Gathered, gather};
use crate::client::Client;
use crate::error::ClientError;
use crate::events::{Events, is_event_stream};
use crate::response::OpenResponse;

/// Calls a metered route.
///
/// # Errors
/// When the call fails.
pub(super) async fn route(
    client: &Client,
    route: &Route,
    request: &ToolRequest,
    payment: &Payment,
    stream_wait: Duration,
) -> Result<CallToolResult, Failure> {
    let deadline = Instant::now() + stream_wait;
    let method = Method::from_bytes(route.method.as_bytes());
    let method = method.map_err(|_| ClientError::Garbled(format!("{:?} is not an HTTP method", route.method)))?;
    let mut paying = payment.client(client)?;
    if let Some(max_cost) = &request.max_cost {
        paying = paying.with_header(MAX_COST_HEADER, max_cost)?;
    }
    let body = request.body.clone().map(Bytes::from);
    let response = if route.sse {
        paying.open_stream(method, &request.target, body, None).await?
    } else {
        paying.open(method, &request.target, body).await?
    };
    let mut headers = response.headers.clone();
    let (data, is_ended) = if route.sse && is_event_stream(&headers) {
        let events = Events::read(response)?;
        let gathered = gather(events, request.max_events, deadline).await;
        let Gathered { document, is_ended } = gathered.map_err(|error| Failure::Body(error, headers.clone()))?;
        (document.into(), is_ended)
    } else {
        (Json::or_text(&read_body(response).await?), true)
    };
    if is_ended {
        headers = with_cost(client, &headers).await;
    }
    let result = with_money(Document::new().with("data", data), &headers).into_result();
    Ok(receipt::complete(payment.complete(result, &headers), &headers))
}

/// Gets one of the service's own documents and returns it unchanged.
///
/// # Errors
/// When the call fails.
pub(super) async fn document(client: &Client, target: &str) -> Result<CallToolResult, Failure> {
    let response = client.open(Method::GET, target, None).await?;
    let document = Document::parse(&read_body(response).await?);
    Ok(document.ok_or_else(|| ClientError::Garbled("the body is not a JSON object".to_owned()))?.into_result())
}

async fn read_body(response: OpenResponse) -> Result<Bytes, Failure> {
    let OpenResponse { headers, mut body, .. } = response;
    let mut bytes = Vec::new();
    while let Some(chunk) = body.next().await {
        let chunk = match chunk {
            Ok(chunk) => chunk,
            Err(error) => return Err(Failure::Body(error.into(), headers)),
        };
        if bytes.len() + chunk.len() > RESULT_BYTES_MAX {
            return Err(Failure::TooLarge(headers));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes.into())
}
