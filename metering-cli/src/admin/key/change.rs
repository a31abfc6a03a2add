//! `key set`, `key disable` and `key enable`: change the terms of a key.

use std::io::Write;

use clap::Args;
use metering_admin::calls::keys::ChangeKey;
use metering_admin::wire::KeyChangeRequest;
use metering_core::wire::ChangeKeyRequest;

use super::key_of_account::KeyOfAccount;
use crate::admin::session::Session;
use crate::failure::Failure;
use crate::keys::document;
use crate::keys::terms::{ChangedTerms, disabled};
use crate::output::{Format, write_json};

/// Change the terms of a key. A term that is not given stays as it is.
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

/// Switch a key off, and its child keys with it.
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

/// Switch a key on again.
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
