//! Prometheus metrics.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use metering_core::chains::SourceStatus;
use metering_core::charging::MeterStats;
use metering_core::events::{CourierStats, DeliveryBacklog};
use metering_core::prices::PriceNumber;
use metering_core::service::{SettlementReport, WatchReport};
use metering_core::store::Refilled;
use metering_core::{Clock, Error, Meter, SystemClock, Timestamp};
use metering_pay::offers::GasFunds;
use metrics::{Histogram, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

use crate::config::Surface;

/// Upper bounds of the latency buckets, in seconds.
const LATENCY_BUCKETS: [f64; 11] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0];

const STATUS_CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// Installs the process's metrics recorder.
pub(crate) fn install() -> Result<PrometheusHandle, BuildError> {
    let latency = Matcher::Full("metering_http_request_seconds".to_owned());
    let builder = PrometheusBuilder::new().set_buckets_for_metric(latency, &LATENCY_BUCKETS)?;
    let handle = builder.install_recorder()?;
    describe_gauge!("metering_price_version", "Number of the price version that this node serves");
    describe_histogram!(
        "metering_http_request_seconds",
        "Time from request head to response head, by surface and status class"
    );
    describe_counter!(
        "metering_forwarded_requests_total",
        "Requests from trusted proxies, and others with X-Forwarded-For, by sender"
    );
    describe_counter!("metering_charges_total", "Charge decisions, by outcome");
    describe_counter!("metering_refunds_total", "Charges refunded");
    describe_counter!("metering_holds_total", "Requests whose credits were held");
    describe_counter!("metering_holds_settled_total", "Holds settled, by reason");
    describe_counter!("metering_holds_exceeded_total", "Requests that cost more than was held");
    describe_gauge!("metering_holds_open", "Holds of the requests that this node serves");
    describe_counter!(
        "metering_unreadable_reports_total",
        "Responses whose report of their cost could not be read, by reason"
    );
    describe_counter!("metering_replayed_requests_total", "Retries that got the response of an earlier attempt");
    describe_counter!("metering_replays_dropped_total", "Responses that were too large to be kept for retries");
    describe_counter!(
        "metering_holds_without_report_total",
        "Requests whose responses reported no cost that could be read, by route and by how much of the hold they cost"
    );
    describe_counter!("metering_commits_total", "Commits of charge batches");
    describe_counter!("metering_commits_failed_total", "Commits that failed");
    describe_counter!("metering_postings_failed_total", "Charges and refunds that failed individually");
    describe_counter!("metering_commit_postings_total", "Charges and refunds included in commits");
    describe_counter!(
        "metering_purchases_total",
        "What accounts do besides charges, from signup to keys and webhooks, by step and outcome"
    );
    describe_counter!("metering_mails_total", "Mail sent, or given up on, by kind and outcome");
    describe_counter!("metering_watched_payments_total", "Payments that the watcher found, by outcome");
    describe_counter!(
        "metering_settled_payments_total",
        "Credited payments that became final, were reversed, or were restored"
    );
    describe_counter!("metering_refilled_accounts_total", "Accounts that got recurring credits");
    describe_counter!("metering_refilled_atoms_total", "Recurring credits that accounts got, in atoms");
    describe_counter!("metering_webhook_attempts_total", "Attempts of this node to deliver webhooks, by outcome");
    describe_counter!("metering_webhook_deliveries_parked_total", "Deliveries that this node parked");
    describe_gauge!("metering_webhook_deliveries_pending", "Deliveries in the database that are pending");
    describe_gauge!("metering_webhook_deliveries_parked", "Deliveries in the database that are parked");
    describe_gauge!(
        "metering_webhook_oldest_due_seconds",
        "For how long the oldest delivery that can be sent has been due; 0 if there is none"
    );
    describe_gauge!("metering_unsettled_payments", "Credited payments whose block is not final yet");
    describe_gauge!("metering_reversed_payments", "Payments whose credits were taken back after a reorganisation");
    describe_gauge!(
        "metering_doubtful_payments",
        "Credited payments that are not in their block although it is final: invented by an RPC source, or forgotten"
    );
    describe_gauge!(
        "metering_chain_source_up",
        "Whether the last request to an RPC source succeeded, by chain and place in rpc_urls"
    );
    describe_gauge!(
        "metering_chain_source_block",
        "The newest block that an RPC source has shown, by chain and place in rpc_urls"
    );
    describe_gauge!("metering_watched_block", "The last block that the watcher scanned, by chain");
    describe_gauge!("metering_gas_wallet_wei", "What the wallet that pays gas has, by chain");
    describe_gauge!("metering_gas_wallet_transactions", "Payments that the wallet can pay the gas of, by chain");
    describe_gauge!(
        "metering_gas_wallet_reverts",
        "Payments that reverted within the last hour at the cost of the wallet that pays gas, by chain"
    );
    describe_gauge!(
        "metering_self_settlement_paused",
        "1 while no payments are executed on a chain because too many reverted, by chain"
    );
    describe_gauge!("metering_not_ready", "1 for the reason why this node is not ready, 0 for the others");
    describe_counter!("metering_reloads_total", "Reloads of the configuration, by outcome");
    describe_gauge!(
        "metering_tls_certificate_expiry_timestamp_seconds",
        "When the certificate in use expires, or the first of its chain, as a Unix time"
    );
    describe_gauge!("metering_build_info", "Always 1; the label has the version");
    describe_gauge!("process_start_time_seconds", "When this process started, as a Unix time");
    describe_gauge!("metering_connections_open", "Open client connections on this node");
    describe_counter!("metering_connections_closed_total", "Client connections that the server closed, by reason");
    describe_gauge!("metering_bodies_kept_bytes", "Memory that request bodies and kept responses take on this node");
    describe_counter!("metering_bodies_refused_total", "Requests refused for want of memory for their body, by reason");
    describe_counter!("metering_tls_handshakes_failed_total", "TLS handshakes that failed, by reason");
    describe_gauge!("metering_queue_length", "Charges waiting to be committed");
    describe_gauge!("metering_streams_open", "Open streams on this node");
    describe_gauge!("metering_mcp_sessions", "Open MCP sessions (HTTP+SSE) on this node");
    gauge!("metering_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
    let started = Duration::from_millis(u64::try_from(SystemClock.now().unix_millis()).unwrap_or(0));
    gauge!("process_start_time_seconds").set(started.as_secs_f64());
    Ok(handle)
}

/// Request times by surface and status class. Each histogram is looked up once, since a lookup by labels allocates.
#[derive(Debug, Default)]
pub(crate) struct RequestTimes([[OnceLock<Histogram>; STATUS_CLASSES.len()]; Surface::ALL.len()]);

impl RequestTimes {
    /// Records one request and its response status.
    pub(crate) fn record(&self, surface: Surface, status: http::StatusCode, took: Duration) {
        let class = usize::from(status.as_u16() / 100).clamp(1, STATUS_CLASSES.len()) - 1;
        let histogram = self.0[surface as usize][class].get_or_init(|| {
            let labels = [("surface", surface.as_str()), ("status", STATUS_CLASSES[class])];
            histogram!("metering_http_request_seconds", &labels)
        });
        histogram.record(took);
    }
}

/// Counts one step of what an account does besides charges (signup, purchase, change of keys or webhooks), and returns
/// its result.
pub(crate) fn counted<T>(step: &'static str, result: Result<T, Error>) -> Result<T, Error> {
    let outcome = result.as_ref().err().map_or("accepted", |error| error.code().as_str());
    counter!("metering_purchases_total", "step" => step, "outcome" => outcome).increment(1);
    result
}

/// Records why this node is not ready, if it is not.
pub(crate) fn readiness(current: Option<&'static str>) {
    for reason in
        ["storage_unavailable", "clock_skew", "chain_unreachable", "chain_stalled", "catalogue_unusable", "timeout"]
    {
        let value = if current == Some(reason) { 1.0 } else { 0.0 };
        gauge!("metering_not_ready", "reason" => reason).set(value);
    }
}

/// Records the price version that this node serves.
pub(crate) fn price_version(number: Option<PriceNumber>) {
    if let Some(number) = number {
        gauge!("metering_price_version").set(f64::from(number.0));
    }
}

/// Counts reloads of the configuration. A count of 0 shows that there was none.
pub(crate) fn reloaded(succeeded: u64, failed: u64) {
    counter!("metering_reloads_total", "outcome" => "succeeded").increment(succeeded);
    counter!("metering_reloads_total", "outcome" => "failed").increment(failed);
}

/// Records when the certificate in use expires.
pub(crate) fn certificate_expiry(unix_time: Duration) {
    gauge!("metering_tls_certificate_expiry_timestamp_seconds").set(unix_time.as_secs_f64());
}

/// Records one round of the watcher.
pub(crate) fn watched(chain_id: u64, watched: &WatchReport) {
    let chain = chain_id.to_string();
    let found = [
        ("claimed", watched.claimed),
        ("credited", watched.credited),
        ("left", watched.left),
        ("unreadable", watched.unreadable),
    ];
    for (outcome, count) in found {
        counter!("metering_watched_payments_total", "chain_id" => chain.clone(), "outcome" => outcome)
            .increment(u64::from(count));
    }
    if let Some(block) = watched.scanned_to {
        let block = u32::try_from(block).map_or(f64::INFINITY, f64::from);
        gauge!("metering_watched_block", "chain_id" => chain).set(block);
    }
}

/// Records one round of settlement.
pub(crate) fn settled(chain_id: u64, report: &SettlementReport) {
    let chain = chain_id.to_string();
    let changed = [("final", report.finalized), ("reversed", report.newly_reversed), ("restored", report.restored)];
    for (outcome, count) in changed {
        counter!("metering_settled_payments_total", "chain_id" => chain.clone(), "outcome" => outcome)
            .increment(u64::from(count));
    }
    gauge!("metering_unsettled_payments", "chain_id" => chain.clone()).set(gauge_of(report.unsettled));
    gauge!("metering_doubtful_payments", "chain_id" => chain.clone()).set(gauge_of(report.doubtful));
    gauge!("metering_reversed_payments", "chain_id" => chain).set(gauge_of(report.reversed));
}

/// Records what is known of the sources that a chain is read from.
pub(crate) fn chain_sources(chain_id: u64, sources: Vec<SourceStatus>) {
    for (index, SourceStatus { problem, newest_block }) in sources.into_iter().enumerate() {
        // Not its host: a provider's may have a customer's name, and this page may be public.
        let labels = [("chain_id", chain_id.to_string()), ("source", (index + 1).to_string())];
        gauge!("metering_chain_source_up", &labels).set(if problem.is_none() { 1.0 } else { 0.0 });
        if let Some(block) = newest_block {
            gauge!("metering_chain_source_block", &labels).set(gauge_of(block));
        }
    }
}

/// Records how many deliveries wait in the database, of all nodes.
pub(crate) fn deliveries_waiting(backlog: &DeliveryBacklog, now: Timestamp) {
    gauge!("metering_webhook_deliveries_pending").set(gauge_of(backlog.pending));
    gauge!("metering_webhook_deliveries_parked").set(gauge_of(backlog.parked));
    let millis = backlog.oldest_due.map_or(0, |due| now.unix_millis().saturating_sub(due.unix_millis()));
    let due = Duration::from_millis(u64::try_from(millis).unwrap_or(0));
    gauge!("metering_webhook_oldest_due_seconds").set(due.as_secs_f64());
}

/// Records what a wallet that pays gas has.
pub(crate) fn gas_wallet(chain_id: u64, funds: GasFunds) {
    let chain = chain_id.to_string();
    // Through text, as a cast would be refused: a gauge has 53 bits.
    let rounded = |number: u128| number.to_string().parse().unwrap_or(f64::INFINITY);
    gauge!("metering_gas_wallet_wei", "chain_id" => chain.clone()).set(rounded(funds.balance.get()));
    gauge!("metering_gas_wallet_transactions", "chain_id" => chain).set(rounded(funds.transactions()));
}

/// Records how many payments reverted within the last hour, and whether that was too many.
pub(crate) fn reverted_payments(chain_id: u64, reverts: usize, is_paused: bool) {
    let chain = chain_id.to_string();
    let reverts = u32::try_from(reverts).map_or(f64::INFINITY, f64::from);
    gauge!("metering_gas_wallet_reverts", "chain_id" => chain.clone()).set(reverts);
    gauge!("metering_self_settlement_paused", "chain_id" => chain).set(if is_paused { 1.0 } else { 0.0 });
}

/// Records one batch of refilled accounts.
pub(crate) fn refilled(batch: &Refilled) {
    counter!("metering_refilled_accounts_total").increment(batch.accounts);
    counter!("metering_refilled_atoms_total").increment(batch.credits.atoms().unsigned_abs());
}

/// All metrics in the Prometheus text format.
pub(crate) fn render(
    recorder: &PrometheusHandle,
    meter: &Meter,
    streams_open: usize,
    bodies_kept: usize,
    courier: Option<&CourierStats>,
) -> String {
    let stats = meter.stats();
    let charges = |outcome: &'static str, count: &AtomicU64| {
        counter!("metering_charges_total", "outcome" => outcome).absolute(count.load(Ordering::Relaxed));
    };
    let MeterStats { accepted, unknown_key, rate_limited, insufficient, overloaded, .. } = stats;
    let MeterStats { not_allowed, too_many_in_flight, budget_exhausted, max_cost_exceeded, .. } = stats;
    charges("accepted", accepted);
    charges("unauthorized", unknown_key);
    charges("rate_limited", rate_limited);
    charges("insufficient_credits", insufficient);
    charges("key_not_allowed", not_allowed);
    charges("key_budget_exhausted", budget_exhausted);
    charges("max_cost_exceeded", max_cost_exceeded);
    charges("too_many_requests_in_flight", too_many_in_flight);
    charges("overloaded", overloaded);
    counter!("metering_refunds_total").absolute(stats.refunded.load(Ordering::Relaxed));
    render_holds(meter);
    counter!("metering_commits_total").absolute(stats.commits.load(Ordering::Relaxed));
    counter!("metering_commits_failed_total").absolute(stats.failed.load(Ordering::Relaxed));
    counter!("metering_postings_failed_total").absolute(stats.failed_postings.load(Ordering::Relaxed));
    counter!("metering_commit_postings_total").absolute(stats.postings.load(Ordering::Relaxed));
    gauge!("metering_queue_length").set(as_gauge(meter.queued()));
    gauge!("metering_streams_open").set(as_gauge(streams_open));
    gauge!("metering_bodies_kept_bytes").set(as_gauge(bodies_kept));
    courier.into_iter().for_each(render_webhooks);
    recorder.run_upkeep();
    let mut text = recorder.render();
    text.push_str(&commit_seconds(stats.commit_micros.load(Ordering::Relaxed)));
    text
}

