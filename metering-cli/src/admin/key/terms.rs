//! Commands about keys that exist: list, show, set, disable, enable and delete.

use std::io::Write;

use clap::Args;
use metering_admin::calls::keys::{ChangeKey, DeleteKey, OfKey, ShowKey};
use metering_admin::wire::KeyChangeRequest;
use metering_core::AccountId;
use metering_core::access::KeyId;
use metering_core::wire::{ChangeKeyRequest, KeysDocument};

use crate::admin::session::Session;
use crate::confirm::confirm;
use crate::failure::Failure;
use crate::keys::document;
use crate::keys::terms::{ChangedTerms, disabled};
use crate::output::{Format, write_json};

/// A key of an account.
#[derive(Debug, Args)]
pub(super) struct KeyOfAccount {
    /// The account's id.
    #[arg(value_name = "ORG")]
    pub(super) org: AccountId,
    /// The key's id.
    #[arg(value_name = "KEY")]
    pub(super) key: KeyId,
}

impl KeyOfAccount {
    /// The key in a call.
    pub(super) fn place(&self) -> OfKey {
        OfKey { id: self.org.clone(), key: self.key.clone() }
    }
}

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

/// Change the terms of a key. Omitted terms do not change.
#[derive(Debug, Args)]
#[command(after_help = "\
Takes effect immediately, in running servers too. A new limit counts what was used since its period began.

Examples:
  metering admin key set org_0123456789abcdefghij key_0123456789abcdef0123 --limit 20 --limit-reset weekly
  metering admin key set org_0123456789abcdefghij key_0123456789abcdef0123 --limit none --route any")]
pub(crate) struct SetArgs {
    #[command(flatten)]
    of: KeyOfAccount,
    #[command(flatten)]
    terms: ChangedTerms,
    #[command(flatten)]
    format: Format,
}

/// Disable a key and its child keys.
#[derive(Debug, Args)]
#[command(after_help = "\
Takes effect immediately, in running servers too.

Example:
  metering admin key disable org_0123456789abcdefghij key_0123456789abcdef0123")]
pub(crate) struct DisableArgs {
    #[command(flatten)]
    of: KeyOfAccount,
    #[command(flatten)]
    format: Format,
}

/// Enable a key again.
#[derive(Debug, Args)]
#[command(after_help = "\
Takes effect immediately, in running servers too. A key that leaked must be rotated instead.

Example:
  metering admin key enable org_0123456789abcdefghij key_0123456789abcdef0123")]
pub(crate) struct EnableArgs {
    #[command(flatten)]
    of: KeyOfAccount,
    #[command(flatten)]
    format: Format,
}

impl SetArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        change(session, out, &self.of, &self.format, self.terms.request(), "The key was changed.").await
    }
}

impl DisableArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        change(session, out, &self.of, &self.format, disabled(true), "The key is disabled.").await
    }
}

impl EnableArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        change(session, out, &self.of, &self.format, disabled(false), "The key is enabled.").await
    }
}

async fn change(
    session: &Session,
    out: &mut dyn Write,
    of: &KeyOfAccount,
    format: &Format,
    request: ChangeKeyRequest,
    done: &str,
) -> Result<(), Failure> {
    let wanted = KeyChangeRequest { change: request, reason: String::new() };
    let key = session.administrator().await?.call::<ChangeKey>(of.place(), wanted).await?.data;
    if format.json { write_json(out, &key) } else { document::write(out, done, &key) }
}

/// Delete a key and its child keys permanently. Its usage stays in the reports.
#[derive(Debug, Args)]
#[command(after_help = "\
Asks for confirmation, unless --yes is given. Takes effect immediately, in running servers too. To stop a key for a
while, use `metering admin key disable`.

Example:
  metering admin key delete org_0123456789abcdefghij key_0123456789abcdef0123 --yes")]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    of: KeyOfAccount,
    /// Do not ask for confirmation.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    format: Format,
}

impl DeleteArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let org = &self.of.org;
        let administrator = session.administrator().await?;
        if !self.yes {
            let before = administrator.get::<ShowKey>(self.of.place()).await?.data;
            confirm(&format!("Permanently delete key {} ({}) of account {org}?", before.id, before.name)).await?;
        }
        let deleted = administrator.act::<DeleteKey>(self.of.place()).await?;
        if self.format.json {
            return write_json(out, &deleted);
        }
        Ok(writeln!(out, "The key is deleted.")?)
    }
}
