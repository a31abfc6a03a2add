//! Callers that keep charging two accounts while servers come and go, and count the outcomes.
//!
//! The plain account is charged by metered requests, each sent once. The keyed account is charged with idempotency
//! keys: each charge is retried until its outcome is known, so its record must equal the confirmed charges exactly.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::json;

use super::targets::Targets;
use crate::client::Client;
use crate::response::Response;
use crate::site::IssuedAccount;

/// A metered route of weight 1 of the default catalogue.
pub(super) const BASE: &str = "/mpp/snapshot/allTrades";
pub(super) const SECRET: &str = "correct horse battery staple";
const SECRET_HEADER: &str = "X-BDS-Internal-Billing-Secret";
const DEDUCT: &str = "/internal/billing/deduct";

/// How long to wait after a failed call.
const PAUSE: Duration = Duration::from_millis(10);

/// How long a keyed charge is retried after the campaign is over.
const LAST_RETRIES: Duration = Duration::from_secs(30);

/// One in this many keyed charges is sent again after it was confirmed.
const REPLAY: u64 = 8;

/// How an account is charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Plain,
    Keyed,
}

/// The outcomes that the callers of one account saw.
#[derive(Debug, Clone, Default)]
pub(super) struct Count {
    /// Confirmed charges.
    pub(super) charged: u64,
    /// Charges with an unknown outcome: no response, or one that reports it.
    pub(super) unknown: u64,
    /// Refusals by error code. None of them may have been charged.
    pub(super) refusals: BTreeMap<String, u64>,
}

impl Count {
    pub(super) fn refused(&self) -> u64 {
        self.refusals.values().sum()
    }

    pub(super) fn attempts(&self) -> u64 {
        self.charged + self.unknown + self.refused()
    }
}

/// The known state of a charge at a given time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// It is about to be sent.
    Sent,
    Charged,
    /// It was refused or could not be sent, so it will never be on record.
    Refused,
}

type Note = dyn Fn(Kind, Event) + Send + Sync;

/// The callers of both accounts.
pub(super) struct Callers {
    workers: Vec<JoinHandle<()>>,
    shared: Arc<Shared>,
}

struct Shared {
    targets: Targets,
    accounts: [IssuedAccount; 2],
    counts: [Mutex<Count>; 2],
    next: AtomicU64,
    stop: AtomicBool,
    /// No server will come back.
    gone: AtomicBool,
    note: Box<Note>,
}

enum Outcome {
    Charged,
    Unknown,
    Refused(String),
    /// Nothing was sent, because no server was running.
    NotSent,
}

impl Callers {
    /// Starts `each` callers for the plain account, and as many for the keyed one. `note` is called before each
    /// charge, and again when its outcome is known.
    pub(super) fn start(
        targets: &Targets,
        accounts: [IssuedAccount; 2],
        each: usize,
        note: impl Fn(Kind, Event) + Send + Sync + 'static,
    ) -> Self {
        let shared = Arc::new(Shared {
            targets: targets.clone(),
            accounts,
            counts: Default::default(),
            next: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            gone: AtomicBool::new(false),
            note: Box::new(note),
        });
        let workers = (0..2 * each).map(|number| {
            let shared = Arc::clone(&shared);
            let work = if number % 2 == 0 { Shared::charge_plain } else { Shared::charge_keyed };
            thread::spawn(move || work(&shared, number / 2))
        });
        Self { workers: workers.collect(), shared }
    }

    /// The outcomes so far for this kind of account.
    pub(super) fn count(&self, kind: Kind) -> Count {
        self.shared.count(kind).clone()
    }

    /// Stops the callers. A server must be running, so that retries of keyed charges can find out their outcome.
    pub(super) fn stop(mut self) -> [Count; 2] {
        self.end();
        [self.count(Kind::Plain), self.count(Kind::Keyed)]
    }

    /// Stops the callers when no server is left to respond.
    pub(super) fn abandon(mut self) {
        self.shared.gone.store(true, Ordering::SeqCst);
        self.end();
    }

    fn end(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        for worker in self.workers.drain(..) {
            let _ = worker.join();
        }
    }
}

