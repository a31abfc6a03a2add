//! One tool call: its request, and the result built from the response.

use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use http::Method;
use metering_core::Route;
use rmcp::model::CallToolResult;
use tokio::time::Instant;

use super::arguments::Asked;
use super::document::{Document, Json};
use super::failure::{Failure, RESULT_BYTES_MAX, with_money};
use super::stream::gather;
use crate::answer::OpenAnswer;
use crate::client::Client;
use crate::error::ClientError;
use crate::events::{Events, is_event_stream};

/// Calls a metered route.
///
/// # Errors
/// When the call fails.
pub(super) async fn route(
    client: &Client,
    route: &Route,
    asked: &Asked,
    stream_wait: Duration,
) -> Result<CallToolResult, Failure> {
    let deadline = Instant::now() + stream_wait;
    let method = Method::from_bytes(route.method.as_bytes());
    let method = method.map_err(|_| ClientError::Garbled(format!("{:?} is not an HTTP method", route.method)))?;
    let answer = if route.sse {
        client.open_stream(method, &asked.target, None).await?
    } else {
        client.open(method, &asked.target, None).await?
    };
    let headers = answer.headers.clone();
    let data = if route.sse && is_event_stream(&headers) {
        let events = Events::read(answer)?;
        let gathered = gather(events, asked.max_events, deadline).await;
        gathered.map_err(|error| Failure::Body(error, headers.clone()))?.into()
    } else {
        Json::or_text(&whole(answer).await?)
    };
    Ok(with_money(Document::new().with("data", data), &headers).into_result())
}

/// Gets one of the service's own documents and returns it unchanged.
///
/// # Errors
/// When the call fails.
pub(super) async fn document(client: &Client, target: &str) -> Result<CallToolResult, Failure> {
    let answer = client.open(Method::GET, target, None).await?;
    let document = Document::parse(&whole(answer).await?);
    Ok(document.ok_or_else(|| ClientError::Garbled("the body is not a JSON object".to_owned()))?.into_result())
}

async fn whole(answer: OpenAnswer) -> Result<Bytes, Failure> {
    let OpenAnswer { headers, mut body, .. } = answer;
    let mut whole = Vec::new();
    while let Some(chunk) = body.next().await {
        let chunk = match chunk {
            Ok(chunk) => chunk,
            Err(error) => return Err(Failure::Body(error.into(), headers)),
        };
        if whole.len() + chunk.len() > RESULT_BYTES_MAX {
            return Err(Failure::TooLarge(headers));
        }
        whole.extend_from_slice(&chunk);
    }
    Ok(whole.into())
}
