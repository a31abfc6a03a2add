//! `key list`: the keys of an account.

use std::io::Write;

use clap::Args;
use metering_core::AccountId;
use metering_core::wire::KeysDocument;

use crate::admin::session::Session;
use crate::failure::Failure;
use crate::keys::document;
use crate::output::{Format, write_json};

/// List the keys of an account, oldest first.
#[derive(Debug, Args)]
#[command(after_help = "\
Deleted keys are left out; `metering admin usage` still names them.

Examples:
  metering admin key list org_0123456789abcdefghij
  metering admin key list org_0123456789abcdefghij --json")]
pub(crate) struct ListArgs {
    /// The account's id.
    #[arg(value_name = "ORG")]
    org: AccountId,
    #[command(flatten)]
    format: Format,
}

impl ListArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let data = session.administrator().await?.keys(&self.org).await?;
        if self.format.json {
            return write_json(out, &KeysDocument { data, next: None });
        }
        document::write_list(out, &data)
    }
}