impl Drop for Callers {
    fn drop(&mut self) {
        if thread::panicking() {
            // The outcomes no longer matter.
            self.shared.gone.store(true, Ordering::SeqCst);
            self.shared.stop.store(true, Ordering::SeqCst);
        } else {
            self.end();
        }
    }
}

impl Shared {
    fn count(&self, kind: Kind) -> std::sync::MutexGuard<'_, Count> {
        self.counts[kind as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    fn client(&self, kind: Kind, address: SocketAddr) -> Client {
        Client::new(address).with_key(&self.accounts[kind as usize].api_key)
    }

    fn charge_plain(&self, number: usize) {
        let mut round = number;
        while !self.is_over() {
            round += 1;
            let Some(address) = self.targets.pick(round) else {
                thread::sleep(PAUSE);
                continue;
            };
            (self.note)(Kind::Plain, Event::Sent);
            let outcome = outcome_of(self.client(Kind::Plain, address).try_send("GET", BASE, None));
            if self.record(Kind::Plain, outcome) {
                thread::sleep(PAUSE);
            }
        }
    }

    /// Counts an outcome, and returns whether to pause.
    fn record(&self, kind: Kind, outcome: Outcome) -> bool {
        match outcome {
            Outcome::Charged => {
                (self.note)(kind, Event::Charged);
                self.count(kind).charged += 1;
                return false;
            }
            Outcome::Unknown => self.count(kind).unknown += 1,
            Outcome::Refused(code) => {
                (self.note)(kind, Event::Refused);
                *self.count(kind).refusals.entry(code).or_default() += 1;
            }
            Outcome::NotSent => (self.note)(kind, Event::Refused),
        }
        true
    }

    fn charge_keyed(&self, number: usize) {
        let mut round = number;
        while !self.is_over() {
            let id = self.next.fetch_add(1, Ordering::Relaxed);
            (self.note)(Kind::Keyed, Event::Sent);
            let (mut last, mut sent) = (None, false);
            let outcome = loop {
                round += 1;
                match self.deduct(round, id) {
                    Outcome::Charged => break Outcome::Charged,
                    Outcome::Refused(code) if !is_retryable(&code) => break Outcome::Refused(code),
                    Outcome::NotSent => {}
                    Outcome::Unknown | Outcome::Refused(_) => sent = true,
                }
                let server_may_return = !self.gone.load(Ordering::SeqCst);
                if self.is_over()
                    && !(server_may_return && last.get_or_insert_with(Instant::now).elapsed() < LAST_RETRIES)
                {
                    break if sent { Outcome::Unknown } else { Outcome::NotSent };
                }
                thread::sleep(PAUSE);
            };
            let charged = matches!(outcome, Outcome::Charged);
            self.record(Kind::Keyed, outcome);
            if charged && id.is_multiple_of(REPLAY) {
                let _ = self.deduct(round + 1, id);
            }
        }
    }

    fn deduct(&self, round: usize, id: u64) -> Outcome {
        let Some(address) = self.targets.pick(round) else { return Outcome::NotSent };
        let body = json!({"path": BASE, "method": "GET", "credit_weight": 1, "request_id": format!("chaos-{id}")});
        let client = self.client(Kind::Keyed, address).with_header(SECRET_HEADER, SECRET);
        outcome_of(client.try_send("POST", DEDUCT, Some(body.to_string().as_bytes())))
    }
}

/// Whether the same charge may be sent again after this refusal, with the same idempotency key.
fn is_retryable(code: &str) -> bool {
    ["storage_unavailable", "overloaded", "shutting_down"].contains(&code)
}

fn outcome_of(result: io::Result<Response>) -> Outcome {
    match result {
        Ok(response) if response.status == 200 => Outcome::Charged,
        Ok(response) => match response.error() {
            code if code == "outcome_unknown" => Outcome::Unknown,
            code if code.is_empty() => Outcome::Refused(format!("status {}", response.status)),
            code => Outcome::Refused(code),
        },
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Outcome::NotSent,
        Err(_) => Outcome::Unknown,
    }
}
