//! A database with two funded accounts, its servers, and the comparison at the end.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::callers::{Count, SECRET};
use super::report::Report;
use super::targets::Targets;
use crate::client::Client;
use crate::posting_log::PostingLog;
use crate::server::{Server, ServerSetup};
use crate::site::{IssuedAccount, Site};

/// The credits that each account starts with: enough for millions of charges.
const CREDITS: &str = "10000";

/// How long a server may take to become ready after a fault has ended.
pub(super) const RECOVERY: Duration = Duration::from_secs(30);

/// A database under attack.
pub(super) struct Fleet {
    pub(super) site: Site,
    pub(super) accounts: [IssuedAccount; 2],
    pub(super) targets: Targets,
    log: PostingLog,
}

impl Fleet {
    pub(super) fn new(site: Site) -> Self {
        let accounts = [site.account(CREDITS), site.account(CREDITS)];
        let log = PostingLog::begin(&site);
        Self { site, accounts, targets: Targets::default(), log }
    }

    /// A server setup on this database, with the log of postings.
    pub(super) fn server(&self) -> ServerSetup {
        self.log.serve(setup(&self.site))
    }

    /// Checks what a server publishes of the log: it must continue what the last audit saw, no matter what has happened
    /// since.
    pub(super) fn audit(&self, server: &Server, report: &mut Report) {
        let audit = self.log.audit(server.address());
        match audit.code {
            Some(0) => report.add("audits of the log", 1),
            Some(4) if !self.log.was_audited() => report.add("no checkpoint yet", 1),
            code => report.loss(format!("the audit of the log ended with {code:?}: {}", audit.stderr.trim())),
        }
    }

    /// How many charges are on record for each account, according to a running server.
    pub(super) fn recorded(&self, server: &Server) -> [u64; 2] {
        recorded(server, &self.accounts)
    }

    /// Compares what callers saw with the record, as read by a fresh server, and verifies the books.
    pub(super) fn compare_with_record(&self, counts: &[Count; 2], report: &mut Report) {
        let server = self.server().start();
        let [plain, keyed] = self.recorded(&server);
        self.audit(&server, report);
        drop(server);
        report.compare("metered requests", &counts[0], plain);
        report.compare("idempotent charges", &counts[1], keyed);
        verify(&self.site, report);
    }
}

fn setup(site: &Site) -> ServerSetup {
    site.server().set("METERING_BILLING__INTERNAL_SECRET", SECRET)
}

/// A site whose data folder has these files, and a server setup on it.
pub(super) fn on_image(write: impl FnOnce(&Path)) -> (Site, ServerSetup) {
    let site = Site::new();
    std::fs::create_dir(site.data()).expect("the folder can be created");
    write(&site.data());
    let server = setup(&site);
    (site, server)
}

pub(super) fn recorded(server: &Server, accounts: &[IssuedAccount; 2]) -> [u64; 2] {
    accounts.each_ref().map(|account| {
        let summary = server.client_with(&account.api_key).get("/credits/usage/summary?days=2").expect(200).json();
        summary["totals"]["usage_events"].as_u64().expect("a summary counts its events")
    })
}

/// Runs `metering admin verify`; a failure counts as a loss.
pub(super) fn verify(site: &Site, report: &mut Report) {
    let output = site.admin(&["verify", "--json"]);
    report.add("verify runs", 1);
    report.add("verify failures", u64::from(output.code != Some(0)));
    if output.code != Some(0) {
        report.loss(format!("verify ended with {:?}: {}{}", output.code, output.stdout.trim(), output.stderr.trim()));
    }
}

/// Waits until a server is ready. Returns whether it was in time.
pub(super) fn becomes_ready(client: &Client) -> bool {
    within(RECOVERY, || client.try_send("GET", "/ready", None).is_ok_and(|ready| ready.status == 200))
}

/// Polls until `done` returns true or the time is up; returns whether it did.
pub(super) fn within(time: Duration, mut done: impl FnMut() -> bool) -> bool {
    let started = Instant::now();
    loop {
        if done() {
            return true;
        }
        if started.elapsed() > time {
            return false;
        }
        thread::sleep(Duration::from_millis(20));
    }
}
