//! The tasks that send mail: several messages at once, each tried a few times.

use std::sync::Arc;
use std::time::Duration;

use lettre::Message;
use metering_core::Service;
use metering_core::signups::{MailMessage, MailRequest};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::http::Shutdown;
use crate::mail::counted::count;
use crate::mail::message::Letterhead;
use crate::mail::transport::Transport;
use crate::run::Current;

/// Messages of one queue that are sent at the same time. One that waits for another attempt does not count.
const AT_ONCE: usize = 4;

/// Messages of one queue that may wait for another attempt. Beyond that, a message that cannot be sent is given up.
const WAITING: usize = 1_000;

/// The pauses between two attempts.
const PAUSES: [Duration; 4] =
    [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(30), Duration::from_secs(120)];

/// What sending needs.
pub(super) struct Delivery {
    service: Arc<Service>,
    transport: Arc<Transport>,
    letterhead: Arc<Current<Letterhead>>,
    ending: Shutdown,
}

/// A request in the queue.
struct Parcel {
    request: MailRequest,
    /// The message, once it is written. Later attempts send the same one, since a new link would replace its link.
    message: Option<Message>,
    /// When its link expires.
    expires_at: Option<Instant>,
    pauses: std::array::IntoIter<Duration, { PAUSES.len() }>,
}

/// Why an attempt failed.
struct Trouble {
    may_pass: bool,
    why: String,
}

impl Parcel {
    fn of(request: MailRequest) -> Self {
        Self { request, message: None, expires_at: None, pauses: PAUSES.into_iter() }
    }

    /// The pause before the next attempt; `None` when there is none, or its link would have expired.
    fn next_pause(&mut self, now: Instant) -> Option<Duration> {
        let pause = self.pauses.next()?;
        self.expires_at.is_none_or(|end| now + pause < end).then_some(pause)
    }
}

impl Delivery {
    pub(super) fn new(
        service: Arc<Service>,
        transport: Arc<Transport>,
        letterhead: Arc<Current<Letterhead>>,
        ending: Shutdown,
    ) -> Self {
        Self { service, transport, letterhead, ending }
    }

    /// Tries once. Returns the parcel, and the pause before the next attempt, if there is one.
    async fn attempt(&self, mut parcel: Parcel) -> Option<(Parcel, Duration)> {
        let trouble = match self.send(&mut parcel).await {
            Ok(is_sent) => {
                if is_sent {
                    count(parcel.request.kind(), "sent");
                }
                return None;
            }
            Err(trouble) => trouble,
        };
        let pause =
            if trouble.may_pass && !self.ending.is_cancelled() { parcel.next_pause(Instant::now()) } else { None };
        let (error, request) = (trouble.why, &parcel.request);
        let Some(pause) = pause else {
            tracing::warn!(error, mail = ?request, "could not send mail");
            count(request.kind(), "failed");
            return None;
        };
        tracing::debug!(error, mail = ?request, "could not send mail yet; trying again");
        Some((parcel, pause))
    }

    /// Sends a parcel once; `false` when there is nothing to send, such as to an address that no account has verified.
    async fn send(&self, parcel: &mut Parcel) -> Result<bool, Trouble> {
        let message = match &parcel.message {
            Some(message) => message.clone(),
            None => match self.write(parcel).await? {
                Some(message) => parcel.message.insert(message).clone(),
                None => return Ok(false),
            },
        };
        let sent = self.transport.send(message).await;
        sent.map(|()| true).map_err(|unsent| Trouble { may_pass: unsent.may_pass, why: unsent.to_string() })
    }

    /// The message of a parcel. If the store fails, the query is retried.
    async fn write(&self, parcel: &mut Parcel) -> Result<Option<Message>, Trouble> {
        let prepared = self.service.emails().prepare(&parcel.request).await;
        let mail = prepared.map_err(|error| Trouble { may_pass: true, why: error.to_string() })?;
        let Some(mail) = mail else { return Ok(None) };
        parcel.expires_at = match mail.message {
            MailMessage::Verify { lifetime, .. }
            | MailMessage::Recover { lifetime, .. }
            | MailMessage::SignIn { lifetime, .. }
            | MailMessage::Invitation { lifetime, .. } => Some(Instant::now() + lifetime),
            MailMessage::KeyReplaced | MailMessage::Alert { .. } => None,
        };
        let message = self.letterhead.load().message(&mail);
        message.map(Some).map_err(|error| Trouble { may_pass: false, why: error.to_string() })
    }

    /// Waits before another attempt. A shutdown ends the waiting.
    async fn wait(&self, parcel: Parcel, pause: Duration) -> Parcel {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = self.ending.cancelled() => {}
        }
        parcel
    }
}

/// Delivers the requests of one queue until `ending` is cancelled, and then what is queued.
pub(super) async fn run(delivery: Arc<Delivery>, mut requests: mpsc::Receiver<MailRequest>, ending: Shutdown) {
    let (mut sending, mut waiting) = (JoinSet::new(), JoinSet::new());
    loop {
        let parcel = tokio::select! {
            Some(tried) = sending.join_next() => {
                match tried {
                    Ok(Some((parcel, pause))) if waiting.len() < WAITING => {
                        let delivery = Arc::clone(&delivery);
                        waiting.spawn(async move { delivery.wait(parcel, pause).await });
                    }
                    Ok(Some((parcel, _))) => {
                        tracing::warn!(mail = ?parcel.request, "could not send mail; too much waits to be tried again");
                        count(parcel.request.kind(), "failed");
                    }
                    Ok(None) => {}
                    Err(error) => tracing::error!(%error, "sending mail failed"),
                }
                continue;
            }
            Some(Ok(parcel)) = waiting.join_next(), if sending.len() < AT_ONCE => parcel,
            Some(request) = requests.recv(), if sending.len() < AT_ONCE => Parcel::of(request),
            () = ending.cancelled(), if !requests.is_closed() => {
                requests.close();
                continue;
            }
            else => break,
        };
        let delivery = Arc::clone(&delivery);
        sending.spawn(async move { delivery.attempt(parcel).await });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_attempt_is_made_after_the_link_has_expired() {
        let now = Instant::now();
        // seconds until the link expires, pauses
        let table = [(None, 4), (Some(600), 4), (Some(120), 3), (Some(6), 2), (Some(1), 0)];
        for (expires_in, pauses) in table {
            let mut parcel = Parcel::of(MailRequest::Recovery("jo@example.com".parse().unwrap()));
            parcel.expires_at = expires_in.map(|seconds| now + Duration::from_secs(seconds));
            let made = std::iter::from_fn(|| parcel.next_pause(now)).count();
            assert_eq!(made, pauses, "{expires_in:?}");
        }
    }
}
