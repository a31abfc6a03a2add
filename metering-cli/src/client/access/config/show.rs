//! Commands that only read profiles: `config show`, `config list` and `config path`.

use std::io::Write;

use clap::Args;
use metering_client::ServiceUrl;
use serde::Serialize;

use crate::client::access::home::Home;
use crate::client::access::profile::Profile;
use crate::client::paying::amount::Amount;
use crate::client::session::ProfileArgs;
use crate::failure::Failure;
use crate::output::{Format, notice, write_json};
use crate::table::{table, write_pairs};

/// The variables that override a profile's settings.
const VARIABLES: [&str; 4] =
    ["METERING_CLIENT_URL", "METERING_CLIENT_API_KEY", "METERING_CLIENT_HOME", "METERING_CLIENT_ALLOW_HTTP"];

/// Show the profile as it is on disk, with only the ends of its key.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  metering config show
  metering config show --profile work --json")]
pub(super) struct ShowArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    #[command(flatten)]
    format: Format,
}

#[derive(Serialize)]
struct Document {
    profile: String,
    url: Option<String>,
    api_key: Option<String>,
    org_id: Option<String>,
    daily_limit: Amount,
    file: String,
    /// The names of the variables that are set; their values may be secret.
    environment: Vec<&'static str>,
}

impl ShowArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let profile = self.profile.profile()?;
        if !profile.exists() {
            return Err(Failure::NotFound(format!(
                "no profile {}; create it with `metering signup` or `metering config set`",
                profile.name()
            )));
        }
        let set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let document = Document {
            profile: profile.name().to_string(),
            url: profile.settings.url.as_ref().map(ServiceUrl::to_string),
            api_key: profile.settings.api_key.as_ref().map(|key| key.hint().to_string()),
            org_id: profile.settings.org_id.clone(),
            daily_limit: profile.settings.pay.daily_limit(),
            file: profile.path().display().to_string(),
            environment: VARIABLES.into_iter().filter(set).collect(),
        };
        if self.format.json { write_json(out, &document) } else { document.write(out) }
    }
}

impl Document {
    fn write(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let or_none = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
        write_pairs(
            out,
            &[
                ("Profile", &self.profile),
                ("URL", &or_none(&self.url)),
                ("API key", &or_none(&self.api_key)),
                ("Account", &or_none(&self.org_id)),
                ("Daily limit", &self.daily_limit),
                ("File", &self.file),
            ],
        )?;
        if !self.environment.is_empty() {
            writeln!(out, "\noverridden by the environment: {}", self.environment.join(", "))?;
        }
        Ok(())
    }
}

/// List all profiles.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  metering config list
  metering config list --json")]
pub(super) struct ListArgs {
    #[command(flatten)]
    format: Format,
}

#[derive(Serialize)]
struct Row {
    profile: String,
    url: Option<String>,
    api_key: Option<String>,
    org_id: Option<String>,
}

impl ListArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let home = Home::find(|name| std::env::var_os(name))?;
        let mut rows = Vec::new();
        for name in Profile::names(&home)? {
            let profile = Profile::load(&home, name)?;
            rows.push(Row {
                profile: profile.name().to_string(),
                url: profile.settings.url.as_ref().map(ToString::to_string),
                api_key: profile.settings.api_key.as_ref().map(|key| key.hint().to_string()),
                org_id: profile.settings.org_id.clone(),
            });
        }
        if self.format.json {
            return write_json(out, &rows);
        }
        if rows.is_empty() {
            notice(&format!("No profiles in {}.", home.path().display()));
        }
        table!(out, &rows, |row| {
            word("PROFILE") => row.profile,
            text("URL") => row.url.as_deref().unwrap_or("-"),
            word("API KEY").optional(1) => row.api_key.as_deref().unwrap_or("-"),
            id("ACCOUNT").optional(2) => row.org_id.as_deref().unwrap_or("-"),
        })
    }
}

/// Print the path of the profile's file, whether it exists or not.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  metering config path --profile work")]
pub(super) struct PathArgs {
    #[command(flatten)]
    profile: ProfileArgs,
}

impl PathArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        Ok(writeln!(out, "{}", self.profile.profile()?.path().display())?)
    }
}
