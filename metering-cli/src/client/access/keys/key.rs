//! Commands about keys that exist: list, show, set, disable, enable, delete and leaked.

use std::io::Write;

use clap::Args;
use metering_client::calls::keys::{ChangeKey, DeleteKey, GetKey, KeysPage, ListKeys, OfKey, OfNamedKey, ReportLeaked};
use metering_core::access::KeyId;
use metering_core::store::Cursor;
use metering_core::wire::call::Bounded;
use metering_core::wire::{ChangeKeyRequest, KeyDocument, KeyResponse, LeakedKeyRequest, LeakedKeyResponse};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::client::access::config::read_key;
use crate::client::session::options::CallOptions;
use crate::confirm::confirm;
use crate::failure::Failure;
use crate::json::write_as_sent;
use crate::keys::document;
use crate::keys::terms::{ChangedTerms, disabled};
use crate::output::write_json;

/// List the profile's key and its child keys, oldest first.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  metering keys list
  metering keys list --json")]
pub(super) struct ListArgs {
    #[command(flatten)]
    options: CallOptions,
}

/// A part of the list. Each key is kept as the service wrote it.
#[derive(Deserialize)]
struct Page {
    data: Vec<Box<RawValue>>,
    next: Option<String>,
}

/// The whole list.
#[derive(Serialize)]
struct Document {
    data: Vec<Box<RawValue>>,
}

impl ListArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let client = self.options.client()?;
        let (mut data, mut keys) = (Vec::new(), KeysPage { limit: Bounded::MAX, after: None });
        loop {
            let page: Page = client.call::<ListKeys>(&keys, &()).await?.json()?;
            data.extend(page.data);
            keys.after = page.next.map(Cursor::new);
            if keys.after.is_none() {
                break;
            }
        }
        if self.options.json() {
            return write_json(out, &Document { data });
        }
        let parsed = data.iter().map(|key| serde_json::from_str(key.get())).collect::<Result<Vec<KeyDocument>, _>>();
        let parsed =
            parsed.map_err(|error| Failure::Failed(format!("could not read the service's response: {error}")))?;
        document::write_list(out, &parsed)
    }
}

/// Show a key: its terms and its usage. Without an id, the profile's own key, which needs no scope.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  metering keys show
  metering keys show key_0123456789abcdef0123 --json")]
pub(super) struct ShowArgs {
    /// The key's id; without it, the profile's own key.
    #[arg(value_name = "KEY")]
    key: Option<KeyId>,
    #[command(flatten)]
    options: CallOptions,
}

impl ShowArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let of = self.key.map_or_else(OfKey::current, |key| OfKey { id: key.to_string() });
        self.options.call::<GetKey>(&of, &(), out, |found, out| document::write(out, "", &found.data)).await
    }
}

/// Change the terms of a key. Omitted terms do not change.
#[derive(Debug, Args)]
#[command(after_help = "\
Takes effect immediately. A new limit counts what was used since its period began.

Examples:
  metering keys set key_0123456789abcdef0123 --limit 20 --limit-reset weekly
  metering keys set key_0123456789abcdef0123 --limit none --route any")]
pub(super) struct SetArgs {
    /// The key's id.
    #[arg(value_name = "KEY")]
    key: KeyId,
    #[command(flatten)]
    terms: ChangedTerms,
    #[command(flatten)]
    options: CallOptions,
}

/// Disable a key and its child keys.
#[derive(Debug, Args)]
#[command(after_help = "\
Takes effect immediately.

Example:
  metering keys disable key_0123456789abcdef0123")]
pub(super) struct DisableArgs {
    /// The key's id.
    #[arg(value_name = "KEY")]
    key: KeyId,
    #[command(flatten)]
    options: CallOptions,
}

/// Enable a key again.
#[derive(Debug, Args)]
#[command(after_help = "\
Takes effect immediately. A key that leaked must be rotated instead.

Example:
  metering keys enable key_0123456789abcdef0123")]
pub(super) struct EnableArgs {
    /// The key's id.
    #[arg(value_name = "KEY")]
    key: KeyId,
    #[command(flatten)]
    options: CallOptions,
}

impl SetArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        change(&self.options, self.key, &self.terms.request(), "The key was changed.", out).await
    }
}

impl DisableArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        change(&self.options, self.key, &disabled(true), "The key is disabled.", out).await
    }
}

impl EnableArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        change(&self.options, self.key, &disabled(false), "The key is enabled.", out).await
    }
}

async fn change(
    options: &CallOptions,
    key: KeyId,
    request: &ChangeKeyRequest,
    done: &str,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let of = OfKey { id: key.to_string() };
    options.call::<ChangeKey>(&of, request, out, |changed, out| document::write(out, done, &changed.data)).await
}

/// Delete a key and its child keys permanently.
#[derive(Debug, Args)]
#[command(after_help = "\
Asks for confirmation, unless --yes is given. To stop a key for a while, use `metering keys disable`.

Example:
  metering keys delete key_0123456789abcdef0123 --yes")]
pub(super) struct DeleteArgs {
    /// The key's id.
    #[arg(value_name = "KEY")]
    key: KeyId,
    /// Do not ask for confirmation.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    options: CallOptions,
}

impl DeleteArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let client = self.options.client()?;
        if !self.yes {
            let of = OfKey { id: self.key.to_string() };
            let KeyResponse { data } = client.call::<GetKey>(&of, &()).await?.json()?;
            confirm(&format!("Permanently delete key {} ({})?", data.id, data.name)).await?;
        }
        let response = client.call::<DeleteKey>(&OfNamedKey { id: self.key.to_string() }, &()).await?;
        if self.options.json() {
            return write_as_sent(out, &response.body);
        }
        Ok(writeln!(out, "The key is deleted.")?)
    }
}

/// Disable a leaked key that you found. Reads it from standard input or a prompt, never from an argument.
///
/// Anyone who has the key may do this; the profile needs no key. The key's owner can restore it with `metering keys
/// rotate`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  metering keys leaked
  metering keys leaked < found.txt")]
pub(super) struct LeakedArgs {
    #[command(flatten)]
    options: CallOptions,
}

impl LeakedArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let session = self.options.open()?;
        let leaked = LeakedKeyRequest { key: Some(read_key()?.expose().to_owned()) };
        let response = session.anonymous().call::<ReportLeaked>(&(), &leaked).await?;
        let LeakedKeyResponse { disabled } = response.json()?;
        if self.options.json() {
            return write_as_sent(out, &response.body);
        }
        let done = if disabled { "The key no longer works." } else { "The key did not work; nothing changed." };
        Ok(writeln!(out, "{done}")?)
    }
}
