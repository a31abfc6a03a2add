use clap::Args;

use crate::client::access::config::setting::Setting;
use crate::client::session::ProfileArgs;
use crate::confirm::Confirmation;
use crate::failure::Failure;
use crate::output::notice;

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
    pub(super) async fn run(self) -> Result<(), Failure> {
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
