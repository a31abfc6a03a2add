//! Stream tools: bounded in number and time, and always closed. Time is paused: it advances when no task can run.

use std::time::Duration;

use bytes::Bytes;
use rmcp::model::{CallToolRequest, ClientRequest};
use rmcp::service::PeerRequestOptions;
use serde_json::{Value, json};

use crate::script::{Chunk, Script, charged, events, response};
use crate::session::{STREAM_WAIT, Session, error, request, success, text};

const STREAM: &str = "bds_mpp_stream_allTrades";

fn data(text: &str) -> Chunk {
    Chunk::Data(Bytes::copy_from_slice(text.as_bytes()))
}

fn event(id: usize) -> Chunk {
    data(&format!("id: {id}\nevent: trades\ndata: {{\"epoch\":{id},\"price\":1.10}}\n\n"))
}

fn events_of(result: &rmcp::model::CallToolResult) -> (Vec<Value>, Value, Value) {
    let data = &success(result)["data"];
    (data["events"].as_array().unwrap().clone(), data["count"].clone(), data["ended_by"].clone())
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_by_count_time_or_its_own_end() {
    let minute = Chunk::Pause(Duration::from_secs(60));
    let endless = |count: usize| (0..count).map(event).chain([Chunk::Hang]).collect::<Vec<_>>();
    // chunks, max_events, events returned, ended_by
    let table = [
        (endless(60), Some(2), 2, "count"),
        (endless(60), None, 5, "count"),
        (endless(60), Some(50), 50, "count"),
        (endless(3), Some(3), 3, "count"),
        (endless(3), None, 3, "time"),
        (endless(0), None, 0, "time"),
        (vec![event(0), minute, event(1)], None, 1, "time"),
        (vec![event(0), event(1)], None, 2, "end"),
        (vec![], None, 0, "end"),
        (vec![data(": heartbeat\n\n"), data(": heartbeat\n\n"), event(0)], None, 1, "end"),
        (vec![event(0), Chunk::Break("reset")], None, 1, "break"),
        (vec![event(0), data("id: 9\ndata: {\"cut")], None, 1, "end"),
    ];
    for (row, (pieces, most, count, ended_by)) in table.into_iter().enumerate() {
        let script = Script::default().then(events(pieces));
        let session = Session::start(&script).await;
        let arguments = most.map_or(json!({}), |most| json!({"max_events": most}));
        let start = tokio::time::Instant::now();
        let result = session.call(STREAM, arguments).await;
        let (events, stated, reason) = events_of(&result);
        assert_eq!((events.len(), stated, reason), (count, json!(count), json!(ended_by)), "row {row}");
        let waited = start.elapsed();
        assert!(waited <= STREAM_WAIT + Duration::from_secs(1), "row {row}: {waited:?}");
        assert_eq!(waited >= STREAM_WAIT, ended_by == "time", "row {row}: {waited:?}");
        assert_eq!(success(&result)["credits_charged"], json!(0.5));
        script.all_closed().await;
    }
}

#[tokio::test]
async fn events_are_returned_to_the_byte_with_the_last_id() {
    let script = Script::default().then(events(vec![event(7), data("data: plain\n\n"), data("data: a\ndata: b\n\n")]));
    let session = Session::start(&script).await;
    let result = session.call(STREAM, json!({"from_epoch": 7})).await;
    assert_eq!(
        text(&result),
        concat!(
            r#"{"data":{"events":[{"event":"trades","id":"7","data":{"epoch":7,"price":1.10}},"#,
            r#"{"event":"message","data":"plain"},{"event":"message","data":"a\nb"}],"count":3,"ended_by":"end"},"#,
            r#""credit_balance":1.5,"credits_charged":0.5}"#
        )
    );
    let requests = script.requests();
    assert_eq!(requests[0].uri(), "/mpp/stream/allTrades?from_epoch=7");
    assert_eq!(requests[0].headers()["accept"], "text/event-stream");
    assert_eq!(requests[0].headers()["x-bds-client-source"], "mcp");
}

#[tokio::test]
async fn a_stream_whose_events_are_too_large_ends_by_size() {
    let large = data(&format!("data: {}\n\n", "x".repeat(3 * 1024 * 1024)));
    let script = Script::default().then(events(vec![large.clone(), large, Chunk::Hang]));
    let result = Session::start(&script).await.call(STREAM, json!({})).await;
    let (events, _, reason) = events_of(&result);
    assert_eq!((events.len(), reason), (1, json!("size")));
    script.all_closed().await;
}

#[tokio::test]
async fn stream_rejected_or_broken_at_once_is_an_error() {
    let limit = r#"{"error":"too_many_streams","message":"Close one.","retry_after_sec":5}"#;
    // reply, code, charge
    let table = [
        (response(429, &[("retry-after", "5")], limit), "too_many_streams", Value::Null),
        (events(vec![Chunk::Break("reset")]), "service_unreachable", json!(0.5)),
        (
            events(vec![data("data: \u{fffd}"), Chunk::Data(Bytes::from_static(b"\xff\xfe\n\n"))]),
            "unreadable_answer",
            json!(0.5),
        ),
    ];
    for (reply, code, charged) in table {
        let script = Script::default().then(reply);
        let result = Session::start(&script).await.call(STREAM, json!({})).await;
        assert_eq!(error(&result)["error"], code, "{result:?}");
        assert_eq!(error(&result).get("credits_charged"), Some(&charged).filter(|charged| !charged.is_null()));
        script.all_closed().await;
    }
}

#[tokio::test]
async fn a_stream_route_that_answers_with_a_document_returns_it() {
    let script = Script::default().then(charged(r#"{"epoch":1}"#));
    let result = Session::start(&script).await.call(STREAM, json!({})).await;
    assert_eq!(success(&result)["data"], json!({"epoch": 1}));
}

#[tokio::test]
async fn cancelled_call_closes_its_request_and_keeps_the_session() {
    for tool in [STREAM, "bds_mpp_ethPrice"] {
        let script = Script::default().then(events(vec![event(0), Chunk::Hang])).then(charged("1"));
        let session = Session::start(&script).await;
        let call = ClientRequest::CallToolRequest(CallToolRequest::new(request(tool, json!({}))));
        let handle = session.mcp.send_cancellable_request(call, PeerRequestOptions::no_options()).await.unwrap();
        script.wait_for_request().await;
        assert_eq!(script.open_bodies(), 1, "{tool}");
        handle.cancel(Some("no longer needed".to_owned())).await.unwrap();
        script.all_closed().await;
        let result = session.call("bds_mpp_ethPrice", json!({})).await;
        assert_eq!(success(&result)["data"], 1, "{tool}");
    }
}

#[tokio::test]
async fn client_disconnect_closes_its_requests() {
    let script = Script::default().then(events(vec![event(0), Chunk::Hang]));
    let session = Session::start(&script).await;
    let call = ClientRequest::CallToolRequest(CallToolRequest::new(request(STREAM, json!({}))));
    let handle = session.mcp.send_cancellable_request(call, PeerRequestOptions::no_options()).await.unwrap();
    script.wait_for_request().await;
    drop((handle, session));
    script.all_closed().await;
}
