//! `metering log audit`: follows a log, and detects changes to its history.

use std::fmt::Display;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use metering_client::ServiceUrl;
use metering_log::checkpoint::Checkpoint;
use metering_log::tree::TreeHash;
use serde::Serialize;

use crate::failure::Failure;
use crate::log::audited::audit;
use crate::log::kept;
use crate::log::remote::RemoteLog;
use crate::log::trust::{LogKeys, Witnesses};
use crate::output::{Format, write_json};
use crate::table::write_pairs;

/// Check that a log matches its checkpoint, and that it only grew since the last run.
///
/// Fetches all new entries, rehashes them, and compares every hash and tile. With --keep, the next run
/// continues there and finds a fork, a rewritten entry or a rollback (exit code 3).
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  metering log audit https://example.com/log --keep log.checkpoint --log-key \
  example.com/log+9be5d3c6+AYqI4910CfGV/VLbLTy6XXLKZwm/HZQSG/N0iAG0D29c")]
pub(crate) struct AuditArgs {
    /// The URL of the log: its checkpoint is at URL/checkpoint.
    #[arg(value_name = "URL")]
    url: ServiceUrl,
    #[command(flatten)]
    log: LogKeys,
    #[command(flatten)]
    witnesses: Witnesses,
    /// Keep the checkpoint in this file, and continue from the one in it.
    #[arg(long, value_name = "FILE")]
    keep: Option<PathBuf>,
    #[command(flatten)]
    format: Format,
}

/// The result, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Report {
    origin: String,
    entries: u64,
    new_entries: u64,
    root: TreeHash,
    cosigned_by: Vec<String>,
}

impl AuditArgs {
    pub(crate) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let trusts_log = self.log.policy()?;
        let policy = self.witnesses.required(trusts_log.clone())?;
        let old = self.keep.as_deref().map_or(Ok(None), |file| kept::read(file, &trusts_log))?;
        let log = RemoteLog::open(self.url)?;
        let text = log.checkpoint().await?;
        let trusted = policy.open(&text).map_err(|error| Failure::Discrepancies(error.to_string()))?;
        let audited = audit(&log, old.as_ref(), &trusted.checkpoint).await;
        if let Some(file) = &self.keep {
            audited.map_err(|failure| with_evidence(failure, file, &text))?;
            kept::write(file, &text)?;
        } else {
            audited?;
        }
        let report = Report {
            origin: trusted.checkpoint.origin().to_owned(),
            entries: trusted.checkpoint.size(),
            new_entries: trusted.checkpoint.size() - old.as_ref().map_or(0, Checkpoint::size),
            root: trusted.checkpoint.root(),
            cosigned_by: trusted.cosigned.iter().map(|(witness, _)| witness.name().to_string()).collect(),
        };
        report.write(self.format, out)
    }
}

impl Report {
    fn write(&self, format: Format, out: &mut dyn Write) -> Result<(), Failure> {
        if format.json {
            return write_json(out, self);
        }
        let witnesses = if self.cosigned_by.is_empty() { "nobody".to_owned() } else { self.cosigned_by.join(", ") };
        let lines: [(&str, &dyn Display); 5] = [
            ("Log", &self.origin),
            ("Entries", &self.entries),
            ("New", &self.new_entries),
            ("Root", &self.root),
            ("Cosigned by", &witnesses),
        ];
        write_pairs(out, &lines)
    }
}

/// Two contradictory checkpoints prove the log's misbehaviour to anyone, so the new one is kept too.
fn with_evidence(failure: Failure, file: &Path, text: &str) -> Failure {
    let Failure::Discrepancies(problem) = failure else { return failure };
    match kept::write_evidence(file, text) {
        Ok(evidence) => {
            Failure::Discrepancies(format!("{problem}; keep {} and {} as evidence", file.display(), evidence.display()))
        }
        Err(error) => Failure::Discrepancies(format!("{problem}; the new checkpoint was not kept: {error}")),
    }
}
