//! `metering call`: sends one request to a metered route and passes the response on as it arrives.

mod body;
mod headers;
mod payload;
mod retry;
pub(in crate::client) mod target;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{ArgGroup, Args};
use http::Method;
use metering_client::{Client, ClientError, OpenResponse, ServiceUrl};
use metering_core::charging::IdempotencyKey;
use metering_core::{ClientSource, Randomness, SystemRandomness};

use crate::client::charging::call::body::Destination;
use crate::client::charging::call::headers::{ExtraHeader, ExtraHeaders};
use crate::client::charging::call::payload::Payload;
use crate::client::charging::call::retry::{KeyOrigin, is_retryable};
use crate::client::charging::call::target::{Param, RequestTarget};
use crate::client::charging::receipt;
use crate::client::paying::arguments::PayArgs;
use crate::client::paying::transport::PayingTransport;
use crate::client::paying::url::CallUrl;
use crate::client::session::interruption::Interruption;
use crate::client::session::{ProfileArgs, Session};
use crate::failure::Failure;
use crate::new_file::NewFile;
use crate::output::notice;
use crate::table::printable;

/// Call a metered route and print its response.
///
/// The response goes to standard output unchanged, as it arrives; the charge and the balance go to stderr, or the
/// credits held until the cost is known. `metering routes` lists the routes.
///
/// With --pay, it calls any URL, and pays from a wallet if the service asks for payment. Run it again after a failure:
/// it resends the payment signed for the call, and never pays twice.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("files").args(["output", "receipt"]).multiple(true)))]
#[command(after_help = "\
Examples:
  metering call /mpp/ethPrice
  metering call /mpp/ethPrice --receipt receipt.txt
  metering call /mpp/snapshot/allTrades/19000000 --output trades.json
  metering call \"/mpp/ethPrice/{block_number}\" --param block_number=19000000 --retry
  metering call /v1/chat/completions --data @request.json
  metering call https://api.example.com/weather --pay --max 0.25")]
pub(crate) struct CallArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    /// A path with its query, or a route of the catalogue whose parameters --param fills in. With --pay, also the URL
    /// of another service, which does not get the profile's key.
    #[arg(value_name = "ROUTE")]
    route: String,
    /// A parameter of the route, for its path or query as the catalogue says; percent-encoded as needed.
    #[arg(long = "param", value_name = "NAME=VALUE")]
    params: Vec<Param>,
    /// The HTTP method; GET unless the route or --data says otherwise.
    #[arg(long, short = 'X', value_name = "METHOD", value_parser = read_method)]
    method: Option<Method>,
    /// A JSON document to send: the JSON itself, @FILE, or - for standard input. With a Content-Type header, it can be
    /// anything.
    #[arg(long, short, value_name = "JSON|@FILE|-")]
    data: Option<Payload>,
    /// A header to send.
    #[arg(long = "header", short = 'H', value_name = "NAME: VALUE")]
    headers: Vec<ExtraHeader>,
    /// Write the response to a file, which appears once it is complete.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Request a signed receipt for the call's cost, and write it to a file; `metering receipt verify` checks it.
    #[arg(long, value_name = "FILE")]
    receipt: Option<PathBuf>,
    /// Replace the files of --output and --receipt if they exist.
    #[arg(long, requires = "files")]
    force: bool,
    /// Wait and retry when a rate limit is reached or the service is busy; rejected attempts are not charged.
    #[arg(long)]
    retry: bool,
    /// An idempotency key: a request sent again with the same key within 24 hours is not charged again. --retry
    /// generates a key if none is given. With both, a request whose response was lost is retried too.
    #[arg(long, value_name = "KEY", value_parser = IdempotencyKey::parse)]
    idempotency_key: Option<IdempotencyKey>,
    /// The maximum total wait, in seconds.
    #[arg(long, value_name = "SECONDS", requires = "retry", default_value_t = 300)]
    retry_limit: u64,
    /// Do not print the charge, the balance and payments.
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    pay: PayArgs,
    /// Pay again, although an earlier payment signed for this call may still be executed.
    #[arg(long, requires = "pay", help_heading = "Payment")]
    again: bool,
}

/// Where a call goes.
struct Destined {
    client: Client,
    /// The path and query, if the user gave a full URL.
    target: Option<String>,
}

fn read_method(text: &str) -> Result<Method, &'static str> {
    let known =
        matches!(text.to_ascii_uppercase().as_str(), "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE" | "OPTIONS");
    let method = known.then(|| Method::from_bytes(text.to_ascii_uppercase().as_bytes()).ok()).flatten();
    method.ok_or("must be GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS")
}

/// A random idempotency key.
pub(crate) fn generate_key() -> IdempotencyKey {
    let mut bytes = [0; 16];
    SystemRandomness.fill(&mut bytes);
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    IdempotencyKey::parse(&digits).expect("hexadecimal digits are a valid key")
}

