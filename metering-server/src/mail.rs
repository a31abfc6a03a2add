//! Sends mail: links that verify addresses or replace keys, and notices.
//!
//! Requests only queue mail, so a slow mail server slows down nothing else. One task prepares, renders and sends it,
//! and tries again after failures that may pass.

mod delivery;
mod message;
mod transport;

use std::sync::Arc;
use std::time::Duration;

use lettre::Address;
use metering_core::Service;
use metering_core::access::Email;
use metering_core::service::SignupSettings;
use metering_core::signups::{MailRequest, Mailer};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::access::limits::Limits;
use crate::config::Config;
use crate::http::Shutdown;
use delivery::Delivery;
use message::Letterhead;
pub(crate) use message::{RECOVER_PAGE, VERIFY_PAGE};
use transport::Transport;

/// The mailer cannot be set up.
type SetupError = Box<dyn std::error::Error + Send + Sync>;

/// How much mail may wait. A mailer that is this far behind would send links that have expired.
const QUEUE: usize = 1_000;

/// How long a shutdown waits for mail that is queued.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Takes requests for mail. Cheap, and never waits.
#[derive(Debug)]
pub(crate) struct Outbox {
    queue: mpsc::Sender<MailRequest>,
    limits: Arc<Limits>,
}

/// The rest of the mailer, until it is started with the service that prepares the mail.
pub(crate) struct Unstarted {
    requests: mpsc::Receiver<MailRequest>,
    transport: Transport,
    letterhead: Letterhead,
}

/// The task that sends mail.
#[derive(Debug)]
pub(crate) struct MailTask {
    task: JoinHandle<()>,
    ending: Shutdown,
}

/// Sets up the configured mailer; `None` without `[smtp]`. `pages` is the URL of the pages, for links.
///
/// # Errors
/// When the connection's settings are not valid.
pub(crate) fn new(
    config: &Config,
    limits: &Arc<Limits>,
    pages: &str,
) -> Result<Option<(Arc<Outbox>, Unstarted)>, SetupError> {
    let Some(smtp) = &config.smtp else { return Ok(None) };
    let (queue, requests) = mpsc::channel(QUEUE);
    let letterhead = Letterhead::new(smtp, &config.brand, pages)?;
    let unstarted = Unstarted { requests, transport: Transport::new(smtp, pages)?, letterhead };
    Ok(Some((Arc::new(Outbox { queue, limits: Arc::clone(limits) }), unstarted)))
}

/// The part of the signup settings that is about mail.
pub(crate) fn settings(config: &Config, outbox: Option<&Arc<Outbox>>, signup: SignupSettings) -> SignupSettings {
    let mailer = outbox.map(|outbox| Arc::clone(outbox) as Arc<dyn Mailer>);
    SignupSettings { mailer, verify_email: config.verifies_email(), ..signup }
}

impl Mailer for Outbox {
    fn can_address(&self, email: &Email) -> bool {
        address(email).is_some()
    }

    /// Beyond an address's budget for recovery mail, nothing is queued, and the caller does not learn that: the mailbox
    /// has a link that still works (see `Limits::recovery_mail`).
    fn queue(&self, request: MailRequest) -> bool {
        match &request {
            MailRequest::Recovery(email) if !self.limits.recovery_mail(email) => true,
            _ => self.queue.try_send(request).is_ok(),
        }
    }
}

impl Unstarted {
    /// Starts sending.
    pub(crate) fn start(self, service: Arc<Service>) -> MailTask {
        let ending = Shutdown::new();
        let Self { requests, transport, letterhead } = self;
        let delivery = Delivery::new(service, transport, letterhead, ending.clone());
        let task = tokio::spawn(delivery::run(Arc::new(delivery), requests, ending.clone()));
        MailTask { task, ending }
    }
}

impl MailTask {
    /// Sends what is queued, for a limited time. Call it when no more requests can come.
    pub(crate) async fn drain(self) {
        self.ending.cancel();
        let abort = self.task.abort_handle();
        match tokio::time::timeout(DRAIN_TIMEOUT, self.task).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(%error, "the mail task failed"),
            Err(_) => {
                abort.abort();
                tracing::warn!("mail was still waiting to be sent when the server stopped; its owners can ask again");
            }
        }
    }
}

/// The address in the form that mail needs; `None` when nothing can be sent there.
fn address(email: &Email) -> Option<Address> {
    email.as_str().parse().ok()
}
