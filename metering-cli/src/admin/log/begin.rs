//! `metering admin log init` and `new-epoch`.

use std::fmt::Display;
use std::io::Write;

use clap::Args;
use metering_admin::{Action, Administration};
use metering_core::store::{EpochReason, LogEpoch, PreviousLog};
use metering_log::note::VerifierKey;
use serde::Serialize;

use super::signer::{Signer, verifier};
use crate::admin::session::Session;
use crate::confirm::confirm;
use crate::failure::Failure;
use crate::new_file::Owner;
use crate::output::{Format, write_json};
use crate::table::write_pairs;

/// Begin the log, and create the key that signs it if the file does not exist.
#[derive(Debug, Args)]
#[command(after_help = "\
From now on, every posting goes into the log. A server appends to the log and signs it; set its log.key_file to the
file. Clients trust the log by its verifier key: publish it somewhere outside the service. The file is readable by its
owner only. If root runs the command, that is the owner of its folder. Keep it out of backups of the database: otherwise
anyone who restores one could sign a shorter log. Charges wait while the funds of all accounts are recorded. On PostgreSQL, first
stop all servers of earlier versions: their charges would be missing from the log.

Examples:
  metering admin log init /etc/metering/log.pem --public-url https://api.example.com
  metering admin log init /etc/metering/log.pem --config /etc/metering/metering.toml")]
pub(super) struct InitArgs {
    #[command(flatten)]
    signer: Signer,
    #[command(flatten)]
    format: Format,
}

/// End the log and begin a new one with a new origin, after the store was restored or moved.
#[derive(Debug, Args)]
#[command(after_help = "\
A restored store lacks postings that its log has already published. The log cannot continue like that: anyone who
follows it would see a fork. The first entry of the new epoch has the origin, size and root of the old one in this
store, and the next ones have the funds of all accounts. Clients need the new verifier key. A move does not copy the
log: pass how it ended with --previous, for the first entry of the new epoch. If the key was stolen, name a file that
does not exist yet: it gets a new key. Asks for confirmation, unless --yes is given.

Examples:
  metering admin log new-epoch /etc/metering/log.pem --because restored --public-url https://api.example.com
  metering admin log new-epoch /etc/metering/log.pem --because moved --config /etc/metering/metering.toml \
  --previous api.example.com/log/1:70400:CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=")]
pub(super) struct NewEpochArgs {
    #[command(flatten)]
    signer: Signer,
    /// Why the log cannot continue: restored (from a backup) or moved (from another database).
    #[arg(long, value_name = "WHY", value_parser = because)]
    because: EpochReason,
    /// How the log ended in the database that the store was moved from (ORIGIN:SIZE:ROOT), as `metering admin migrate`
    /// printed it.
    #[arg(long, value_name = "LOG")]
    previous: Option<PreviousLog>,
    /// Do not ask for confirmation.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    format: Format,
}

#[derive(Debug, Serialize)]
struct Document<'a> {
    epoch: u32,
    origin: &'a str,
    verifier_key: String,
    created_key_file: bool,
}

fn because(text: &str) -> Result<EpochReason, &'static str> {
    let reason = EpochReason::from_name(text).filter(|reason| *reason != EpochReason::Init);
    reason.ok_or("must be restored or moved")
}

impl InitArgs {
    pub(super) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let store = session.database().await?.store();
        if let Some(LogEpoch { origin, began_at, .. }) = store.log_epochs().await?.pop() {
            let advice = "only a restored or moved store needs a new epoch (`metering admin log new-epoch`)";
            return Err(Failure::Conflict(format!(
                "the log {origin} has been open since {began_at} and can continue; {advice}"
            )));
        }
        let origin = self.signer.origin(session, 1)?;
        let beginning = Beginning { origin, reason: EpochReason::Init, after: None, previous: None };
        let begun = beginning.run(&self.signer, &Administration::new(store), session.action()).await?;
        begun.write(out, &self.format, &self.signer)
    }
}

impl NewEpochArgs {
    pub(super) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let store = session.database().await?.store();
        let last = store.log_epochs().await?.pop();
        let after = match (&last, &self.previous) {
            (Some(last), None) => last.number,
            (Some(last), Some(_)) => {
                let problem =
                    format!("--previous: this store has a log of its own, {}, which comes before", last.origin);
                return Err(Failure::Usage(problem));
            }
            (None, Some(previous)) if self.because == EpochReason::Moved => previous.epoch().unwrap_or_default(),
            (None, _) => {
                let problem = "this store has no log: `metering admin log init` begins one. If the store was moved and \
                               had one, add --because moved --previous with how that one ended";
                return Err(Failure::NotFound(problem.to_owned()));
            }
        };
        let origin = self.signer.origin(session, after.saturating_add(1))?;
        if !self.yes {
            let begin =
                last.map_or_else(|| "Begin".to_owned(), |last| format!("End the log {} and begin", last.origin));
            let key = if self.signer.exists() { "" } else { " with a new key" };
            confirm(&format!("{begin} {origin}{key}? Its clients need the new verifier key.")).await?;
        }
        let beginning = Beginning { origin, reason: self.because, after: Some(after), previous: self.previous };
        let begun = beginning.run(&self.signer, &Administration::new(store), session.action()).await?;
        begun.write(out, &self.format, &self.signer)
    }
}

/// An epoch that began.
#[derive(Debug)]
struct Begun {
    epoch: LogEpoch,
    verifier: VerifierKey,
    /// The owner of the key's file, if it is new.
    created: Option<Owner>,
}

/// An epoch to begin, after the one with a number.
#[derive(Debug)]
struct Beginning {
    origin: String,
    reason: EpochReason,
    after: Option<u32>,
    previous: Option<PreviousLog>,
}

impl Beginning {
    async fn run(self, signer: &Signer, administration: &Administration, action: &Action) -> Result<Begun, Failure> {
        let Self { origin, reason, after, previous } = self;
        let (key, created) = signer.key_or_new()?;
        let verifier = verifier(&origin, key)?;
        let epoch = administration.begin_log(action, origin, reason, after, previous).await?;
        Ok(Begun { epoch, verifier, created })
    }
}

impl Begun {
    fn write(&self, out: &mut dyn Write, format: &Format, signer: &Signer) -> Result<(), Failure> {
        let Self { epoch: LogEpoch { number, origin, .. }, verifier, created } = self;
        if format.json {
            let (verifier_key, created_key_file) = (verifier.to_string(), created.is_some());
            return write_json(out, &Document { epoch: *number, origin, verifier_key, created_key_file });
        }
        if let Some(owner) = created {
            let (file, note) = (signer.file.display(), owner.note());
            writeln!(out, "Created {file}.{note} Set log.key_file of the servers to it.\n")?;
        }
        let lines: [(&str, &dyn Display); 3] = [("Epoch", number), ("Origin", origin), ("Verifier key", verifier)];
        write_pairs(out, &lines)
    }
}
