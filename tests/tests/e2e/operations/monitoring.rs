//! The files for Prometheus and Grafana, with a real Prometheus that scrapes a server in use: every expression can be
//! evaluated, and names metrics and labels that exist.

mod expression;
mod prometheus;

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use metering_tests::chain::Chain;
use metering_tests::chain::wallet::authorizations::USDC;
use metering_tests::client::Client;
use metering_tests::ports::free_address;
use metering_tests::server::Server;
use metering_tests::site::Site;
use metering_tests::skipped;
use serde_json::Value;

use self::expression::Names;
use self::prometheus::{Prometheus, check_metrics};
use crate::support::certificates::Loopback;
use crate::support::wait::until;

/// Set by `./test.sh` where Prometheus is not installed.
const SKIP: &str = "TESTS_SKIP_PROMETHEUS";

/// Metrics that exist only on a server with a chain, which needs a node: where there is none, this is not checked.
const WITH_A_CHAIN: [&str; 8] = [
    "metering_chain_source_block",
    "metering_chain_source_up",
    "metering_doubtful_payments",
    "metering_gas_wallet_transactions",
    "metering_self_settlement_paused",
    "metering_settled_payments_total",
    "metering_tls_certificate_expiry_timestamp_seconds",
    "metering_watched_block",
];
/// Their labels.
const LABELS_WITH_A_CHAIN: [&str; 2] = ["chain_id", "source"];

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
fn load(site: &Site) -> Server {
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

/// A server that sells on a chain, pays gas and has a certificate, and the address of its metrics.
struct Selling {
    chain: Chain,
    _server: Server,
    admin: SocketAddr,
}

impl Selling {
    fn start(site: &Site, certificate: &Loopback) -> Option<Self> {
        let chain = Chain::setup().chain_id(84_532).start()?;
        let wallet = chain.wallet();
        wallet.place_usdc();
        let gas = site.write("gas.key", wallet.new_account().private_key());
        let settings = format!(
            "[chains.base-sepolia]\nchain_id = 84532\nrecipient = '{}'\nrpc_urls = ['{}']\nconfirmations = 1\n\
             [pay]\nsettle = 'self'\ngas_key_file = '{}'\n\
             [[pay.offers]]\nchain = 'base-sepolia'\nasset = '{USDC}'\namounts = ['0.05']\ncredits_per_unit = '1'\n\
             [tls]\ncertificate = '{}'\nkey = '{}'\n",
            wallet.account(9).checksummed(),
            chain.url(),
            gas.display(),
            certificate.identity.certificate.display(),
            certificate.identity.key.display(),
        );
        let file = site.write("metering.toml", &settings);
        let admin = free_address();
        let server = site.server().set("METERING_ADMIN_LISTEN", &admin.to_string());
        let server = server.args(["--config", file.to_str().unwrap()]).start();
        Some(Self { chain, _server: server, admin })
    }

    /// Waits until all tasks have recorded something.
    #[track_caller]
    fn wait_for_metrics(&self) {
        let metrics = || Client::new(self.admin).get("/metrics").expect(200).text();
        self.chain.mine(2);
        until("every task has recorded something", || {
            let text = metrics();
            WITH_A_CHAIN.iter().all(|name| text.contains(&format!("\n{name}")))
        });
        check_metrics(&metrics());
    }
}

#[test]
fn every_alert_and_panel_can_be_evaluated_on_a_server_in_use() {
    if skipped::by(SKIP) {
        return;
    }
    let site = Site::new();
    let server = load(&site);
    check_metrics(&server.client().get("/metrics").expect(200).text());

    let (second, certificate) = (Site::new(), Loopback::new());
    let selling = Selling::start(&second, &certificate);
    if let Some(selling) = &selling {
        selling.wait_for_metrics();
    }
    let addresses: Vec<_> = [server.address()].into_iter().chain(selling.as_ref().map(|with| with.admin)).collect();
    let prometheus = Prometheus::start(&addresses);
    let rules = prometheus.rules();
    assert!(rules.len() > 15, "{rules:?}");
    let (metrics, labels) = (prometheus.metrics(), prometheus.labels());
    let known = |names: &Names| {
        let excused = |names: &[&str], name: &str| selling.is_none() && names.contains(&name);
        let metric = |name: &&String| !metrics.contains(*name) && !excused(&WITH_A_CHAIN, name);
        let label = |name: &&String| !labels.contains(*name) && !excused(&LABELS_WITH_A_CHAIN, name);
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
