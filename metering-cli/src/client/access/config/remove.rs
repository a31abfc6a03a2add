use std::fs;

use clap::Args;

use crate::client::paying::journal::Journal as CallJournal;
use crate::client::payments::payment::journal::Journal;
use crate::client::session::ProfileArgs;
use crate::confirm::confirm;
use crate::failure::Failure;

/// Remove the profile and everything kept with it: its key, its cursors, and pending signups and payments.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  metering config remove --profile old
  metering config remove --profile old --yes")]
pub(super) struct RemoveArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    /// Do not ask for confirmation.
    #[arg(long)]
    yes: bool,
}

impl RemoveArgs {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let profile = self.profile.profile()?;
        let directory = profile.file("");
        if !directory.is_dir() {
            return Err(Failure::NotFound(format!("no profile {}", profile.name())));
        }
        // Held until the end, so that no payment can start in the meantime.
        let (_journal, entry) = Journal::open(&profile)?;
        if let Some(entry) = entry.filter(|entry| !entry.is_certainly_unpaid()) {
            return Err(entry.conflict());
        }
        if let Some(payment) = CallJournal::of(&profile).live_payment().await? {
            return Err(Failure::Conflict(format!(
                "a payment of {} for {} may still be executed: call it again, or wait until it has expired",
                payment.entry, payment.entry.url
            )));
        }
        if !self.yes {
            let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
            let mut names: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
            names.retain(|name| name != Journal::LOCK_FILE);
            names.sort();
            let names = names.join(", ");
            confirm(&format!("Permanently remove profile {} ({names})?", profile.name())).await?;
        }
        profile.remove()
    }
}
