use std::io::{self, IsTerminal, Write};

use clap::{Args, Subcommand};
use metering_client::ServiceUrl;
use metering_core::ApiKey;
use zeroize::Zeroizing;

use crate::client::paying::amount::Amount;
use crate::client::session::ProfileArgs;
use crate::failure::Failure;
use crate::output::notice;

/// Longer lines cannot be a key.
const KEY_LINE_BYTES_MAX: u64 = 1024;

/// Change a setting of the profile.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  metering config set url https://api.example.com
  metering config set api-key < key.txt"
)]
pub(super) struct SetArgs {
    #[command(subcommand)]
    setting: SetCommand,
}

#[derive(Debug, Subcommand)]
enum SetCommand {
    Url(SetUrlArgs),
    ApiKey(SetKeyArgs),
    DailyLimit(SetDailyLimitArgs),
}

/// Store the service's URL.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  metering config set url https://api.example.com --profile work")]
struct SetUrlArgs {
    /// An http or https URL.
    #[arg(value_name = "SERVICE_URL")]
    service: ServiceUrl,
    #[command(flatten)]
    profile: ProfileArgs,
    /// Keep the profile's key: it is the same service at a new URL.
    #[arg(long)]
    keep_key: bool,
}

/// Store an API key, read from standard input or a prompt, never from an argument.
///
/// The key is stored for the profile's service, or for the service given with --url.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  metering config set api-key
  metering config set api-key --profile work --url https://api.example.com < key.txt")]
struct SetKeyArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    /// Replace the profile's current key.
    #[arg(long)]
    replace: bool,
}

/// Store the maximum to pay for calls in 24 hours, for `metering call --pay` and `metering mcp --pay`; 1 by default.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  metering config set daily-limit 2.5")]
struct SetDailyLimitArgs {
    /// An amount of tokens.
    #[arg(value_name = "AMOUNT")]
    limit: Amount,
    #[command(flatten)]
    profile: ProfileArgs,
}

impl SetArgs {
    pub(super) async fn run(self, _: &mut dyn Write) -> Result<(), Failure> {
        match self.setting {
            SetCommand::Url(args) => args.run(),
            SetCommand::ApiKey(args) => args.run(),
            SetCommand::DailyLimit(args) => args.run(),
        }
    }
}

impl SetUrlArgs {
    fn run(self) -> Result<(), Failure> {
        let mut profile = self.profile.profile()?;
        let moved = profile.settings.url.as_ref() != Some(&self.service);
        if profile.settings.api_key.is_some() && moved && !self.keep_key {
            return Err(Failure::Conflict(format!(
                "profile {} has a key for another service, which would be sent to {}; use another --profile, or \
                add --keep-key if it is the same service",
                profile.name(),
                self.service
            )));
        }
        profile.settings.url = Some(self.service);
        profile.save()
    }
}

impl SetDailyLimitArgs {
    fn run(self) -> Result<(), Failure> {
        let mut profile = self.profile.profile()?;
        profile.settings.pay.daily_limit = Some(self.limit);
        profile.save()
    }
}

impl SetKeyArgs {
    fn run(self) -> Result<(), Failure> {
        let mut session = self.profile.open()?;
        let earlier = session.profile.settings.api_key.clone();
        let key = read_key()?;
        let same = |earlier: &&ApiKey| earlier.hash() == key.hash();
        if let Some(earlier) = earlier.as_ref().filter(|earlier| !same(earlier)) {
            if !self.replace {
                return Err(Failure::Conflict(format!(
                    "profile {} already has the key {}; use another --profile, or replace that key with --replace",
                    session.profile.name(),
                    earlier.hint()
                )));
            }
            // The new key may belong to another account.
            session.profile.settings.org_id = None;
        }
        session.keep(key.clone(), None)?;
        let path = session.profile.path();
        notice(&format!("Stored the key {} for {} in {}.", key.hint(), session.url(), path.display()));
        Ok(())
    }
}

/// Reads the key from a prompt on a terminal, or else from the first line of standard input.
pub(in crate::client::access) fn read_key() -> Result<ApiKey, Failure> {
    let failed = |error: io::Error| Failure::Failed(format!("cannot read the key: {error}"));
    let text = if io::stdin().is_terminal() {
        Zeroizing::new(rpassword::prompt_password("API key (not shown): ").map_err(failed)?)
    } else {
        let mut line = Zeroizing::new(String::new());
        let mut input = io::Read::take(io::stdin().lock(), KEY_LINE_BYTES_MAX);
        io::BufRead::read_line(&mut input, &mut line).map_err(failed)?;
        line
    };
    ApiKey::parse(text.trim()).map_err(|error| Failure::Usage(format!("the input is {error}")))
}
