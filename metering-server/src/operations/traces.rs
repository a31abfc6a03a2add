//! Sends the spans of charges to a collector, by OTLP over HTTP.
//!
//! Spans wait in a bounded queue, and a separate thread sends them: if the collector is slow or down, spans are lost,
//! but no request is delayed.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use metering_core::trace;
use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{ParentBasedSampler, Sampler, SdkTracerProvider};
use tokio::runtime::Handle;
use tracing::{Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::registry::LookupSpan;

use crate::config::{ConfigError, OtlpConfig};

/// How long the collector may take to accept a batch.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the end of the process waits for the last spans.
const LAST_SPANS: Duration = Duration::from_secs(2);

/// The traces of this process, if they are configured.
#[derive(Debug)]
#[must_use = "spans that were not sent yet are lost without `Traces::end`"]
pub struct Traces(Option<SdkTracerProvider>);

impl Traces {
    pub(super) fn new(config: Option<&OtlpConfig>) -> Result<Self, ConfigError> {
        let Some(config) = config else { return Ok(Self(None)) };
        let authorization = config.authorization()?.map(|value| ("authorization".to_owned(), (*value).clone()));
        let client = Collector::new().map_err(|error| ConfigError::key("otlp", error))?;
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(client)
            .with_endpoint(config.traces_url())
            .with_headers(authorization.into_iter().collect::<HashMap<_, _>>())
            .with_timeout(SEND_TIMEOUT)
            .build()
            .map_err(|error| ConfigError::key("otlp.endpoint", error))?;
        let resource = Resource::builder()
            .with_service_name(config.service_name.clone())
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .build();
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_sampler(sampler(config))
            .with_resource(resource)
            .build();
        Ok(Self(Some(provider)))
    }

    /// Records the spans of charges.
    pub(super) fn layer<S>(&self) -> Option<impl Layer<S> + use<S>>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        let provider = self.0.as_ref()?;
        let layer = tracing_opentelemetry::layer()
            .with_tracer(provider.tracer("metering"))
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_tracked_inactivity(false)
            .with_context_activation(false);
        Some(layer.with_filter(Targets::new().with_target(trace::TARGET, Level::INFO)))
    }

    /// Sends the last spans, for two seconds at most. Blocks.
    pub fn end(self) {
        if let Some(provider) = self.0
            && let Err(error) = provider.shutdown_with_timeout(LAST_SPANS)
        {
            tracing::warn!(%error, "the last spans could not be sent");
        }
    }
}

/// Which traces are recorded. The ratio depends on the trace's id alone, so services with the same ratio agree.
fn sampler(config: &OtlpConfig) -> ParentBasedSampler {
    let ratio = || Sampler::TraceIdRatioBased(config.sample_ratio);
    let by_parent = Sampler::parent_based(ratio());
    match config.trust_caller {
        true => by_parent,
        false => by_parent.with_remote_parent_sampled(ratio()).with_remote_parent_not_sampled(ratio()),
    }
}

/// Sends requests to the collector from the runtime of the server: spans come from a thread without one.
struct Collector {
    client: reqwest::Client,
    runtime: Handle,
    /// Whether the last request failed, which is logged once.
    is_failing: AtomicBool,
}

impl Collector {
    fn new() -> Result<Self, reqwest::Error> {
        // An error means that one is installed already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let redirect = reqwest::redirect::Policy::none();
        let client = reqwest::Client::builder().timeout(SEND_TIMEOUT).redirect(redirect).build()?;
        Ok(Self { client, runtime: Handle::current(), is_failing: AtomicBool::new(false) })
    }

    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (client, request) = (self.client.clone(), request.try_into()?);
        let received = self.runtime.spawn(async move {
            let response = client.execute(request).await.map_err(reqwest::Error::without_url)?;
            let status = response.status();
            let body = response.bytes().await.map_err(reqwest::Error::without_url)?;
            Ok::<_, reqwest::Error>((status, body))
        });
        let (status, body) = received.await??;
        Ok(Response::builder().status(status).body(body)?)
    }

    /// Logs when the collector begins to fail, and when it works again.
    fn note(&self, problem: Option<String>) {
        match (problem, self.is_failing.load(Ordering::Relaxed)) {
            (Some(problem), false) => {
                self.is_failing.store(true, Ordering::Relaxed);
                tracing::warn!(
                    problem,
                    "spans cannot be sent to the collector, and are lost; requests are not affected"
                );
            }
            (None, true) => {
                self.is_failing.store(false, Ordering::Relaxed);
                tracing::info!("the collector accepts spans again");
            }
            _ => {}
        }
    }
}

/// The last cause of an error has the most detail.
fn cause(error: &HttpError) -> String {
    let first: &dyn std::error::Error = &**error;
    let last = std::iter::successors(Some(first), |cause| cause.source()).last();
    last.map_or_else(String::new, ToString::to_string)
}

impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Collector")
    }
}

#[async_trait]
impl HttpClient for Collector {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let sent = self.send(request).await;
        self.note(match &sent {
            Ok(response) if response.status().is_success() => None,
            Ok(response) => Some(response.status().to_string()),
            Err(error) => Some(cause(error)),
        });
        sent
    }
}
