//! `metering config`: shows and changes profiles. It shows only the ends of keys, and never takes keys as arguments.

mod set;
mod show;
mod unset;

use crate::commands::commands;

pub(in crate::client::access) use set::read_key;

commands! {
    /// Show and change profiles.
    #[command(after_help = "\
Examples:
  metering config show
  metering config set url https://api.example.com --profile work
  metering config set api-key < key.txt
  metering config set daily-limit 2.5

Environment variables override the profile:
  METERING_CLIENT_PROFILE     the profile's name
  METERING_CLIENT_URL         the service's URL
  METERING_CLIENT_API_KEY     the API key
  METERING_CLIENT_HOME        where profiles are kept
  METERING_CLIENT_ALLOW_HTTP  1 allows plain HTTP to other machines")]
    ConfigArgs {
        Show(show::ShowArgs),
        List(show::ListArgs),
        Set(set::SetArgs),
        Unset(unset::UnsetArgs),
        Path(show::PathArgs),
        Remove(unset::RemoveArgs),
    }
}
