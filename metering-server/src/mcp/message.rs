//! Parses MCP messages from HTTP bodies, and writes refusals as clients of Streamable HTTP show them.

use std::convert::Infallible;

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt;
use metering_core::wire::ErrorCode;
use metering_pay::wire::mcp::MPP_CREDENTIAL_META;
use rmcp::model::{
    CallToolRequestMethod, ClientJsonRpcMessage, ClientRequest, ConstString, ErrorCode as RpcCode, ErrorData, GetMeta,
    JsonRpcError, JsonRpcMessage, ProtocolVersion, RequestId, SubscriptionsListenRequestMethod,
};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

use crate::http::{Problem, Reply, json};
use crate::pages::ErrorLinks;

/// The method that opens a session.
const INITIALIZE: &str = "initialize";
/// The notification that cancels a call.
const CANCELLED: &str = "notifications/cancelled";

/// The header with the version of MCP that a request is of.
const VERSION_HEADER: &str = "mcp-protocol-version";

/// The kind of a message, as far as it matters outside of rmcp.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// A call, which has this id.
    Call(RequestId),
    /// The call that opens a session.
    Initialize(RequestId),
    /// A call whose response is a stream of changes.
    Subscription,
    /// The end of a call with this id.
    Cancelled(RequestId),
    /// Something else, or unreadable. rmcp reports what is wrong with it.
    Other,
}

#[derive(Debug, Deserialize)]
struct Envelope {
    id: Option<RequestId>,
    method: String,
    #[serde(default)]
    params: Named,
}

#[derive(Debug, Default, Deserialize)]
struct Named {
    #[serde(rename = "requestId")]
    request_id: Option<RequestId>,
}

#[derive(Debug, Deserialize)]
struct ToolCall {
    method: String,
    params: CalledTool,
}

#[derive(Debug, Deserialize)]
struct CalledTool {
    name: String,
}

#[derive(Debug, Deserialize)]
struct Root {
    #[serde(rename = "_meta")]
    meta: Option<IgnoredAny>,
}

impl Subject {
    /// Reads a message's method and id, and skips the rest.
    pub(super) fn of(body: &[u8]) -> Self {
        match serde_json::from_slice(body) {
            Ok(Envelope { id: Some(id), method, .. }) if method == INITIALIZE => Self::Initialize(id),
            Ok(Envelope { id: Some(_), method, .. }) if method == SubscriptionsListenRequestMethod::VALUE => {
                Self::Subscription
            }
            Ok(Envelope { id: Some(id), .. }) => Self::Call(id),
            Ok(Envelope { id: None, method, params: Named { request_id: Some(id) } }) if method == CANCELLED => {
                Self::Cancelled(id)
            }
            _ => Self::Other,
        }
    }
}

/// The name of the tool that a message calls; `None` for other messages, and those that rmcp refuses.
pub(super) fn called_tool(body: &[u8]) -> Option<String> {
    let ToolCall { method, params } = serde_json::from_slice(body).ok()?;
    (method == CallToolRequestMethod::VALUE).then_some(params.name)
}

/// A refusal of a request over Streamable HTTP, as an error of JSON-RPC. Newer SDKs show only the message of such an
/// error; older ones show the whole body. Its `data` is the usual error document. It has no id: many requests are
/// refused before their body is read.
pub(super) fn refusal(problem: Problem, links: &ErrorLinks) -> Reply {
    let code = match (problem.code(), problem.code().status()) {
        (ErrorCode::InvalidJson, _) => RpcCode::PARSE_ERROR,
        (_, 400 | 404..=406 | 413 | 415) => RpcCode::INVALID_REQUEST,
        (_, 500..) => RpcCode::INTERNAL_ERROR,
        // Of the codes that servers define themselves.
        _ => RpcCode(-32_000),
    };
    let message = problem.message().to_owned();
    links.link(problem.into_reply()).map(|body| {
        let data = serde_json::from_slice::<Value>(&body).ok();
        let error = json!({"code": code.0, "message": message, "data": data});
        json!({"jsonrpc": "2.0", "id": null, "error": error}).to_string().into()
    })
}

/// The error for a request whose header names a version of MCP that is not spoken (MCP 2026-07-28, "Protocol Version
/// Header"). rmcp only refuses versions that it does not know, and those that a request also has in `_meta`.
pub(super) fn unsupported_version(headers: &HeaderMap, body: &[u8], spoken: &[ProtocolVersion]) -> Option<Reply> {
    let requested = headers.get(VERSION_HEADER)?.to_str().ok()?;
    if spoken.iter().any(|version| version.as_str() == requested) {
        return None;
    }
    let Ok(JsonRpcMessage::Request(request)) = serde_json::from_slice::<ClientJsonRpcMessage>(body) else {
        return None;
    };
    let is_in_meta = request.request.get_meta().protocol_version().is_some();
    // The handshake agrees on another version.
    if is_in_meta || matches!(request.request, ClientRequest::InitializeRequest(_)) {
        return None;
    }
    let requested = serde_json::from_value(requested.into()).ok()?;
    let error = ErrorData::unsupported_protocol_version(requested, spoken);
    Some(json(StatusCode::BAD_REQUEST, &JsonRpcError::new(Some(request.id), error)))
}

