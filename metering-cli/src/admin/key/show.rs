//! `key show`: one key.

use std::io::Write;

use clap::Args;
use metering_admin::calls::keys::ShowKey;

use super::key_of_account::KeyOfAccount;
use crate::admin::session::Session;
use crate::failure::Failure;
use crate::keys::document;
use crate::output::{Format, write_json};

/// Show a key: its terms and its usage.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  metering admin key show org_0123456789abcdefghij key_0123456789abcdef0123")]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    of: KeyOfAccount,
    #[command(flatten)]
    format: Format,
}

impl ShowArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let key = session.administrator().await?.get::<ShowKey>(self.of.place()).await?.data;
        if self.format.json { write_json(out, &key) } else { document::write(out, "", &key) }
    }
}
