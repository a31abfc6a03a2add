//! Prometheus metrics.

use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use std::time::Duration;

use metering_core::chains::SourceStatus;
use metering_core::charging::{MeterStats, RefusalKind};
use metering_core::events::{CourierStats, DeliveryBacklog, UsageSink};
use metering_core::prices::PriceNumber;
use metering_core::service::{SettlementReport, WatchReport};
use metering_core::store::Refilled;
use metering_core::{Clock, Error, Meter, SystemClock, Timestamp};
use metering_pay::offers::GasFunds;
use metrics::{Gauge, Histogram};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

use crate::config::Surface;
use crate::operations::metric::{counter, gauge, histogram};

/// Upper bounds of the latency buckets, in seconds.
const LATENCY_BUCKETS: [f64; 11] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0];

const STATUS_CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// Installs the process's metrics recorder.
pub(crate) fn install() -> Result<PrometheusHandle, BuildError> {
    let latency = Matcher::Full("metering_http_request_seconds".to_owned());
    let builder = PrometheusBuilder::new().set_buckets_for_metric(latency, &LATENCY_BUCKETS)?;
    let handle = builder.install_recorder()?;
    gauge!("metering_build_info", "Always 1; the label has the version", "version" => env!("CARGO_PKG_VERSION"))
        .set(1.0);
    let started = Duration::from_millis(u64::try_from(SystemClock.now().unix_millis()).unwrap_or(0));
    gauge!("process_start_time_seconds", "When this process started, as a Unix time").set(started.as_secs_f64());
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
            histogram!(
                "metering_http_request_seconds",
                "Time from request head to response head, by surface and status class",
                &labels
            )
        });
        histogram.record(took);
    }
}

/// Counts one step of an account's operation other than a charge (signup, purchase, change of keys or webhooks), and
/// returns its result.
pub(crate) fn counted<T>(step: &'static str, result: Result<T, Error>) -> Result<T, Error> {
    let outcome = result.as_ref().err().map_or("accepted", |error| error.code().as_str());
    counter!(
        "metering_purchases_total",
        "Operations of accounts other than charges, from signup to keys and webhooks, by step and outcome",
        "step" => step,
        "outcome" => outcome
    )
    .increment(1);
    result
}

/// Records why this node is not ready, if it is not.
pub(crate) fn readiness(current: Option<&'static str>) {
    for reason in
        ["storage_unavailable", "clock_skew", "chain_unreachable", "chain_stalled", "catalogue_unusable", "timeout"]
    {
        let value = if current == Some(reason) { 1.0 } else { 0.0 };
        gauge!(
            "metering_not_ready",
            "1 for the reason why this node is not ready, 0 for the others",
            "reason" => reason
        )
        .set(value);
    }
}

/// Records the price version that this node serves.
pub(crate) fn price_version(number: Option<PriceNumber>) {
    if let Some(number) = number {
        gauge!("metering_price_version", "Number of the price version that this node serves").set(f64::from(number.0));
    }
}

/// Counts reloads of the configuration. A count of 0 shows that there was none.
pub(crate) fn reloaded(succeeded: u64, failed: u64) {
    for (outcome, count) in [("succeeded", succeeded), ("failed", failed)] {
        counter!("metering_reloads_total", "Reloads of the configuration, by outcome", "outcome" => outcome)
            .increment(count);
    }
}

/// Client connections that are open.
pub(crate) fn connections_open() -> Gauge {
    gauge!("metering_connections_open", "Open client connections on this node")
}

/// Counts a client connection that the server closed.
pub(crate) fn connection_closed(reason: &'static str) {
    counter!(
        "metering_connections_closed_total",
        "Client connections that the server closed, by reason",
        "reason" => reason
    )
    .increment(1);
}

/// Records when the certificate in use expires.
pub(crate) fn certificate_expiry(unix_time: Duration) {
    gauge!(
        "metering_tls_certificate_expiry_timestamp_seconds",
        "When the certificate in use expires, or the first of its chain, as a Unix time"
    )
    .set(unix_time.as_secs_f64());
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
        counter!(
            "metering_watched_payments_total",
            "Payments that the watcher found, by outcome",
            "chain_id" => chain.clone(),
            "outcome" => outcome
        )
        .increment(u64::from(count));
    }
    if let Some(block) = watched.scanned_to {
        gauge!("metering_watched_block", "The last block that the watcher scanned, by chain", "chain_id" => chain)
            .set(gauge_of(block));
    }
}

