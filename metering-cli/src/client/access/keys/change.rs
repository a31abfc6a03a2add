//! `keys set`, `keys disable` and `keys enable`: change the terms of a key.

use std::io::Write;

use clap::Args;
use metering_client::calls::keys::{ChangeKey, OfKey};
use metering_core::access::KeyId;

use super::response::write_key;
use crate::client::session::ProfileArgs;
use crate::failure::Failure;
use crate::keys::terms::{ChangedTerms, disabled};
use crate::output::Format;

/// Change the terms of a key. A term that is not given stays as it is.
#[derive(Debug, Args)]
#[command(after_help = "\
Takes effect immediately. A new limit counts what was used since its period began.

Examples:
  metering keys set key_0123456789abcdef0123 --limit 20 --limit-reset weekly
  metering keys set key_0123456789abcdef0123 --limit none --route any")]
pub(super) struct SetArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    /// The key's id.
    #[arg(value_name = "KEY")]
    key: KeyId,
    #[command(flatten)]
    terms: ChangedTerms,
    #[command(flatten)]
    format: Format,
}

/// Switch a key off, and its child keys with it.
#[derive(Debug, Args)]
#[command(after_help = "\
Takes effect immediately.

Example:
  metering keys disable key_0123456789abcdef0123")]
pub(super) struct DisableArgs {
    #[command(flatten)]
    switch: Switch,
}

/// Switch a key on again.
#[derive(Debug, Args)]
#[command(after_help = "\
Takes effect immediately. A key that leaked must be rotated instead.

Example:
  metering keys enable key_0123456789abcdef0123")]
pub(super) struct EnableArgs {
    #[command(flatten)]
    switch: Switch,
}

#[derive(Debug, Args)]
struct Switch {
    #[command(flatten)]
    profile: ProfileArgs,
    /// The key's id.
    #[arg(value_name = "KEY")]
    key: KeyId,
    #[command(flatten)]
    format: Format,
}

impl SetArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let client = self.profile.open()?.client()?;
        let response = client.call::<ChangeKey>(&OfKey { id: self.key.to_string() }, &self.terms.request()).await?;
        write_key(out, self.format.json, "The key was changed.", response)
    }
}

impl DisableArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        self.switch.run(true, "The key is disabled.", out).await
    }
}

impl EnableArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        self.switch.run(false, "The key is enabled.", out).await
    }
}

impl Switch {
    async fn run(self, off: bool, done: &str, out: &mut dyn Write) -> Result<(), Failure> {
        let client = self.profile.open()?.client()?;
        let of = OfKey { id: self.key.to_string() };
        write_key(out, self.format.json, done, client.call::<ChangeKey>(&of, &disabled(off)).await?)
    }
}
