//! Responses that do not report their cost: counted by route, logged at most once a minute, and shown to operators.

use metering_tests::client::Client;
use metering_tests::ports::free_address;
use serde_json::json;

use super::Scene;
use crate::support::script::json_response;

#[test]
fn holds_settled_without_a_report_are_counted_by_route() {
    let admin = free_address();
    let scene = Scene::with("10", |server| server.set("METERING_ADMIN_LISTEN", &admin.to_string()));
    let operator = scene.site.admin_json(&["operator", "create", "vi", "--role", "viewer"])["token"].clone();
    let report = || {
        let viewer = Client::new(admin).with_key(operator.as_str().unwrap());
        viewer.get("/admin/report?days=1").expect(200).json()["unreported"].clone()
    };
    assert_eq!(report()["routes"], json!([]), "routes are priced by usage, and every response reported its cost");

    let with_usage = json_response(r#"{"usage": {"total_tokens": 12}}"#);
    for (path, response) in [
        ("/v1/missing/hold", json_response("{}")),
        ("/v1/missing/hold", json_response("no JSON")),
        ("/v1/missing/hold", with_usage.clone()),
        ("/v1/chat", json_response("{}")),
        ("/v1/stream", with_usage),
        ("/v1/missing/release", json_response("{}")),
        ("/v1/missing/hold", json_response("{}")),
    ] {
        let _ = scene.call(path, &[response]).expect(200);
    }
    let refused = json!("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    let _ = scene.call("/v1/missing/hold", &[refused]).expect(400);

    let metrics = Client::new(admin).get("/metrics").expect(200).text();
    for (route, outcome, count) in
        [("/v1/missing/hold", "hold", 3), ("/v1/chat", "part", 1), ("/v1/missing/release", "nothing", 1)]
    {
        let name = "metering_holds_without_report_total";
        let lines: Vec<_> = metrics.lines().filter(|line| line.starts_with(name) && line.contains(route)).collect();
        let [line] = *lines else { panic!("{route}: {lines:?}") };
        assert!(line.contains(&format!("outcome=\"{outcome}\"")) && line.ends_with(&format!(" {count}")), "{line}");
    }
    assert!(!metrics.contains("/v1/stream"), "its response reported its cost");

    let seen = report();
    assert_eq!(seen["routes"][0]["route_template"], "/v1/missing/hold", "{seen}");
    assert_eq!((&seen["routes"][0]["requests"], &seen["routes"][0]["in_full"]), (&json!(3), &json!(3)), "{seen}");
    assert!(seen["routes"][0]["last_at"].as_str() >= seen["since"].as_str(), "{seen}");
    assert_eq!(seen["routes"].as_array().unwrap().len(), 3, "{seen}");

    let log = scene.server.log();
    let warnings = log.lines().filter(|line| line.contains("did not report its cost")).count();
    assert_eq!(warnings, 3, "one for each route: {log}");
}
