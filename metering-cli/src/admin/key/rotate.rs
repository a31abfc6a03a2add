//! `key rotate`: replaces the secret of a key.

use std::io::Write;

use clap::Args;
use metering_admin::calls::keys::RotateKey;
use metering_admin::wire::KeyRotationRequest;

use super::issued::IssuedSecret;
use super::key_of_account::KeyOfAccount;
use crate::admin::session::Session;
use crate::confirm::Confirmation;
use crate::failure::Failure;
use crate::output::Format;

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
