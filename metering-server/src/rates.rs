//! Reads the operator's exchange rates again and again, beside all requests: no purchase ever waits for a rate.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use metering_core::Clock;
use metering_core::access::is_own_machine;
use metering_core::payments::{ExchangeRates, RateList};
use reqwest::redirect::Policy;
use reqwest::{Client, StatusCode};
use url::Url;

use crate::config::{CurrencyConfig, RateFeed, Secret};
use crate::http::Shutdown;

/// The maximum size of a document, in bytes.
const MAX_BYTES: usize = 256 * 1024;
/// How far ahead the time of rates may be. Rates that are named by their day may be set before it begins in UTC.
const MAX_AHEAD: Duration = Duration::from_secs(24 * 60 * 60);

/// Reads rates where the configuration says.
pub(crate) struct RateReader {
    source: Source,
    rates: Arc<ExchangeRates>,
    clock: Arc<dyn Clock>,
    every: Duration,
    timeout: Duration,
}

enum Source {
    Url(Client, Secret),
    File(PathBuf),
}

impl RateReader {
    /// A reader that sets `rates`; `None` if all rates are in the configuration.
    ///
    /// # Errors
    /// When no HTTP client can be set up.
    pub(crate) fn new(
        config: &CurrencyConfig,
        rates: &Arc<ExchangeRates>,
        clock: &Arc<dyn Clock>,
    ) -> Result<Option<Self>, reqwest::Error> {
        let source = match config.feed() {
            None => return Ok(None),
            Some(RateFeed::File(path)) => Source::File(path.clone()),
            Some(RateFeed::Url(url)) => Source::Url(client(url, config.timeout.duration())?, url.clone()),
        };
        let (rates, clock) = (Arc::clone(rates), Arc::clone(clock));
        let (every, timeout) = (config.every.duration(), config.timeout.duration());
        Ok(Some(Self { source, rates, clock, every, timeout }))
    }

    /// Reads rates until shutdown.
    pub(crate) async fn follow(self, shutdown: Shutdown) {
        let mut problem: Option<String> = None;
        loop {
            let read = tokio::select! {
                read = self.read() => read,
                () = shutdown.cancelled() => return,
            };
            match read {
                Ok(list) => {
                    if problem.take().is_some() {
                        tracing::info!("the exchange rates can be read again");
                    }
                    self.rates.set(list);
                }
                Err(error) if problem.as_ref() != Some(&error) => {
                    tracing::warn!(%error, "could not read the exchange rates; the last ones are used until they are too old");
                    problem = Some(error);
                }
                Err(_) => {}
            }
            tokio::select! {
                () = tokio::time::sleep(self.every) => {}
                () = shutdown.cancelled() => return,
            }
        }
    }

    async fn read(&self) -> Result<RateList, String> {
        let document = tokio::time::timeout(self.timeout, self.source.document()).await;
        let document = document.map_err(|_| "timed out".to_owned())??;
        let list = RateList::from_json(&document, self.rates.currency()).map_err(|error| error.to_string())?;
        if list.as_of > self.clock.now().saturating_add(MAX_AHEAD) {
            return Err(format!("they are of the future: {}", list.as_of));
        }
        Ok(list)
    }
}

/// A client that follows no redirects.
fn client(url: &Secret, timeout: Duration) -> Result<Client, reqwest::Error> {
    // Another part of the process may have installed a provider already; any will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder().timeout(timeout).redirect(Policy::none());
    // A proxy cannot reach this machine's loopback.
    let is_loopback = Url::parse(url.expose()).is_ok_and(|url| url.host_str().is_some_and(is_own_machine));
    if is_loopback { client.no_proxy() } else { client }.build()
}

impl Source {
    async fn document(&self) -> Result<Vec<u8>, String> {
        match self {
            Self::Url(client, url) => fetch(client, url.expose()).await,
            Self::File(path) => {
                let path = path.clone();
                let read = tokio::task::spawn_blocking(move || read_file(&path)).await;
                read.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
            }
        }
    }
}

