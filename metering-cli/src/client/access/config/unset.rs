//! Commands that remove something: `config unset` and `config remove`.

use std::fs;
use std::io::Write;

use clap::{Args, ValueEnum};

use crate::client::paying::journal::Journal as CallJournal;
use crate::client::payments::payment::journal::Journal;
use crate::client::session::ProfileArgs;
use crate::confirm::{Confirmation, confirm};
use crate::failure::Failure;
use crate::output::notice;

/// A setting of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Setting {
    /// The service's URL.
    Url,
    /// The account's API key.
    ApiKey,
    /// The maximum to pay for calls in 24 hours.
    DailyLimit,
}

/// Remove a setting from the profile.
///
/// A removed key stays valid; unless it is stored elsewhere, it is lost.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  metering config unset api-key --profile work")]
pub(super) struct UnsetArgs {
    /// The setting to remove.
    #[arg(value_enum, value_name = "SETTING")]
    setting: Setting,
    #[command(flatten)]
    profile: ProfileArgs,
    #[command(flatten)]
    confirmation: Confirmation,
}

impl UnsetArgs {
    pub(super) async fn run(self, _: &mut dyn Write) -> Result<(), Failure> {
        let mut profile = self.profile.profile()?;
        if !profile.exists() {
            return Err(Failure::NotFound(format!("no profile {}", profile.name())));
        }
        match self.setting {
            Setting::Url if profile.settings.api_key.is_some() => {
                let problem =
                    "the profile's key belongs to that service; remove it first with `metering config unset api-key`";
                return Err(Failure::Conflict(problem.to_owned()));
            }
            Setting::Url => profile.settings.url = None,
            Setting::DailyLimit => profile.settings.pay.daily_limit = None,
            Setting::ApiKey => {
                if let Some(key) = &profile.settings.api_key {
                    let question = format!("Remove the key {}? Unless it is stored elsewhere, it is lost.", key.hint());
                    self.confirmation.ask(&question).await?;
                }
                profile.settings.org_id = None;
                if let Some(key) = profile.settings.api_key.take() {
                    notice(&format!("Removed the key {} from the profile; it is still valid.", key.hint()));
                }
            }
        }
        profile.save()
    }
}

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
    pub(super) async fn run(self, _: &mut dyn Write) -> Result<(), Failure> {
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