/// Records the number of unclaimed payments in the database, on all chains.
pub(crate) fn unclaimed(count: u64) {
    gauge!("metering_unclaimed_payments", "Payments that arrived and that no account has").set(gauge_of(count));
}

/// Records one round of settlement.
pub(crate) fn settled(chain_id: u64, report: &SettlementReport) {
    let chain = chain_id.to_string();
    let changed = [("final", report.finalized), ("reversed", report.newly_reversed), ("restored", report.restored)];
    for (outcome, count) in changed {
        counter!(
            "metering_settled_payments_total",
            "Credited payments that became final, were reversed, or were restored",
            "chain_id" => chain.clone(),
            "outcome" => outcome
        )
        .increment(u64::from(count));
    }
    gauge!(
        "metering_unsettled_payments",
        "Credited payments whose block is not final yet",
        "chain_id" => chain.clone()
    )
    .set(gauge_of(report.unsettled));
    gauge!(
        "metering_doubtful_payments",
        "Credited payments that are not in their block although it is final: invented by an RPC source, or forgotten",
        "chain_id" => chain.clone()
    )
    .set(gauge_of(report.doubtful));
    gauge!(
        "metering_reversed_payments",
        "Payments whose credits were taken back after a reorganisation",
        "chain_id" => chain
    )
    .set(gauge_of(report.reversed));
}

/// Records the state of a chain's RPC sources.
pub(crate) fn chain_sources(chain_id: u64, sources: Vec<SourceStatus>) {
    for (index, SourceStatus { problem, newest_block }) in sources.into_iter().enumerate() {
        // Not its host: a provider's may have a customer's name, and this page may be public.
        let labels = [("chain_id", chain_id.to_string()), ("source", (index + 1).to_string())];
        gauge!(
            "metering_chain_source_up",
            "Whether the last request to an RPC source succeeded, by chain and place in rpc_urls",
            &labels
        )
        .set(if problem.is_none() { 1.0 } else { 0.0 });
        if let Some(block) = newest_block {
            gauge!(
                "metering_chain_source_block",
                "The newest block that an RPC source has shown, by chain and place in rpc_urls",
                &labels
            )
            .set(gauge_of(block));
        }
    }
}

/// Records how many deliveries wait in the database, of all nodes.
pub(crate) fn deliveries_waiting(backlog: &DeliveryBacklog, now: Timestamp) {
    gauge!("metering_webhook_deliveries_pending", "Deliveries in the database that are pending")
        .set(gauge_of(backlog.pending));
    gauge!("metering_webhook_deliveries_parked", "Deliveries in the database that are parked")
        .set(gauge_of(backlog.parked));
    gauge!(
        "metering_webhook_oldest_due_seconds",
        "For how long the oldest delivery that can be sent has been due; 0 if there is none"
    )
    .set(seconds_since(backlog.oldest_due, now));
}

/// Counts an attempt to send usage to a sink.
pub(crate) fn usage_batch(sink: &str, is_delivered: bool) {
    let outcome = if is_delivered { "delivered" } else { "failed" };
    counter!(
        "metering_usage_sink_batches_total",
        "Attempts of this node to send a batch of usage to a sink, by sink and outcome",
        "sink" => sink.to_owned(),
        "outcome" => outcome
    )
    .increment(1);
}

/// Records for how long sinks fail, as the database has it for all nodes.
pub(crate) fn usage_sinks(sinks: &[UsageSink], now: Timestamp) {
    for sink in sinks {
        gauge!(
            "metering_usage_sink_failing_seconds",
            "For how long a sink has failed to take usage; 0 if it takes it",
            "sink" => sink.name.clone()
        )
        .set(seconds_since(sink.failing_since(now), now));
    }
}

/// 0 for never.
fn seconds_since(then: Option<Timestamp>, now: Timestamp) -> f64 {
    let millis = then.map_or(0, |then| now.unix_millis().saturating_sub(then.unix_millis()));
    Duration::from_millis(u64::try_from(millis).unwrap_or(0)).as_secs_f64()
}

