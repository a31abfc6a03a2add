//! `metering admin log verify`.

use std::io::Write;

use clap::Args;
use serde::Serialize;

use super::verified::VerifiedLog;
use crate::admin::session::Session;
use crate::failure::Failure;
use crate::output::{Format, write_json};
use crate::progress::{Progress, Unit};

/// Hash the log again, and compare it with its tiles, its roots and the accounts' funds. Exit code 3 if any differs.
#[derive(Debug, Args)]
#[command(after_help = "\
Reads the whole log. `metering admin verify` does this too, if there is a log.

Examples:
  metering admin log verify
  metering admin log verify --json")]
pub(super) struct VerifyArgs {
    #[command(flatten)]
    format: Format,
}

#[derive(Debug, Serialize)]
struct Document<'a> {
    entries: u64,
    faults: &'a [String],
}

impl VerifyArgs {
    pub(super) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let store = session.database().await?.store();
        let progress = Progress::new();
        progress.begin("Verifying the log", Unit::Steps, None);
        let found = VerifiedLog::of(&*store).await;
        progress.end();
        let Some(found) = found? else {
            let problem = "this store has no log; `metering admin log init` begins one";
            return Err(Failure::NotFound(problem.to_owned()));
        };
        let printed = if self.format.json {
            write_json(out, &Document { entries: found.entries(), faults: &found.faults })
        } else {
            found.write(out)
        };
        let printed = printed.and_then(|()| Ok(out.flush()?));
        // Checked even if printing failed: a closed pipe must not turn a fault into exit code 0.
        found.outcome()?;
        printed
    }
}