/// Moves the credential of MPP from `_meta` of the message, where it may be too (draft-payment-transport-mcp-00,
/// "Metadata Placement"), to that of its parameters, where tools read it. Existing members are kept.
pub(super) fn with_nested_credential(body: Bytes) -> Bytes {
    let is_at_root = serde_json::from_slice(&body).is_ok_and(|Root { meta }| meta.is_some());
    if !is_at_root {
        return body;
    }
    let Ok(mut message) = serde_json::from_slice::<Map<String, Value>>(&body) else { return body };
    let credential = message.get_mut("_meta").and_then(|meta| meta.as_object_mut()?.remove(MPP_CREDENTIAL_META));
    let params = message.get_mut("params").and_then(Value::as_object_mut);
    let nested = params.and_then(|params| params.entry("_meta").or_insert_with(|| json!({})).as_object_mut());
    let (Some(credential), Some(nested)) = (credential, nested) else { return body };
    nested.entry(MPP_CREDENTIAL_META).or_insert(credential);
    Value::Object(message).to_string().into()
}

/// Parses a client's message.
///
/// # Errors
/// 400 when it is not an MCP message, or a batch of them, which only MCP 2025-03-26 had.
pub(super) fn read(body: &[u8]) -> Result<ClientJsonRpcMessage, Problem> {
    if body.trim_ascii_start().starts_with(b"[") {
        return Err(Problem::new(ErrorCode::InvalidJson, "The body is a batch; send each MCP message by itself."));
    }
    serde_json::from_slice(body).map_err(|error| {
        let message = format!("The body is not a valid MCP message: {error}.");
        Problem::new(ErrorCode::InvalidJson, message)
    })
}

