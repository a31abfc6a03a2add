//! `keys leaked`: disables a key that was found where it should not be.

use std::io::Write;

use clap::Args;
use metering_client::calls::keys::ReportLeaked;
use metering_core::wire::{LeakedKeyRequest, LeakedKeyResponse};

use crate::client::access::config::read_key;
use crate::client::session::ProfileArgs;
use crate::failure::Failure;
use crate::json::write_as_sent;
use crate::output::Format;

/// Disable a key that was found where it should not be, read from standard input or a prompt, never from an argument.
///
/// Anyone who has the key may do this; the profile needs no key. The key's owner makes it work again with
/// `metering keys rotate`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  metering keys leaked
  metering keys leaked < found.txt")]
pub(super) struct LeakedArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    #[command(flatten)]
    format: Format,
}

impl LeakedArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let session = self.profile.open()?;
        let leaked = LeakedKeyRequest { key: Some(read_key()?.expose().to_owned()) };
        let response = session.anonymous().call::<ReportLeaked>(&(), &leaked).await?;
        let LeakedKeyResponse { disabled } = response.json()?;
        if self.format.json {
            return write_as_sent(out, &response.body);
        }
        let done = if disabled { "The key no longer works." } else { "The key did not work; nothing changed." };
        Ok(writeln!(out, "{done}")?)
    }
}
