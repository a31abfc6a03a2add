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
use crate::answer::Answer;
use crate::client::Client;
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
    /// Charges with an unknown outcome: no response, or one that says so.
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

type Note = dyn Fn(Kind) + Send + Sync;

/// The callers of both accounts.
pub(super) struct Crew {
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

enum Told {
    Charged,
    Unknown,
    Refused(String),
    /// Nothing was sent, because no server was running.
    NotSent,
}

impl Crew {
    /// Starts `each` callers for the plain account, and as many for the keyed one. `note` is called for each confirmed
    /// charge.
    pub(super) fn start(
        targets: &Targets,
        accounts: [IssuedAccount; 2],
        each: usize,
        note: impl Fn(Kind) + Send + Sync + 'static,
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

    /// Stops the callers. A server must be running, so that keyed charges can learn their outcome.
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

impl Drop for Crew {
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
        let mut turn = number;
        while !self.is_over() {
            turn += 1;
            let Some(address) = self.targets.pick(turn) else {
                thread::sleep(PAUSE);
                continue;
            };
            let told = told(self.client(Kind::Plain, address).try_send("GET", BASE, None));
            if self.record(Kind::Plain, told) {
                thread::sleep(PAUSE);
            }
        }
    }

    /// Counts an outcome, and returns whether to pause.
    fn record(&self, kind: Kind, told: Told) -> bool {
        match told {
            Told::Charged => {
                (self.note)(kind);
                self.count(kind).charged += 1;
                return false;
            }
            Told::Unknown => self.count(kind).unknown += 1,
            Told::Refused(code) => *self.count(kind).refusals.entry(code).or_default() += 1,
            Told::NotSent => {}
        }
        true
    }

    fn charge_keyed(&self, number: usize) {
        let mut turn = number;
        while !self.is_over() {
            let id = self.next.fetch_add(1, Ordering::Relaxed);
            let (mut last, mut sent) = (None, false);
            let outcome = loop {
                turn += 1;
                let told = self.deduct(turn, id);
                match told {
                    Told::Charged => break Told::Charged,
                    Told::Refused(code) if !is_retryable(&code) => break Told::Refused(code),
                    Told::NotSent => {}
                    Told::Unknown | Told::Refused(_) => sent = true,
                }
                let waits = !self.gone.load(Ordering::SeqCst);
                if self.is_over() && !(waits && last.get_or_insert_with(Instant::now).elapsed() < LAST_RETRIES) {
                    break if sent { Told::Unknown } else { Told::NotSent };
                }
                thread::sleep(PAUSE);
            };
            let charged = matches!(outcome, Told::Charged);
            self.record(Kind::Keyed, outcome);
            if charged && id.is_multiple_of(REPLAY) {
                let _ = self.deduct(turn + 1, id);
            }
        }
    }

    fn deduct(&self, turn: usize, id: u64) -> Told {
        let Some(address) = self.targets.pick(turn) else { return Told::NotSent };
        let body = json!({"path": BASE, "method": "GET", "credit_weight": 1, "request_id": format!("chaos-{id}")});
        let client = self.client(Kind::Keyed, address).with_header(SECRET_HEADER, SECRET);
        told(client.try_send("POST", DEDUCT, Some(body.to_string().as_bytes())))
    }
}

/// Whether the same charge may be sent again after this refusal, with the same idempotency key.
fn is_retryable(code: &str) -> bool {
    ["storage_unavailable", "overloaded", "shutting_down"].contains(&code)
}

fn told(response: io::Result<Answer>) -> Told {
    match response {
        Ok(answer) if answer.status == 200 => Told::Charged,
        Ok(answer) => match answer.error() {
            code if code == "outcome_unknown" => Told::Unknown,
            code if code.is_empty() => Told::Refused(format!("status {}", answer.status)),
            code => Told::Refused(code),
        },
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Told::NotSent,
        Err(_) => Told::Unknown,
    }
}