/// Converts refusals that rmcp sends as plain text before JSON-RPC processing, such as for a wrong media type. For a
/// body that is not a message, rmcp also blames the media type, so the body is parsed here.
///
/// # Errors
/// The refusal, when it is one.
pub(super) async fn refused<B>(response: http::Response<B>, body: &[u8]) -> Result<http::Response<B>, Problem>
where
    B: http_body::Body<Data = Bytes, Error = Infallible> + Send,
{
    let code = match response.status() {
        StatusCode::BAD_REQUEST => ErrorCode::ValidationFailed,
        StatusCode::NOT_ACCEPTABLE => ErrorCode::NotAcceptable,
        StatusCode::UNSUPPORTED_MEDIA_TYPE => {
            read(body)?;
            ErrorCode::UnsupportedMediaType
        }
        _ => return Ok(response),
    };
    let media_type = response.headers().get(header::CONTENT_TYPE).map(http::HeaderValue::as_bytes);
    if media_type.is_some_and(|media_type| media_type.starts_with(b"application/json")) {
        return Ok(response);
    }
    let text = match response.into_body().collect().await {
        Ok(body) => body.to_bytes(),
        Err(never) => match never {},
    };
    Err(Problem::new(code, String::from_utf8_lossy(&text)))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn subjects_are_read_from_any_message() {
        let number = RequestId::Number;
        // message, subject
        let table = [
            (
                r#"{"id": 1, "method": "tools/call", "params": {"name": "x", "arguments": {}}}"#,
                Subject::Call(number(1)),
            ),
            (r#"{"id": "a", "method": "ping"}"#, Subject::Call(RequestId::String("a".into()))),
            (r#"{"id": 1, "method": "initialize", "params": {}}"#, Subject::Initialize(number(1))),
            (r#"{"id": 1, "method": "subscriptions/listen", "params": {}}"#, Subject::Subscription),
            (r#"{"method": "notifications/cancelled", "params": {"requestId": 7}}"#, Subject::Cancelled(number(7))),
            (r#"{"method": "notifications/cancelled", "params": {}}"#, Subject::Other),
            (r#"{"method": "notifications/progress", "params": {"requestId": 7}}"#, Subject::Other),
            (r#"{"id": 1, "result": {}}"#, Subject::Other),
            (r#"[{"id": 1, "method": "ping"}]"#, Subject::Other),
            ("", Subject::Other),
        ];
        for (text, subject) in table {
            assert_eq!(Subject::of(text.as_bytes()), subject, "{text}");
        }
    }

    #[test]
    fn only_calls_of_tools_name_one() {
        // message, tool
        let table = [
            (r#"{"id": 1, "method": "tools/call", "params": {"name": "x", "arguments": {"name": 7}}}"#, Some("x")),
            (r#"{"id": 1, "method": "tools/call", "params": {}}"#, None),
            (r#"{"id": 1, "method": "tools/call", "params": {"name": "x", "name": "y"}}"#, None),
            (r#"{"id": 1, "method": "prompts/get", "params": {"name": "x"}}"#, None),
            ("[]", None),
        ];
        for (text, tool) in table {
            assert_eq!(called_tool(text.as_bytes()).as_deref(), tool, "{text}");
        }
    }

    #[test]
    fn versions_that_are_not_spoken_are_refused_with_those_that_are() {
        let spoken = [ProtocolVersion::V_2025_11_25, ProtocolVersion::V_2026_07_28];
        let client = json!({"name": "test", "version": "1"});
        let initialize = json!({"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": client});
        let meta = json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "2025-03-26"}});
        // header, method, parameters, whether it is refused here
        let table = [
            (Some("2025-03-26"), "tools/list", json!({}), true),
            (Some("1999-01-01"), "ping", json!({}), true),
            (Some("2025-11-25"), "tools/list", json!({}), false),
            (None, "tools/list", json!({}), false),
            (Some("2025-03-26"), "initialize", initialize, false),
            // rmcp compares the two.
            (Some("2025-03-26"), "tools/list", meta, false),
        ];
        for (version, method, params, is_refused) in table {
            let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
            let header = version.map(|version| (VERSION_HEADER.parse().unwrap(), HeaderValue::from_static(version)));
            let refusal = unsupported_version(&header.into_iter().collect(), message.to_string().as_bytes(), &spoken);
            assert_eq!(refusal.is_some(), is_refused, "{version:?} {message}");
            if let Some(refusal) = refusal {
                let body: Value = serde_json::from_slice(refusal.body()).unwrap();
                assert_eq!((refusal.status(), &body["id"]), (StatusCode::BAD_REQUEST, &json!(7)));
                let data = json!({"requested": version, "supported": ["2025-11-25", "2026-07-28"]});
                assert_eq!((&body["error"]["code"], &body["error"]["data"]), (&json!(-32_022), &data));
            }
        }
    }

    #[test]
    fn a_credential_next_to_the_parameters_is_moved_into_them() {
        let key = MPP_CREDENTIAL_META;
        // members of the message, its parameters' `_meta` after it
        let table = [
            (json!({"_meta": {key: {"a": 1}}, "params": {"name": "x"}}), json!({key: {"a": 1}})),
            (json!({"_meta": {key: {"a": 1}}, "params": {"_meta": {"b": 2}}}), json!({key: {"a": 1}, "b": 2})),
            (json!({"_meta": {key: {"a": 1}}, "params": {"_meta": {key: {"a": 3}}}}), json!({key: {"a": 3}})),
            (json!({"_meta": {"b": 2}, "params": {}}), Value::Null),
            (json!({"params": {"_meta": {key: {"a": 1}}}}), json!({key: {"a": 1}})),
        ];
        for (message, nested) in table {
            let moved = with_nested_credential(message.to_string().into());
            let moved: Value = serde_json::from_slice(&moved).unwrap();
            assert_eq!(moved["params"]["_meta"], nested, "{message}");
        }
        for other in ["", "[]", r#"{"_meta": {"org.paymentauth/credential": 1}, "params": [1]}"#] {
            assert_eq!(with_nested_credential(Bytes::from(other)), other);
        }
    }

    #[test]
    fn refusals_are_errors_of_json_rpc() {
        let links = ErrorLinks::new(&toml::from_str("public_url = 'https://api.example'").unwrap());
        // code, that of JSON-RPC
        let table = [
            (ErrorCode::InvalidJson, -32_700),
            (ErrorCode::ValidationFailed, -32_600),
            (ErrorCode::Unauthorized, -32_000),
            (ErrorCode::TooManySessions, -32_000),
            (ErrorCode::UpstreamUnreachable, -32_603),
        ];
        for (code, expected) in table {
            let reply = refusal(Problem::new(code, "Why not").retry_after(5), &links);
            assert_eq!(
                (reply.status().as_u16(), &reply.headers()["retry-after"]),
                (code.status(), &"5".parse().unwrap())
            );
            let body: Value = serde_json::from_slice(reply.body()).unwrap();
            assert_eq!((&body["jsonrpc"], &body["id"]), (&json!("2.0"), &Value::Null));
            assert_eq!((&body["error"]["code"], &body["error"]["message"]), (&json!(expected), &json!("Why not")));
            assert_eq!(body["error"]["data"]["error"], code.as_str());
            let docs = format!("https://api.example/docs/guides/{}", code.guide());
            assert_eq!(body["error"]["data"]["docs"], docs);
        }
    }
}
