//! `keys delete`: deletes a key.

use std::io::Write;

use clap::Args;
use metering_client::calls::keys::{DeleteKey, GetKey, OfKey, OfNamedKey};
use metering_core::access::KeyId;
use metering_core::wire::KeyResponse;

use crate::client::session::ProfileArgs;
use crate::confirm::confirm;
use crate::failure::Failure;
use crate::json::write_as_sent;
use crate::output::Format;

/// Delete a key and its child keys permanently.
#[derive(Debug, Args)]
#[command(after_help = "\
Asks for confirmation, unless --yes is given. To stop a key for a while, use `metering keys disable`.

Example:
  metering keys delete key_0123456789abcdef0123 --yes")]
pub(super) struct DeleteArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    /// The key's id.
    #[arg(value_name = "KEY")]
    key: KeyId,
    /// Do not ask for confirmation.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    format: Format,
}

impl DeleteArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let client = self.profile.open()?.client()?;
        if !self.yes {
            let of = OfKey { id: self.key.to_string() };
            let KeyResponse { data } = client.call::<GetKey>(&of, &()).await?.json()?;
            confirm(&format!("Permanently delete key {} ({})?", data.id, data.name)).await?;
        }
        let response = client.call::<DeleteKey>(&OfNamedKey { id: self.key.to_string() }, &()).await?;
        if self.format.json {
            return write_as_sent(out, &response.body);
        }
        Ok(writeln!(out, "The key is deleted.")?)
    }
}
