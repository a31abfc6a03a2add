//! Sends usage to the operator's sinks: batches of CloudEvents over HTTP.
//!
//! The operator chose the URLs, so any address will do. As for webhooks, no redirect is followed and no proxy is used.

use std::error::Error;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use metering_core::events::{AttemptOutcome, UsageCourier, UsageCourierSettings, UsageSender, WebhookUrl};
use metering_core::{Clock, FullStore};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use tokio::task::JoinHandle;

use super::client::WebhookClient;
use super::sender::failed;
use crate::config::{Config, UsageSinkConfig};
use crate::http::Shutdown;
use crate::operations::metrics;

/// The type of a batch (HTTP Protocol Binding for CloudEvents 1.0.2, section 3.3).
const BATCH_TYPE: &str = "application/cloudevents-batch+json; charset=utf-8";

/// A sink cannot be used.
type SetupError = Box<dyn Error + Send + Sync>;

/// The parts of usage export, before its tasks start.
#[derive(Debug)]
pub(crate) struct Sinks(Vec<UsageCourier>);

impl Sinks {
    /// # Errors
    /// When certificates or a sink's URL or headers cannot be used.
    pub(crate) fn prepare(
        config: &Config,
        store: &Arc<dyn FullStore>,
        clock: &Arc<dyn Clock>,
    ) -> Result<Self, SetupError> {
        let courier = |sink: &UsageSinkConfig| -> Result<UsageCourier, SetupError> {
            let settings = UsageCourierSettings {
                sink: sink.name.clone(),
                source: sink.event_source(config.public_url.as_deref()),
                batch: sink.batch,
                interval: sink.interval.duration(),
            };
            let sender = SinkSender::new(sink, config, clock)?;
            Ok(UsageCourier::new(Arc::clone(store) as _, Arc::new(sender), Arc::clone(clock), settings))
        };
        config.usage.sinks.iter().map(courier).collect::<Result<_, _>>().map(Self)
    }

    /// Sends until shutdown. A batch that is cut off is sent again.
    pub(crate) fn start(self, shutdown: &Shutdown) -> Vec<JoinHandle<()>> {
        let start = |courier: UsageCourier| tokio::spawn(courier.run(shutdown.clone().cancelled_owned()));
        self.0.into_iter().map(start).collect()
    }
}

/// Posts batches to one sink.
#[derive(Debug)]
struct SinkSender {
    name: String,
    client: WebhookClient,
    url: WebhookUrl,
    headers: HeaderMap,
    clock: Arc<dyn Clock>,
}

impl SinkSender {
    fn new(sink: &UsageSinkConfig, config: &Config, clock: &Arc<dyn Clock>) -> Result<Self, SetupError> {
        let client = WebhookClient::for_operator(config.webhooks.ca_file.as_deref())?;
        let mut headers: HeaderMap = sink.header_pairs()?.into_iter().collect();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(BATCH_TYPE));
        let (name, url, clock) = (sink.name.clone(), sink.target()?, Arc::clone(clock));
        Ok(Self { name, client, url, headers, clock })
    }
}

#[async_trait]
impl UsageSender for SinkSender {
    async fn send(&self, batch: Vec<u8>) -> AttemptOutcome {
        let sent = self.client.post(&self.url, self.headers.clone(), Bytes::from(batch), self.clock.now()).await;
        let outcome = sent.map_or_else(|failure| failed(failure.to_string()), |response| response.outcome());
        metrics::usage_batch(&self.name, matches!(outcome, AttemptOutcome::Delivered { .. }));
        outcome
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread;

    use metering_core::SystemClock;

    use super::*;

    #[tokio::test]
    async fn a_batch_is_posted_with_its_type_and_the_headers_of_its_sink() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/in?k=v", listener.local_addr().unwrap());
        let receiver = thread::spawn(move || {
            let (mut connection, _) = listener.accept().unwrap();
            let mut received = Vec::new();
            let mut chunk = [0; 4096];
            while !received.ends_with(b"[{}]") {
                let count = connection.read(&mut chunk).unwrap();
                assert!(count > 0, "the request ended early");
                received.extend_from_slice(&chunk[..count]);
            }
            connection.write_all(b"HTTP/1.1 429 Slow\r\nretry-after: 7\r\ncontent-length: 2\r\n\r\nno").unwrap();
            String::from_utf8(received).unwrap()
        });
        let text = format!("[[usage.sinks]]\nname = 'a'\nurl = '{url}'\nheaders.authorization = 'Bearer t0ken'");
        let config: Config = toml::from_str(&text).unwrap();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let sender = SinkSender::new(&config.usage.sinks[0], &config, &clock).unwrap();
        assert!(!format!("{sender:?}").contains("t0ken"));
        let outcome = sender.send(b"[{}]".to_vec()).await;
        let AttemptOutcome::Failed { status, retry_after, response, .. } = outcome else { panic!("{outcome:?}") };
        assert_eq!((status, retry_after.map(|wait| wait.as_secs())), (Some(429), Some(7)));
        assert_eq!(response.as_deref(), Some("no"));
        let request = receiver.join().unwrap().to_ascii_lowercase();
        assert!(request.starts_with("post /in?k=v http/1.1\r\n"), "{request}");
        for header in ["content-type: application/cloudevents-batch+json; charset=utf-8", "authorization: bearer t0ken"]
        {
            assert!(request.contains(&format!("\r\n{header}\r\n")), "{request}");
        }
    }
}