/// Records the balance of a gas wallet.
pub(crate) fn gas_wallet(chain_id: u64, funds: GasFunds) {
    let chain = chain_id.to_string();
    // Through text, as a cast would be refused: a gauge has 53 bits.
    let rounded = |number: u128| number.to_string().parse().unwrap_or(f64::INFINITY);
    gauge!("metering_gas_wallet_wei", "The balance of the gas wallet, by chain", "chain_id" => chain.clone())
        .set(rounded(funds.balance.get()));
    gauge!(
        "metering_gas_wallet_transactions",
        "The number of payments whose gas the wallet can pay, by chain",
        "chain_id" => chain
    )
    .set(rounded(funds.transactions()));
}

/// Records how many payments reverted within the last hour, and whether that was too many.
pub(crate) fn reverted_payments(chain_id: u64, reverts: usize, is_paused: bool) {
    let chain = chain_id.to_string();
    gauge!(
        "metering_gas_wallet_reverts",
        "Payments that reverted within the last hour at the cost of the wallet that pays gas, by chain",
        "chain_id" => chain.clone()
    )
    .set(gauge_of(reverts));
    gauge!(
        "metering_self_settlement_paused",
        "1 while no payments are executed on a chain because too many reverted, by chain",
        "chain_id" => chain
    )
    .set(if is_paused { 1.0 } else { 0.0 });
}

/// Records how many payments for usage failed although their requests were served.
pub(crate) fn unpaid_usage(count: u64) {
    counter!(
        "metering_unpaid_usage_total",
        "Payments for usage (upto) that this node could not execute although their requests were served"
    )
    .absolute(count);
}

/// Records one batch of refilled accounts.
pub(crate) fn refilled(batch: &Refilled) {
    counter!("metering_refilled_accounts_total", "Accounts that got recurring credits").increment(batch.accounts);
    counter!("metering_refilled_atoms_total", "Recurring credits that accounts got, in atoms")
        .increment(batch.credits.atoms().unsigned_abs());
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
    let charges = |outcome: &'static str, count: u64| {
        counter!("metering_charges_total", "Charge decisions, by outcome", "outcome" => outcome).absolute(count);
    };
    charges("accepted", stats.accepted.load(Ordering::Relaxed));
    charges("overloaded", stats.overloaded.load(Ordering::Relaxed));
    for kind in RefusalKind::ALL {
        kind.in_metrics().into_iter().for_each(|outcome| charges(outcome, stats.refused(kind)));
    }
    counter!("metering_refunds_total", "Charges refunded").absolute(stats.refunded.load(Ordering::Relaxed));
    render_holds(meter);
    counter!("metering_commits_total", "Commits of charge batches").absolute(stats.commits.load(Ordering::Relaxed));
    counter!("metering_commits_failed_total", "Commits that failed").absolute(stats.failed.load(Ordering::Relaxed));
    for (reason, count) in [("flush", &stats.failed_early), ("refused", &stats.refused_early)] {
        counter!("metering_overlaps_failed_total", "Requests forwarded early and not charged", "reason" => reason)
            .absolute(count.load(Ordering::Relaxed));
    }
    counter!("metering_postings_failed_total", "Charges and refunds that failed individually")
        .absolute(stats.failed_postings.load(Ordering::Relaxed));
    counter!("metering_commit_postings_total", "Charges and refunds included in commits")
        .absolute(stats.postings.load(Ordering::Relaxed));
    gauge!("metering_queue_length", "Charges waiting to be committed").set(gauge_of(meter.queued()));
    gauge!("metering_streams_open", "Open streams on this node").set(gauge_of(streams_open));
    gauge!("metering_bodies_kept_bytes", "Memory that request bodies and kept responses take on this node")
        .set(gauge_of(bodies_kept));
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
        counter!(
            "metering_webhook_attempts_total",
            "Attempts of this node to deliver webhooks, by outcome",
            "outcome" => outcome
        )
        .absolute(count);
    }
    counter!("metering_webhook_deliveries_parked_total", "Deliveries that this node parked").absolute(courier.parked());
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
        counter!("metering_holds_settled_total", "Holds settled, by reason", "reason" => reason)
            .absolute(count.load(Ordering::Relaxed));
    }
    counter!("metering_holds_total", "Requests whose credits were held").absolute(holds.load(Ordering::Relaxed));
    counter!("metering_holds_exceeded_total", "Requests that cost more than was held")
        .absolute(exceeded_holds.load(Ordering::Relaxed));
    gauge!("metering_holds_open", "Holds of the requests that this node serves").set(gauge_of(meter.open_holds()));
}

fn gauge_of(count: impl TryInto<u32>) -> f64 {
    TryInto::<u32>::try_into(count).map_or(f64::INFINITY, f64::from)
}
