//! Commands that print a new secret: `key create` and `key rotate`. It can be printed only once, because the store keeps
//! only its hash.

use std::io::Write;

use clap::Args;
use metering_admin::calls::accounts::OfAccount;
use metering_admin::calls::keys::{CreateKey, RotateKey};
use metering_admin::wire::{KeyRotationRequest, NewKeyRequest};
use metering_core::AccountId;
use metering_core::wire::IssuedKeyResponse;

use super::terms::KeyOfAccount;
use crate::admin::session::Session;
use crate::confirm::Confirmation;
use crate::failure::Failure;
use crate::keys::terms::NewTerms;
use crate::output::{Format, write_json};
use crate::table::write_pairs;

/// Create a key and print its secret. The secret is shown only once.
#[derive(Debug, Args)]
#[command(after_help = "\
The key is a child of the account's first key: it cannot be used for more than that, and stops with it.

Examples:
  metering admin key create org_0123456789abcdefghij --name batch --limit 10 --limit-reset monthly
  metering admin key create org_0123456789abcdefghij --name office --network 203.0.113.0/24 --scopes call,read,manage")]
pub(crate) struct CreateArgs {
    /// The account's id.
    #[arg(value_name = "ORG")]
    org: AccountId,
    #[command(flatten)]
    terms: NewTerms,
    #[command(flatten)]
    format: Format,
}

impl CreateArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let wanted = NewKeyRequest { key: self.terms.request(), reason: String::new() };
        let issued =
            session.administrator().await?.call::<CreateKey>(OfAccount { id: self.org.clone() }, wanted).await?;
        IssuedSecret { org: &self.org, issued }.print(out, self.format.json)
    }
}

/// Replace the secret of a key and print the new one. The secret is shown only once.
#[derive(Debug, Args)]
#[command(after_help = "\
Takes effect immediately, in running servers too. The key keeps its id, its terms and its usage. A key that leaked works
again with the new secret.

Examples:
  metering admin key rotate org_0123456789abcdefghij key_0123456789abcdef0123
  metering admin key rotate org_0123456789abcdefghij key_0123456789abcdef0123 --grace 3600")]
pub(crate) struct RotateArgs {
    #[command(flatten)]
    of: KeyOfAccount,
    /// How many more seconds the old secret works, at most a week.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(0..=604_800))]
    grace: Option<u32>,
    #[command(flatten)]
    confirmation: Confirmation,
    #[command(flatten)]
    format: Format,
}

impl RotateArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let administrator = session.administrator().await?;
        let old = match self.grace.filter(|seconds| *seconds > 0) {
            Some(seconds) => format!("The old one works for {seconds} more seconds."),
            None => "The old one stops working immediately.".to_owned(),
        };
        self.confirmation.ask(&format!("Replace the secret of a key of account {}? {old}", self.of.org)).await?;
        let rotation = KeyRotationRequest { grace_seconds: self.grace, reason: String::new() };
        let issued = administrator.call::<RotateKey>(self.of.place(), rotation).await?;
        IssuedSecret { org: &self.of.org, issued }.print(out, self.format.json)
    }
}

/// The secret of a key that has not been shown yet.
pub(super) struct IssuedSecret<'a> {
    pub(super) org: &'a AccountId,
    pub(super) issued: IssuedKeyResponse,
}

impl IssuedSecret<'_> {
    /// Prints the secret. It can never be printed again, so even a closed pipe is a failure here, and the error says
    /// what to do.
    pub(super) fn print(self, out: &mut dyn Write, json: bool) -> Result<(), Failure> {
        let key = &self.issued.data;
        let again = format!("metering admin key rotate {} {}", self.org, key.id);
        self.write(out, json, &again).and_then(|()| Ok(out.flush()?)).map_err(|failure| {
            Failure::Failed(format!(
                "could not print the new secret of key {} ({failure}), so it is lost; get another with `{again}`",
                key.id
            ))
        })
    }

    fn write(&self, out: &mut dyn Write, json: bool, again: &str) -> Result<(), Failure> {
        if json {
            return write_json(out, &self.issued);
        }
        let IssuedKeyResponse { key: secret, data: key } = &self.issued;
        write_pairs(
            out,
            &[("Account", self.org), ("Key", &key.id), ("Name", &key.name), ("API key", &secret.key().expose())],
        )?;
        writeln!(out, "\nThe API key is shown only once; save it now. If it is lost, replace it with")?;
        Ok(writeln!(out, "  {again}")?)
    }
}
