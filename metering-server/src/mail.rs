//! Sends mail: links that verify addresses, replace keys or sign in, notices, and alerts.
//!
//! Requests only queue mail, so a slow mail server slows down nothing else. Tasks prepare, render and send it, and try
//! again after failures that may pass. Links that someone waits for to get in have a separate queue, so other mail never
//! delays them.

mod alerts;
mod counted;
mod delivery;
mod message;
mod transport;

use std::sync::Arc;
use std::time::Duration;

use metering_core::Service;
use metering_core::access::Email;
use metering_core::service::SignupSettings;
use metering_core::signups::{MailRequest, Mailer};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::access::limits::Limits;
use crate::config::Config;
use crate::http::Shutdown;
use crate::run::Current;
pub(crate) use alerts::AlertMail;
use delivery::Delivery;
pub(crate) use message::Letterhead;
pub(crate) use message::{RECOVER_PAGE, VERIFY_PAGE};
use transport::Transport;

/// The mailer cannot be set up.
type SetupError = Box<dyn std::error::Error + Send + Sync>;

/// How many requests may wait in each queue.
const QUEUE: usize = 1_000;

/// How long a shutdown waits for mail that is queued.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Takes requests for mail. Cheap, and never waits.
#[derive(Debug)]
pub(crate) struct Outbox {
    recoveries: mpsc::Sender<MailRequest>,
    others: mpsc::Sender<MailRequest>,
    limits: Arc<Limits>,
}

/// The rest of the mailer, until it is started with the service that prepares the mail.
pub(crate) struct Unstarted {
    recoveries: mpsc::Receiver<MailRequest>,
    others: mpsc::Receiver<MailRequest>,
    transport: Arc<Transport>,
    letterhead: Arc<Current<Letterhead>>,
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
    let (outbox, recoveries, others) = Outbox::new(QUEUE, Arc::clone(limits));
    let letterhead = Arc::new(Current::new(Arc::new(Letterhead::new(smtp, &config.brand, pages)?)));
    let unstarted = Unstarted { recoveries, others, transport: Arc::new(Transport::new(smtp, pages)?), letterhead };
    Ok(Some((Arc::new(outbox), unstarted)))
}

/// The part of the signup settings that is about mail.
pub(crate) fn settings(config: &Config, outbox: Option<&Arc<Outbox>>, signup: SignupSettings) -> SignupSettings {
    let mailer = outbox.map(|outbox| Arc::clone(outbox) as Arc<dyn Mailer>);
    SignupSettings { mailer, verify_email: config.verifies_email(), ..signup }
}

impl Outbox {
    /// With the receivers of recovery links and of other mail; `room` is for each.
    fn new(room: usize, limits: Arc<Limits>) -> (Self, mpsc::Receiver<MailRequest>, mpsc::Receiver<MailRequest>) {
        let (recoveries, to_recover) = mpsc::channel(room);
        let (others, other) = mpsc::channel(room);
        (Self { recoveries, others, limits }, to_recover, other)
    }
}

impl Mailer for Outbox {
    fn can_address(&self, email: &Email) -> bool {
        message::address(email).is_some()
    }

    /// Beyond an address's budget for recovery mail, nothing is queued, and the caller is not notified: the mailbox has
    /// a link that still works (see `Limits::recovery_mail`). A request that finds no room does not use the budget.
    fn queue(&self, request: MailRequest) -> bool {
        let is_awaited = matches!(request, MailRequest::Recovery(_) | MailRequest::SignIn(_) | MailRequest::Join(..));
        let queue = if is_awaited { &self.recoveries } else { &self.others };
        let Ok(room) = queue.try_reserve() else { return false };
        match &request {
            MailRequest::Recovery(email) if !self.limits.recovery_mail(email) => {}
            MailRequest::SignIn(email) | MailRequest::Join(email, _) if !self.limits.sign_in_mail(email) => {}
            _ => room.send(request),
        }
        true
    }
}

impl Unstarted {
    /// The layout of all mail.
    pub(crate) fn letterhead(&self) -> &Arc<Current<Letterhead>> {
        &self.letterhead
    }

    /// What mails alerts. They are queued in the store, as deliveries.
    pub(crate) fn alerts(&self, service: Arc<Service>) -> AlertMail {
        AlertMail::new(service, Arc::clone(&self.transport), Arc::clone(&self.letterhead))
    }

    /// Starts sending.
    pub(crate) fn start(self, service: Arc<Service>) -> MailTask {
        let ending = Shutdown::new();
        let Self { recoveries, others, transport, letterhead } = self;
        let delivery = Arc::new(Delivery::new(service, transport, letterhead, ending.clone()));
        let recoveries = delivery::run(Arc::clone(&delivery), recoveries, ending.clone());
        let others = delivery::run(delivery, others, ending.clone());
        let task = tokio::spawn(async move {
            tokio::join!(recoveries, others);
        });
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

#[cfg(test)]
mod tests {
    use metering_core::access::AccountId;

    use super::*;
    use crate::config::{LimitsConfig, Span};

    fn outbox(room: usize) -> (Outbox, mpsc::Receiver<MailRequest>, mpsc::Receiver<MailRequest>) {
        Outbox::new(room, Arc::new(Limits::new(&LimitsConfig::default(), Span::seconds(2))))
    }

    fn recovery(email: &str) -> MailRequest {
        MailRequest::Recovery(email.parse().unwrap())
    }

    #[test]
    fn a_full_queue_uses_no_budget() {
        let (outbox, mut recoveries, _others) = outbox(1);
        assert!(outbox.queue(recovery("other@example.com")));
        assert!((0..10).all(|_| !outbox.queue(recovery("jo@example.com"))), "the queue is full");
        for _ in 0..3 {
            let _ = recoveries.try_recv().unwrap();
            assert!(outbox.queue(recovery("jo@example.com")));
        }
        assert!(recoveries.try_recv().is_ok());
        assert!(outbox.queue(recovery("jo@example.com")), "beyond the budget, the response is the same");
        assert!(recoveries.try_recv().is_err(), "and nothing is queued");
    }

    #[test]
    fn recovery_has_room_when_other_mail_has_none() {
        let (outbox, mut recoveries, _others) = outbox(1);
        let verification = || MailRequest::Verification(AccountId::generate(&metering_core::SystemRandomness));
        assert!(outbox.queue(verification()));
        assert!(!outbox.queue(verification()));
        assert!(outbox.queue(recovery("jo@example.com")));
        assert_eq!(recoveries.try_recv(), Ok(recovery("jo@example.com")));
    }
}