impl CallArgs {
    pub(crate) async fn run(mut self, out: &mut dyn Write) -> Result<(), Failure> {
        self.headers.extend(self.receipt.as_ref().map(|_| ExtraHeader::receipt_preference()));
        let session = self.profile.open()?;
        let destined = self.destined(&session)?;
        // Open the output first, so that an error here comes before any charge.
        let mut destination = Destination::open(self.output.as_deref(), self.force, out)?;
        let receipt = self.receipt.as_deref().map(|file| NewFile::next_to(file, self.force)).transpose()?;
        if !destination.is_file() {
            return self.fetch(&session, destined, &mut destination, receipt).await;
        }
        let mut interruption = Interruption::watch()?;
        tokio::select! {
            fetched = self.fetch(&session, destined, &mut destination, receipt) => fetched?,
            // Dropping the destination removes the incomplete file.
            () = interruption.next() => {
                let problem = "stopped: the file was not written; if the service had started to respond, the request \
                               was charged";
                return Err(Failure::Interrupted(problem.to_owned()));
            }
        }
        destination.finish()
    }

    /// The service, behind a transport that pays if the user wants that.
    fn destined(&self, session: &Session) -> Result<Destined, Failure> {
        let url = if self.pay.pay { CallUrl::read(&self.route)? } else { None };
        let with_headers = |transport| ExtraHeaders::over(transport, &self.headers);
        let Some(payer) = self.pay.payer(session, self.again, self.quiet) else {
            session.key()?;
            return Ok(Destined { client: session.client_over(with_headers(session.transport())), target: None });
        };
        let paying = |transport, service: &ServiceUrl| {
            Arc::new(PayingTransport::new(with_headers(transport), service.clone(), Arc::new(payer)))
        };
        let Some(CallUrl { origin, target }) = &url else {
            let transport = paying(session.transport(), session.url());
            return Ok(Destined { client: session.client_over(transport), target: None });
        };
        if !self.params.is_empty() {
            let problem = "--param belongs to a route of the catalogue, not to a URL";
            return Err(Failure::Usage(problem.to_owned()));
        }
        let transport = paying(session.transport_to(origin)?, origin);
        let is_own = url.as_ref().is_some_and(|url| url.is_of(session.url()));
        let client = if is_own { session.client_over(transport) } else { Client::new(transport, ClientSource::Cli) };
        Ok(Destined { client, target: Some(target.clone()) })
    }

    async fn fetch(
        &self,
        session: &Session,
        destined: Destined,
        destination: &mut Destination<'_>,
        receipt: Option<NewFile>,
    ) -> Result<(), Failure> {
        let is_json = !self.headers.iter().any(ExtraHeader::is_content_type);
        let payload = self.data.as_ref().map(|data| data.read(is_json)).transpose()?;
        let method = self.method.clone().or_else(|| payload.as_ref().map(|_| Method::POST));
        let Destined { client, target } = destined;
        let RequestTarget { method, target, needs_body } = match target {
            Some(target) => RequestTarget { method: method.unwrap_or(Method::GET), target, needs_body: false },
            None => target::resolve(&session.anonymous(), method, &self.route, &self.params).await?,
        };
        if needs_body && payload.is_none() {
            let problem = format!("{method} {target} needs a body: add --data JSON, --data @FILE or --data -");
            return Err(Failure::Usage(problem));
        }
        let limit = if self.retry { Duration::from_secs(self.retry_limit) } else { Duration::ZERO };
        let (client, key) = match &self.idempotency_key {
            Some(key) => (client.with_idempotency_key(key.clone()), KeyOrigin::Given),
            None if self.retry => (client.with_idempotency_key(generate_key()), KeyOrigin::Generated),
            None => (client, KeyOrigin::None),
        };
        let (mut retries, mut waited) = (retry::policy(limit).start(), Duration::ZERO);
        let response = loop {
            let error = match client.open(method.clone(), &target, payload.clone().map(Into::into)).await {
                Ok(response) => break response,
                Err(error) => error,
            };
            let next = is_retryable(&error, key).then(|| retries.next_wait(error.retry_after(), waited));
            let Some(pause) = next.flatten() else {
                if let ClientError::Refused(refusal) = &error
                    && !self.quiet
                {
                    receipt::print_charge(&refusal.headers);
                }
                return Err(error.into());
            };
            if !self.quiet {
                let seconds = pause.as_secs();
                notice(&printable(&format!("{error}; retrying in {seconds} s")));
            }
            tokio::time::sleep(pause).await;
            waited += pause;
        };
        let OpenResponse { headers, body, .. } = response;
        let received = destination.receive(body).await;
        destination.end_line()?;
        if !self.quiet {
            receipt::print_final_charge(&client, &headers).await;
        }
        if let Some(file) = receipt {
            receipt::save(&client, &headers, file).await?;
        }
        received
    }
}
