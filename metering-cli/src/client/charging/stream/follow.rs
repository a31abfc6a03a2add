//! Follows a stream across connections and prints its events.

use std::io::Write;
use std::time::Duration;

use metering_client::{Client, ClientError, Event, Events, Unreachable};
use metering_core::retry::Retries;
use metering_core::wire::{BALANCE_HEADER, CHARGED_HEADER};
use tokio::time::sleep;

use crate::client::charging::receipt::{self, Held, header};
use crate::client::charging::stream::bounds::{Bounds, End};
use crate::client::charging::stream::line::Form;
use crate::client::charging::stream::retry::{POLICY, is_retryable};
use crate::failure::Failure;
use crate::output::notice;
use crate::table::printable;

/// The options of the command.
#[derive(Debug, Clone, Copy)]
pub(super) struct Options {
    pub(super) form: Form,
    pub(super) reconnect: bool,
    pub(super) quiet: bool,
}

/// A stream being followed.
#[derive(Debug)]
pub(super) struct Follower {
    client: Client,
    target: String,
    options: Options,
    bounds: Bounds,
    retries: Retries,
    events: u64,
    connections: u64,
    /// The event id to resume after.
    last_id: Option<String>,
    /// The charge and the balance, from the headers of the last connection.
    charged: Option<String>,
    balance: Option<String>,
    /// The credits held for the last connection, while its charge is not known.
    held: Option<Held>,
}

/// Why reading from a connection stopped.
enum Stop {
    Bound(End),
    Broken(ClientError),
    Output(Failure),
}

impl Follower {
    pub(super) fn new(client: Client, target: String, options: Options, bounds: Bounds) -> Self {
        Self {
            client,
            target,
            options,
            bounds,
            retries: POLICY.start(),
            events: 0,
            connections: 0,
            last_id: None,
            charged: None,
            balance: None,
            held: None,
        }
    }

    /// Follows the stream to its end, and prints a summary.
    pub(super) async fn follow(mut self, out: &mut dyn Write) -> Result<(), Failure> {
        let followed = self.follow_all(out).await;
        if self.connections > 0 && !self.options.quiet {
            // The cost may be known by now.
            let settled = match &self.held {
                Some(held) => held.charged(&self.client).await,
                None => None,
            };
            notice(&self.summary(settled));
        }
        match followed? {
            End::Reached => Ok(()),
            // Only Ctrl-C can end it.
            End::Interrupted if !self.bounds.exist() => Ok(()),
            End::Interrupted => Err(Failure::Interrupted("interrupted before the stream reached its limit".to_owned())),
        }
    }

    async fn follow_all(&mut self, out: &mut dyn Write) -> Result<End, Failure> {
        loop {
            let error = match self.follow_connection(out).await {
                Stop::Bound(end) => return Ok(end),
                Stop::Output(failure) => return Err(failure),
                Stop::Broken(error) => error,
            };
            let again = self.options.reconnect && is_retryable(&error);
            let next = again.then(|| self.retries.next_wait(error.retry_after(), Duration::ZERO));
            let Some(pause) = next.flatten() else {
                if let ClientError::Refused(refusal) = &error
                    && !self.options.quiet
                {
                    receipt::print_charge(&refusal.headers);
                }
                return Err(self.broken(error));
            };
            if !self.options.quiet {
                let from = match &self.last_id {
                    Some(id) => format!("after event {id}"),
                    None => "without an event id".to_owned(),
                };
                notice(&printable(&format!("{error}; resuming {from} in {} s", pause.as_secs())));
            }
            if let Err(end) = self.bounds.wait_for(sleep(pause)).await {
                return Ok(end);
            }
        }
    }

    async fn follow_connection(&mut self, out: &mut dyn Write) -> Stop {
        let connecting = self.client.events(&self.target, self.last_id.as_deref());
        let mut stream = match self.bounds.wait_for(connecting).await {
            Err(end) => return Stop::Bound(end),
            Ok(Err(error)) => return Stop::Broken(error),
            Ok(Ok(stream)) => stream,
        };
        self.connections += 1;
        self.note_money(&stream);
        // A stream that does not know the last event id may repeat that event.
        let mut seen = self.last_id.clone();
        loop {
            let event = match self.bounds.wait_for(stream.next()).await {
                Err(end) => return Stop::Bound(end),
                Ok(Err(error)) => return Stop::Broken(error),
                Ok(Ok(None)) => return Stop::Broken(Unreachable("the stream has ended".to_owned()).into()),
                Ok(Ok(Some(event))) => event,
            };
            if seen.take().is_some_and(|seen| event.id.as_deref() == Some(seen.as_str())) {
                continue;
            }
            if let Err(failure) = self.options.form.print(&event, out) {
                return Stop::Output(failure);
            }
            self.retries = POLICY.start();
            self.count(event);
            if self.bounds.are_reached_by(self.events) {
                return Stop::Bound(End::Reached);
            }
        }
    }

    fn count(&mut self, event: Event) {
        self.events += 1;
        if let Some(id) = event.id {
            // An empty id resets the last one; WHATWG HTML, section 9.2.6.
            self.last_id = Some(id).filter(|id| !id.is_empty());
        }
    }

    fn note_money(&mut self, stream: &Events) {
        self.charged = header(&stream.headers, CHARGED_HEADER);
        self.balance = header(&stream.headers, BALANCE_HEADER).or(self.balance.take());
        self.held = Held::read(&stream.headers);
    }

    /// The failure for an error that is not retried.
    fn broken(&self, error: ClientError) -> Failure {
        match error {
            ClientError::Unreachable(Unreachable(why)) if self.connections > 0 => {
                let hint = if self.options.reconnect { "" } else { ", or add --reconnect" };
                Failure::TryLater(format!(
                    "{why} (after {}); run the command again{hint}: each connection is charged",
                    plural(self.events, "event")
                ))
            }
            error => error.into(),
        }
    }

    /// The received events and the charges. `settled` is the charge of the last connection, if credits were held for
    /// it.
    fn summary(&self, settled: Option<String>) -> String {
        let mut text = plural(self.events, "event");
        if self.connections > 1 {
            text.push_str(&format!(" over {}, each charged", plural(self.connections, "connection")));
        }
        text.push('.');
        if let Some(charged) = &self.charged {
            text.push_str(&format!(
                " Charged {charged} credits{}",
                if self.connections > 1 { " per connection." } else { "." }
            ));
        }
        if let Some(held) = &self.held {
            text.push_str(&format!(" {}", settled.unwrap_or_else(|| held.sentence())));
            return text;
        }
        if let Some(balance) = &self.balance {
            text.push_str(&format!(" The balance is {balance} credits."));
        }
        text
    }
}

fn plural(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
