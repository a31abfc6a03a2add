use std::io::Write;

use clap::Args;
use serde::Serialize;

use crate::client::access::home::Home;
use crate::client::access::profile::Profile;
use crate::failure::Failure;
use crate::output::{Format, notice, write_json};
use crate::table::{Column, Table};

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

const COLUMNS: &[Column] = &[
    Column::word("PROFILE"),
    Column::text("URL"),
    Column::word("API KEY").optional(1),
    Column::id("ACCOUNT").optional(2),
];

impl ListArgs {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
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
        let mut table = Table::new(COLUMNS);
        for row in &rows {
            let or_none = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
            table.row([&row.profile, &or_none(&row.url), &or_none(&row.api_key), &or_none(&row.org_id)]);
        }
        table.write(out)
    }
}
