//! A real Prometheus with the files of `deploy/prometheus`, in which only the addresses and intervals are replaced.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use metering_tests::client::Client;
use metering_tests::ports::free_address;
use serde_json::Value;
use tempfile::TempDir;

use super::deployed;

/// How long it may take to start, to scrape a few times and to evaluate all rules.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Ends Prometheus when the test's process ends, however it ends.
const WATCHER: &str = r#"log=$1; shift; "$@" >"$log" 2>&1 & it=$!; read -r end; kill -TERM "$it"; wait "$it""#;

/// A running Prometheus. Dropping it ends it.
pub(super) struct Prometheus {
    watcher: Child,
    client: Client,
    folder: TempDir,
}

impl Prometheus {
    /// Starts one that scrapes these servers, and returns once it has scraped them and evaluated all rules.
    #[track_caller]
    pub(super) fn start(servers: &[SocketAddr]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let configuration = fs::read_to_string(deployed("prometheus/prometheus.yml")).unwrap();
        let targets = "[\"10.0.0.11:8788\", \"10.0.0.12:8788\"]";
        assert!(configuration.contains(targets) && configuration.contains("15s"), "{configuration}");
        let configuration = configuration
            .replace(targets, &format!("{:?}", servers.iter().map(ToString::to_string).collect::<Vec<_>>()));
        let configuration = configuration.replace("15s", "1s");
        fs::write(folder.path().join("prometheus.yml"), configuration).unwrap();
        fs::copy(deployed("prometheus/metering.rules.yml"), folder.path().join("metering.rules.yml")).unwrap();

        let address = free_address();
        let mut command = Command::new("sh");
        command.args(["-c", WATCHER, "sh"]).arg(folder.path().join("log")).arg("prometheus");
        command.arg(format!("--config.file={}", folder.path().join("prometheus.yml").display()));
        command.arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()));
        command.arg(format!("--web.listen-address={address}"));
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let prometheus = Self { watcher: command.spawn().unwrap(), client: Client::new(address), folder };
        let all = servers.len();
        prometheus.wait(&format!("count(up{{job=\"metering\"}} == 1 and count_over_time(up[1m]) > 3) == {all}"));
        prometheus
    }

    #[track_caller]
    fn wait(&self, expression: &str) {
        let started = Instant::now();
        loop {
            if self.try_query(expression).is_some_and(|found| found["data"]["result"][0].is_object()) {
                return;
            }
            let log = || fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            assert!(started.elapsed() < TIMEOUT, "{expression} does not hold: {}", log());
            thread::sleep(Duration::from_millis(200));
        }
    }

    fn try_query(&self, expression: &str) -> Option<Value> {
        let query = form_urlencoded::Serializer::new(String::new()).append_pair("query", expression).finish();
        let response = self.client.try_send("GET", &format!("/api/v1/query?{query}"), None).ok()?;
        serde_json::from_slice(&response.body).ok()
    }

    /// Evaluates an expression.
    #[track_caller]
    pub(super) fn query(&self, expression: &str) -> Value {
        let found = self.try_query(expression).unwrap_or_default();
        assert_eq!(found["status"], "success", "{expression}: {found}");
        found
    }

    /// The name, expression and state of every alert, once each was evaluated.
    #[track_caller]
    pub(super) fn rules(&self) -> Vec<(String, String, String)> {
        let started = Instant::now();
        loop {
            let groups = self.client.get("/api/v1/rules").expect(200).json();
            let groups = groups["data"]["groups"].as_array().unwrap().clone();
            let rules: Vec<_> = groups.iter().flat_map(|group| group["rules"].as_array().unwrap()).collect();
            if rules.iter().all(|rule| rule["health"] == "ok") {
                let text = |rule: &Value, name: &str| rule[name].as_str().unwrap().to_owned();
                return rules
                    .iter()
                    .map(|rule| (text(rule, "name"), text(rule, "query"), text(rule, "state")))
                    .collect();
            }
            assert!(started.elapsed() < TIMEOUT, "{rules:?}");
            thread::sleep(Duration::from_millis(200));
        }
    }

    /// The names of all metrics that were ever scraped.
    pub(super) fn metrics(&self) -> BTreeSet<String> {
        self.list("/api/v1/label/__name__/values")
    }

    /// The names of all labels.
    pub(super) fn labels(&self) -> BTreeSet<String> {
        self.list("/api/v1/labels")
    }

    fn list(&self, path: &str) -> BTreeSet<String> {
        let found = self.client.get(path).expect(200).json();
        found["data"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // The watcher ends Prometheus at the end of its input.
        drop(self.watcher.stdin.take());
        let _ = self.watcher.wait();
    }
}

/// Has `promtool` check the text of a scrape.
#[track_caller]
pub(super) fn check_metrics(text: &str) {
    let mut promtool = Command::new("promtool");
    promtool.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut promtool = promtool.spawn().unwrap();
    promtool.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let checked = promtool.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success() && said.is_empty(), "{said}");
}
