//! The files for Prometheus and Grafana, with a real Prometheus that scrapes a server in use: every expression can be
//! evaluated, and names metrics and labels that exist.

mod expression;
mod prometheus;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use metering_tests::site::Site;
use metering_tests::skipped;
use serde_json::Value;

use self::expression::Names;
use self::prometheus::{Prometheus, check_metrics};

/// Set by `./test.sh` where Prometheus is not installed.
const SKIP: &str = "METERING_TESTS_SKIP_PROMETHEUS";

/// Metrics that this test's server has no reason for: it has no chains, wallets or certificate.
const ELSEWHERE: [&str; 4] = [
    "metering_gas_wallet_transactions",
    "metering_reversed_payments",
    "metering_tls_certificate_expiry_timestamp_seconds",
    "metering_watched_block",
];
/// Their labels.
const ELSEWHERE_LABELS: [&str; 1] = ["chain_id"];

fn deployed(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy").join(name)
}

/// The title and the expressions of every panel of the dashboard.
fn panels() -> Vec<(String, Vec<String>)> {
    let text = fs::read_to_string(deployed("grafana/metering.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let expressions = |panel: &Value| {
        let targets = panel["targets"].as_array().map_or(&[][..], Vec::as_slice);
        targets.iter().map(|target| text(&target["expr"])).collect()
    };
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<_> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len(), "two panels have the same id");
    for panel in panels.iter().filter(|panel| panel["type"] != "row") {
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{panel}");
    }
    panels.iter().map(|panel| (text(&panel["title"]), expressions(panel))).collect()
}

/// A server that was used in most ways, so that its metrics exist.
fn load(site: &Site) -> metering_tests::server::Server {
    let account = site.account("1");
    let server = site.server().start();
    let client = server.client_with(&account.api_key);
    for _ in 0..20 {
        let _ = client.get("/mpp/ethPrice").expect(200);
    }
    let _ = client.get("/mpp/pool/nonsense/metadata").expect(400);
    let _ = server.client().get("/mpp/ethPrice").expect(401);
    let _ = client.get("/credits/balance").expect(200);
    server
}

#[test]
fn every_alert_and_panel_can_be_evaluated_on_a_server_in_use() {
    if skipped::by(SKIP) {
        return;
    }
    let site = Site::new();
    let server = load(&site);
    check_metrics(&server.client().get("/metrics").expect(200).text());

    let prometheus = Prometheus::start(server.address());
    let rules = prometheus.rules();
    assert!(rules.len() > 15, "{rules:?}");
    let (metrics, labels) = (prometheus.metrics(), prometheus.labels());
    let known = |names: &Names| {
        let metric = |name: &&String| !metrics.contains(*name) && !ELSEWHERE.contains(&name.as_str());
        let label = |name: &&String| !labels.contains(*name) && !ELSEWHERE_LABELS.contains(&name.as_str());
        let unknown = names.metrics.iter().filter(metric).chain(names.labels.iter().filter(label));
        unknown.cloned().collect::<Vec<_>>()
    };
    for (name, expression, state) in &rules {
        assert_eq!(state, "inactive", "{name} fires although nothing is wrong");
        assert_eq!(known(&Names::of(expression)), [""; 0], "{name}: {expression}");
    }
    let mut evaluated = 0;
    for (title, expressions) in panels() {
        for expression in expressions {
            let expression = expression.replace("$job", "metering").replace("$instance", ".*");
            let expression = expression.replace("$__rate_interval", "1m").replace("$__range", "1m");
            let _ = prometheus.query(&expression);
            assert_eq!(known(&Names::of(&expression)), [""; 0], "{title}: {expression}");
            evaluated += 1;
        }
    }
    assert!(evaluated > 10, "only {evaluated} expressions in the dashboard");
}

#[test]
fn metrics_that_this_test_does_not_see_are_declared() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../metering-server/src/operations/metrics.rs");
    let source = fs::read_to_string(source).unwrap();
    for name in ELSEWHERE {
        assert!(
            source.contains(&format!("describe_gauge!(\"{name}\"")) || source.contains(&format!("        \"{name}\",")),
            "{name}"
        );
    }
}
