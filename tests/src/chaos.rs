//! Chaos campaigns: minutes of faults under load, then a comparison of the responses with what is on record.
//!
//! Each campaign also has a planted bug. With it the campaign must report losses; otherwise its check proves nothing.

mod arguments;
mod callers;
mod corruption;
mod crash_image;
mod deleted_files;
mod disk;
mod faulty_proxy;
mod fleet;
mod flood;
mod hostile_upstream;
mod journal;
mod kill;
mod mutation;
mod patroni_faults;
mod postgres_faults;
mod power_loss;
mod raw_upstream;
mod report;
mod rng;
mod runner;
mod setting;
mod targets;

pub use arguments::Arguments;
pub use runner::run;

use report::Report;
use setting::Setting;

use crate::{patroni, postgres};

/// A kind of fault, and how to check that the service survives it.
struct Campaign {
    name: &'static str,
    about: &'static str,
    planted: &'static str,
    /// Whether what it needs is not installed.
    is_skipped: fn() -> bool,
    /// Counters that must be above zero; otherwise the run proves nothing.
    proves: &'static [&'static str],
    run: fn(&mut Setting, &mut Report),
}

const CAMPAIGNS: &[Campaign] = &[
    Campaign {
        name: "kill",
        about: "kill -9 under load, one server on one SQLite file",
        planted: "a proxy that acknowledges every 40th charge without forwarding it",
        is_skipped: || false,
        proves: &["confirmed", "kills"],
        run: kill::one_server,
    },
    Campaign {
        name: "kill-two",
        about: "kill -9 of either of two servers on one SQLite file, under load",
        planted: "a proxy that sends every 20th charge twice",
        is_skipped: || false,
        proves: &["confirmed", "kills"],
        run: kill::two_servers,
    },
    Campaign {
        name: "disk-full",
        about: "writes fail with ENOSPC, even in the middle of transactions",
        planted: "writes are dropped and reported as successful",
        is_skipped: || false,
        proves: &["confirmed", "calls that failed"],
        run: disk::full,
    },
    Campaign {
        name: "eio",
        about: "reads and writes of the database files fail with EIO",
        planted: "writes are dropped and reported as successful",
        is_skipped: || false,
        proves: &["confirmed", "calls that failed"],
        run: disk::input_output_errors,
    },
    Campaign {
        name: "failed-fsync",
        about: "a flush fails; unflushed data is then kept or dropped",
        planted: "flushes do nothing and report success",
        is_skipped: || false,
        proves: &["confirmed", "images without unflushed data"],
        run: disk::failed_flushes,
    },
    Campaign {
        name: "power-loss",
        about: "power loss at random moments: unflushed writes dropped, torn and reordered",
        planted: "flushes do nothing and report success",
        is_skipped: || false,
        proves: &["confirmed", "power losses"],
        run: power_loss::run,
    },
    Campaign {
        name: "corruption",
        about: "one page of the database at a time is zeroed or overwritten",
        planted: "verify and backup are run on an undamaged copy",
        is_skipped: || false,
        proves: &["pages damaged", "servers on damaged files"],
        run: corruption::run,
    },
    Campaign {
        name: "deleted-files",
        about: "the database file or its log is deleted under a running server",
        planted: "a proxy that keeps acknowledging charges after the deletion",
        is_skipped: || false,
        proves: &["files deleted"],
        run: deleted_files::run,
    },
    Campaign {
        name: "postgres-kill",
        about: "PostgreSQL is killed, or its connections are ended, under load on two nodes",
        planted: "a proxy that acknowledges every 40th charge without forwarding it",
        is_skipped: postgres::is_skipped,
        proves: &["confirmed", "kills of PostgreSQL"],
        run: postgres_faults::kills,
    },
    Campaign {
        name: "commit-cuts",
        about: "connections to PostgreSQL are cut before, at and after COMMIT",
        planted: "a proxy that sends every 20th charge twice",
        is_skipped: postgres::is_skipped,
        proves: &["confirmed", "commits cut"],
        run: postgres_faults::commit_cuts,
    },
    Campaign {
        name: "frozen-backends",
        about: "PostgreSQL backends are stopped for seconds while they hold locks",
        planted: "a proxy that acknowledges every 40th charge without forwarding it",
        is_skipped: postgres::is_skipped,
        proves: &["confirmed", "backends frozen"],
        run: postgres_faults::frozen_backends,
    },
    Campaign {
        name: "patroni",
        about: "the leader of three PostgreSQL under Patroni is killed, paused and cut off, under load on three nodes",
        planted: "a proxy that acknowledges every 40th charge without forwarding it",
        is_skipped: patroni::is_skipped,
        proves: &["confirmed", "leaders lost"],
        run: patroni_faults::run,
    },
    Campaign {
        name: "socket-flood",
        about: "thousands of idle, half-open and never-reading connections while an honest client sends requests",
        planted: "a proxy that serves 32 connections at a time, each until it closes",
        is_skipped: || false,
        proves: &["honest requests", "hostile sockets opened"],
        run: flood::run,
    },
    Campaign {
        name: "hostile-upstream",
        about: "an upstream that breaks HTTP, closes early, and sends forbidden headers",
        planted: "a proxy that adds a forbidden upstream header to responses",
        is_skipped: || false,
        proves: &["requests", "charged"],
        run: hostile_upstream::run,
    },
    Campaign {
        name: "mutation",
        about: "mutated paths and headers, to find an underpriced path or a forged header that reaches the upstream",
        planted: "an upstream that sometimes gets a more expensive path and a forged header",
        is_skipped: || false,
        proves: &["reached the upstream", "read as the expensive route"],
        run: mutation::run,
    },
];
