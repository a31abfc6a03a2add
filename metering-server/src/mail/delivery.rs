//! The task that sends mail: several messages at once, each tried a few times.

use std::sync::Arc;
use std::time::Duration;

use metering_core::Service;
use metering_core::signups::{Mail, MailRequest};
use metrics::counter;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::http::Shutdown;
use crate::mail::message::Letterhead;
use crate::mail::transport::Transport;

/// Messages that are sent at the same time. One that is tried again must not hold up the others.
const AT_ONCE: usize = 8;

/// The pauses between two attempts. Together shorter than the life of a recovery link.
const PAUSES: [Duration; 4] =
    [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(30), Duration::from_secs(120)];

/// What sending needs.
pub(super) struct Delivery {
    service: Arc<Service>,
    transport: Transport,
    letterhead: Letterhead,
    ending: Shutdown,
}

/// What became of a request for mail.
enum Outcome {
    Sent,
    /// Nobody is to get mail, such as for an address that no account has verified.
    Nothing,
    Failed,
}

impl Delivery {
    pub(super) fn new(service: Arc<Service>, transport: Transport, letterhead: Letterhead, ending: Shutdown) -> Self {
        Self { service, transport, letterhead, ending }
    }

    async fn deliver(&self, request: MailRequest) {
        let kind = request.kind();
        let outcome = match self.prepared(&request).await {
            Ok(Some(mail)) => self.send(&request, &mail).await,
            Ok(None) => Outcome::Nothing,
            Err(()) => Outcome::Failed,
        };
        match outcome {
            Outcome::Sent => counter!("metering_mails_total", "kind" => kind, "outcome" => "sent").increment(1),
            Outcome::Failed => counter!("metering_mails_total", "kind" => kind, "outcome" => "failed").increment(1),
            Outcome::Nothing => {}
        }
    }

    /// The mail of a request. A store in trouble is asked again.
    async fn prepared(&self, request: &MailRequest) -> Result<Option<Mail>, ()> {
        let mut pauses = PAUSES.into_iter();
        loop {
            match self.service.prepare_mail(request).await {
                Ok(mail) => return Ok(mail),
                Err(error) => {
                    if !self.pause(pauses.next()).await {
                        tracing::warn!(%error, mail = ?request, "could not prepare mail");
                        return Err(());
                    }
                }
            }
        }
    }

    async fn send(&self, request: &MailRequest, mail: &Mail) -> Outcome {
        let message = match self.letterhead.message(mail) {
            Ok(message) => message,
            Err(error) => {
                tracing::error!(%error, mail = ?request, "could not write mail");
                return Outcome::Failed;
            }
        };
        let mut pauses = PAUSES.into_iter();
        loop {
            let Err(unsent) = self.transport.send(message.clone()).await else { return Outcome::Sent };
            if !unsent.may_pass || !self.pause(pauses.next()).await {
                tracing::warn!(error = %unsent, mail = ?request, "could not send mail");
                return Outcome::Failed;
            }
            tracing::debug!(error = %unsent, mail = ?request, "could not send mail yet; trying again");
        }
    }

    /// Waits before another attempt; `false` when there are no more. A shutdown ends the waiting, not the attempts.
    async fn pause(&self, pause: Option<Duration>) -> bool {
        let Some(pause) = pause else { return false };
        if self.ending.is_cancelled() {
            return false;
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = self.ending.cancelled() => {}
        }
        true
    }
}

/// Delivers requests until `ending` is cancelled, and then what is queued.
pub(super) async fn run(delivery: Arc<Delivery>, mut requests: mpsc::Receiver<MailRequest>, ending: Shutdown) {
    let mut sending = JoinSet::new();
    loop {
        tokio::select! {
            Some(_) = sending.join_next() => {}
            request = requests.recv(), if sending.len() < AT_ONCE => match request {
                Some(request) => {
                    let delivery = Arc::clone(&delivery);
                    sending.spawn(async move { delivery.deliver(request).await });
                }
                None => break,
            },
            () = ending.cancelled(), if !requests.is_closed() => requests.close(),
        }
    }
    while sending.join_next().await.is_some() {}
}
