//! Sends requests, and pays for them when the service asks for it.
//!
//! The order of steps is fixed: look for an earlier payment signed for this call, and if there is one, send only that;
//! otherwise send the request without a payment, and on a 402 with offers, sign a payment, record it and send it. Any
//! response to a request with a payment is passed on: a second 402 is never paid. Redirects are never followed, with or
//! without a payment, because the underlying transport follows none.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{Request, Response, StatusCode, header};
use metering_client::{BodyStream, ServiceUrl, Transport, Unreachable};
use metering_core::wire::{PAYMENT_SIGNATURE_HEADER, X_PAYMENT_HEADER};

use crate::client::paying::call::Call;
use crate::client::paying::call_lock::CallLock;
use crate::client::paying::entry::Entry;
use crate::client::paying::journal::Payment;
use crate::client::paying::offers::Offered;
use crate::client::paying::payer::Payer;
use crate::client::paying::receipt::Verdict;
use crate::client::paying::refusal::{self, whole};
use crate::client::paying::state::State;
use crate::failure::Failure;
use crate::table::printable;

/// The longest error to read, in bytes. Offers of version 1 are in it.
const ERROR_BYTES_MAX: usize = 1024 * 1024;

/// A transport to a service that pays for its requests. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct PayingTransport {
    inner: Arc<dyn Transport>,
    service: ServiceUrl,
    payer: Arc<Payer>,
}

/// Why there is no response from the service.
enum Stopped {
    Failed(Failure),
    Unreachable(Unreachable),
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<Unreachable> for Stopped {
    fn from(unreachable: Unreachable) -> Self {
        Self::Unreachable(unreachable)
    }
}

#[async_trait]
impl Transport for PayingTransport {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<BodyStream>, Unreachable> {
        let has_payment = |name| request.headers().contains_key(name);
        if has_payment(PAYMENT_SIGNATURE_HEADER) || has_payment(X_PAYMENT_HEADER) {
            // Another process pays.
            return self.inner.send(request).await;
        }
        match self.exchange(request).await {
            Ok(response) => Ok(response),
            Err(Stopped::Failed(failure)) => Ok(refusal::response(&failure)),
            Err(Stopped::Unreachable(why)) => Err(why),
        }
    }
}

impl PayingTransport {
    /// Requests go through `inner` to `service`, and `payer` pays for them.
    pub(crate) fn new(inner: Arc<dyn Transport>, service: ServiceUrl, payer: Arc<Payer>) -> Self {
        Self { inner, service, payer }
    }

    async fn exchange(&self, request: Request<Bytes>) -> Result<Response<BodyStream>, Stopped> {
        let call = Call::of(&request, &self.service);
        self.payer.give_up(&call).await?;
        if self.open_payment(&call).await?.is_some() {
            let turn = CallLock::take(&self.payer.journal, &call).await?;
            // The previous run may have finished it.
            if let Some(payment) = self.continued(&call).await? {
                return self.send_again(request, payment, turn).await;
            }
        }
        let response = self.inner.send(request.clone()).await?;
        if response.status() != StatusCode::PAYMENT_REQUIRED {
            return Ok(response);
        }
        let (head, body) = read(response).await?;
        let Some(offered) = Offered::read(&head.headers, &body)? else {
            return Ok(Response::from_parts(head, whole(body)));
        };
        let turn = CallLock::take(&self.payer.journal, &call).await?;
        if let Some(payment) = self.continued(&call).await? {
            return self.send_again(request, payment, turn).await;
        }
        let entry = self.payer.sign(&call, &offered).await?;
        self.payer.report(&printable(&format!("Paying {entry}.")));
        self.pay(request, &entry, true, turn).await
    }

    async fn open_payment(&self, call: &Call) -> Result<Option<Payment>, Failure> {
        self.payer.journal.open_payment(&call.fingerprint).await
    }

    /// The payment to send again, if there is one. A replaced payment is abandoned.
    async fn continued(&self, call: &Call) -> Result<Option<Payment>, Failure> {
        while let Some(payment) = self.open_payment(call).await? {
            if !self.payer.is_superseded(&payment, call)? {
                return Ok(Some(payment));
            }
            let entry = &payment.entry;
            self.payer.journal.change(&entry.id, State::GivenUp).await?;
            self.payer.report(&printable(&format!(
                "The payment of {entry} was refused, and another wallet or API key is set now: it is not sent again."
            )));
        }
        Ok(None)
    }

    async fn send_again(
        &self,
        request: Request<Bytes>,
        payment: Payment,
        turn: CallLock,
    ) -> Result<Response<BodyStream>, Stopped> {
        let Payment { entry, state } = payment;
        self.payer.check_continues(&entry)?;
        self.payer.report(&printable(&format!("Sending the payment of {entry} again, which was signed before.")));
        self.pay(request, &entry, state.is_refused(), turn).await
    }

