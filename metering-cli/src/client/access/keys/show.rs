//! `keys show`: one key.

use std::io::Write;

use clap::Args;
use metering_client::calls::keys::{GetKey, OfKey};
use metering_core::access::KeyId;

use super::response::write_key;
use crate::client::session::ProfileArgs;
use crate::failure::Failure;
use crate::output::Format;

/// Show a key: its terms and its usage. Without an id, the profile's own key, which needs no scope.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  metering keys show
  metering keys show key_0123456789abcdef0123 --json")]
pub(super) struct ShowArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    /// The key's id; without it, the profile's own key.
    #[arg(value_name = "KEY")]
    key: Option<KeyId>,
    #[command(flatten)]
    format: Format,
}

impl ShowArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let client = self.profile.open()?.client()?;
        let of = self.key.map_or_else(OfKey::current, |key| OfKey { id: key.to_string() });
        write_key(out, self.format.json, "", client.call::<GetKey>(&of, &()).await?)
    }
}
