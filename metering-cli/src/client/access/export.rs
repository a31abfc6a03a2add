//! `metering export`: everything that the service stores of the account.

use std::io::Write;

use clap::Args;
use serde::de::IgnoredAny;

use crate::client::session::ProfileArgs;
use crate::client::session::documents::Document;
use crate::failure::Failure;

/// Print everything that the service stores of the account, as JSON.
///
/// Needs the account's first key. Without secrets. Long lists are truncated, and `next` is the cursor of the rest:
/// `metering usage`, `receipts` and `events` list the rest.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  metering export > account.json
  metering export --profile work > account.json")]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    profile: ProfileArgs,
}

impl ExportArgs {
    pub(crate) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let client = self.profile.open()?.client()?;
        let document: Document<IgnoredAny> = Document::get(&client, "/account/export").await?;
        document.write_json(out)?;
        Ok(out.flush()?)
    }
}