    /// Sends a request with a payment that is on disk. `is_unpaid` means that the payment was certainly not executed
    /// before: it was never sent, or always refused.
    async fn pay(
        &self,
        request: Request<Bytes>,
        entry: &Entry,
        is_unpaid: bool,
        turn: CallLock,
    ) -> Result<Response<BodyStream>, Stopped> {
        let (name, value) = entry.to_header()?;
        let mut paid = request.clone();
        paid.headers_mut().insert(name, value);
        let response = match self.inner.send(paid).await {
            Ok(response) => response,
            Err(why) => return Err(self.lost(entry, why.into()).await),
        };
        if response.status().is_success() {
            let verdict = Verdict::of(response.status(), response.headers(), b"");
            if let Verdict::Served { transaction } = verdict {
                self.settled(entry, transaction.clone(), false).await;
                return Ok(self.watched(response, entry, transaction, turn));
            }
        }
        let (head, body) = match read(response).await {
            Ok(read) => read,
            Err(why) => return Err(self.lost(entry, why).await),
        };
        let is_402 = head.status == StatusCode::PAYMENT_REQUIRED;
        match Verdict::of(head.status, &head.headers, &body) {
            Verdict::Served { transaction } => self.settled(entry, transaction, true).await,
            Verdict::Credited => {
                self.record(entry, State::Done { transaction: None }).await;
                self.payer.report("The payment was credited before; calling without a payment.");
                drop(turn);
                // Any response from here on is passed on, and not paid.
                return Ok(self.inner.send(request).await?);
            }
            Verdict::Settled { transaction } => {
                self.settled(entry, transaction, false).await;
                if is_402 {
                    return Err(unserved(entry).into());
                }
                self.payer.report(&kept(entry));
            }
            Verdict::Unknown => {
                self.record(entry, State::Unknown).await;
                self.payer.report(&kept(entry));
                if is_402 {
                    return Err(unresolved(entry, "it is not confirmed yet").into());
                }
            }
            Verdict::Refused { why } if is_unpaid => {
                self.record(entry, State::Refused { why: why.clone() }).await;
                if is_402 {
                    return Err(refused(entry, &why).into());
                }
            }
            Verdict::Refused { why } => {
                if is_402 {
                    return Err(unresolved(entry, &why).into());
                }
                self.payer.report(&kept(entry));
            }
        }
        Ok(Response::from_parts(head, whole(body)))
    }

    /// Records that the outcome of a payment is unknown. Returns why.
    async fn lost(&self, entry: &Entry, why: Stopped) -> Stopped {
        self.record(entry, State::Unknown).await;
        self.payer.report(&kept(entry));
        why
    }

    /// Records that a payment was executed, and whether its response has arrived.
    async fn settled(&self, entry: &Entry, transaction: Option<String>, has_arrived: bool) {
        let of = transaction.as_ref().map(|hash| format!(" in transaction {hash}")).unwrap_or_default();
        self.payer.report(&printable(&format!("Paid {entry}{of}.")));
        let state = if has_arrived { State::Done { transaction } } else { State::Settled { transaction } };
        self.record(entry, state).await;
    }

    /// Records a state after a response. If that fails, the older state stays, which only causes the same payment to be
    /// sent again; so the response is still passed on.
    async fn record(&self, entry: &Entry, state: State) {
        if let Err(failure) = self.payer.journal.change(&entry.id, state).await {
            self.payer.report(&format!("Could not write down what became of the payment: {}", failure.one_line()));
        }
    }

    /// The response; its end is recorded, and until then the call is not finished. Streams of events do not end, so
    /// their beginning is recorded instead.
    fn watched(
        &self,
        response: Response<BodyStream>,
        entry: &Entry,
        transaction: Option<String>,
        turn: CallLock,
    ) -> Response<BodyStream> {
        let is_stream = response.headers().get(header::CONTENT_TYPE);
        let is_stream = is_stream.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        let (head, body) = response.into_parts();
        let unfinished = Some((self.clone(), entry.clone(), transaction, turn));
        let body = stream::unfold((body, unfinished), move |(mut body, mut unfinished)| async move {
            let chunk = body.next().await;
            let has_arrived = match &chunk {
                None => true,
                Some(Ok(_)) => is_stream,
                Some(Err(_)) => false,
            };
            if has_arrived && let Some((transport, entry, transaction, _turn)) = unfinished.take() {
                transport.record(&entry, State::Done { transaction }).await;
            }
            Some((chunk?, (body, unfinished)))
        });
        Response::from_parts(head, body.boxed())
    }
}

/// The head of a response, and its whole body.
async fn read(response: Response<BodyStream>) -> Result<(http::response::Parts, Bytes), Stopped> {
    let (head, mut body) = response.into_parts();
    let mut bytes = Vec::new();
    while let Some(chunk) = body.next().await {
        bytes.extend_from_slice(&chunk?);
        if bytes.len() > ERROR_BYTES_MAX {
            let problem = format!("the service's error is longer than {ERROR_BYTES_MAX} bytes");
            return Err(Failure::Failed(problem).into());
        }
    }
    Ok((head, bytes.into()))
}

fn kept(entry: &Entry) -> String {
    printable(&format!(
        "The payment of {entry} may have been executed. It is kept, and the same call sends it again; no other is made."
    ))
}

fn refused(entry: &Entry, why: &str) -> Failure {
    Failure::NoCredits(format!(
        "the service refused the payment of {entry} from {} ({why}); until it expires, the same call sends it again, \
         unless another wallet or API key is set; add --again to sign another one now",
        entry.payer.to_checksummed()
    ))
}

fn unresolved(entry: &Entry, why: &str) -> Failure {
    Failure::Conflict(format!(
        "the service does not serve the call for the payment of {entry} ({why}), which may have been executed when it was \
         sent first; see on the chain whether it was, or run it again with --again to pay another time"
    ))
}

fn unserved(entry: &Entry) -> Failure {
    Failure::Conflict(format!(
        "the payment of {entry} was executed, but the service does not serve the call for it; ask the service, or run it \
         again with --again to pay another time"
    ))
}