async fn fetch(client: &Client, url: &str) -> Result<Vec<u8>, String> {
    // Leave out the URL, in case the operator put a secret in it.
    let failed = |error: reqwest::Error| error.without_url().to_string();
    let mut response = client.get(url).send().await.map_err(failed)?;
    if response.status() != StatusCode::OK {
        return Err(format!("the response was {}", response.status()));
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_BYTES {
            return Err(format!("the response has more than {MAX_BYTES} bytes"));
        }
    }
    Ok(body)
}

fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let metadata = fs::metadata(path)?;
    if !metadata.is_file() || metadata.len() > MAX_BYTES as u64 {
        return Err(io::Error::other(format!("must be a file of at most {MAX_BYTES} bytes")));
    }
    fs::read(path)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use metering_core::SystemClock;
    use metering_core::chains::TokenUnits;

    use super::*;

    /// Long enough for a busy machine.
    const LONG: &str = "1m";

    const RATES: &str = r#"{"as_of": "2026-11-27", "rates": {"USDC": "0.8612"}}"#;

    fn reader(source: &str) -> RateReader {
        let text = format!("code = 'EUR'\nsource = 'Desk'\nmax_age = 'off'\n{source}");
        let config: CurrencyConfig = toml::from_str(&text).unwrap();
        let (rates, clock) = (Arc::new(config.exchange_rates().unwrap()), Arc::new(SystemClock) as Arc<dyn Clock>);
        RateReader::new(&config, &rates, &clock).unwrap().unwrap()
    }

    /// The response of a server on loopback, and the reader's result.
    async fn read_from(response: String, timeout: &str) -> Result<RateList, String> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let reader = reader(&format!("url = 'http://{address}/eur.json?key=secret'\ntimeout = '{timeout}'"));
        let served = std::thread::spawn(move || {
            let (mut connection, _) = listener.accept().unwrap();
            let _ = connection.read(&mut [0; 4096]);
            // The reader may stop reading before the end.
            let _ = connection.write_all(response.as_bytes());
            connection
        });
        let read = reader.read().await;
        drop(served.join().unwrap());
        read
    }

    fn ok(body: &str) -> String {
        format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())
    }

    #[tokio::test]
    async fn rates_are_read_from_a_url() {
        let list = read_from(ok(RATES), LONG).await.unwrap();
        assert_eq!(list, RateList::from_json(RATES.as_bytes(), "EUR".parse().unwrap()).unwrap());
    }

    #[tokio::test]
    async fn hostile_responses_are_bounded_and_refused() {
        let location = "HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n";
        let silent = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n";
        // response, timeout, problem
        let table = [
            (location.to_owned(), LONG, "302"),
            ("HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n".to_owned(), LONG, "500"),
            (ok(&" ".repeat(MAX_BYTES + 1)), LONG, "more than"),
            (silent.to_owned(), "300ms", ""),
            (ok("<html>"), LONG, "expected value"),
            (ok(&RATES.replace("0.8612", "0")), LONG, "USDC"),
            (ok(&RATES.replace("2026", "9026")), LONG, "of the future"),
        ];
        for (response, timeout, problem) in table {
            let shown = response.chars().take(60).collect::<String>();
            let error = read_from(response, timeout).await.unwrap_err();
            assert!(error.contains(problem) && !error.contains("secret"), "{shown}: {error}");
        }
    }

    #[tokio::test]
    async fn a_file_is_read_again_and_its_last_good_rates_stay() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut reader = reader(&format!("file = '{}'", file.path().display()));
        reader.every = Duration::from_millis(1);
        let rates = Arc::clone(&reader.rates);
        let now = SystemClock.now();
        let value = || rates.value(TokenUnits::new(5_000_000), Some(("USDC", 6)), now).converted;
        let shutdown = Shutdown::new();
        let following = tokio::spawn(reader.follow(shutdown.clone()));
        assert_eq!(value(), None, "an empty file has no rates");
        fs::write(file.path(), RATES).unwrap();
        while value().is_none() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        fs::write(file.path(), "rubbish").unwrap();
        fs::write(file.path(), RATES.replace("0.8612", "1")).unwrap();
        while value().unwrap().amount.to_string() != "5.00" {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        shutdown.cancel();
        following.await.unwrap();
    }
}