/// A counter with a fraction, which the recorder has not: its counters are whole numbers.
fn commit_seconds(micros: u64) -> String {
    let name = "metering_commit_seconds_total";
    let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
    format!("# HELP {name} Time spent in commits\n# TYPE {name} counter\n{name} {seconds}.{fraction:06}\n\n")
}

fn render_webhooks(courier: &CourierStats) {
    for (outcome, count) in [("delivered", courier.delivered()), ("failed", courier.failed())] {
        counter!("metering_webhook_attempts_total", "outcome" => outcome).absolute(count);
    }
    counter!("metering_webhook_deliveries_parked_total").absolute(courier.parked());
}

fn render_holds(meter: &Meter) {
    let MeterStats { holds, captured, captured_without_report, released, expired_holds, exceeded_holds, .. } =
        meter.stats();
    let settled = [
        ("report", captured),
        ("no_report", captured_without_report),
        ("release", released),
        ("expiry", expired_holds),
    ];
    for (reason, count) in settled {
        counter!("metering_holds_settled_total", "reason" => reason).absolute(count.load(Ordering::Relaxed));
    }
    counter!("metering_holds_total").absolute(holds.load(Ordering::Relaxed));
    counter!("metering_holds_exceeded_total").absolute(exceeded_holds.load(Ordering::Relaxed));
    gauge!("metering_holds_open").set(as_gauge(meter.open_holds()));
}

fn gauge_of(count: u64) -> f64 {
    u32::try_from(count).map_or(f64::INFINITY, f64::from)
}

fn as_gauge(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::INFINITY, f64::from)
}
