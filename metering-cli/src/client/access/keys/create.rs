//! `keys create`: makes a child of the profile's key.

use std::io::Write;

use clap::Args;
use metering_client::calls::keys::CreateKey;
use metering_core::charging::IdempotencyKey;

use super::issued::{Issued, attempts};
use crate::client::access::profile::ProfileName;
use crate::client::charging::call::generate_key;
use crate::client::session::ProfileArgs;
use crate::failure::Failure;
use crate::keys::terms::NewTerms;
use crate::output::Format;

/// Make a child of the profile's key, and print its secret. The secret is shown only once.
#[derive(Debug, Args)]
#[command(after_help = "\
The key cannot be used for more than the profile's key, and stops with it.

Examples:
  metering keys create --name sub-agent --limit 5 --limit-reset daily
  metering keys create --name reporting --scopes read --expires-at 2030-01-01T00:00:00Z
  metering keys create --name laptop --save-profile laptop")]
pub(super) struct CreateArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    #[command(flatten)]
    terms: NewTerms,
    /// Store the secret in this profile, which must not have a key yet, and do not print it.
    #[arg(long, value_name = "NAME")]
    save_profile: Option<ProfileName>,
    /// Get the key of a run whose response was lost; the error message has the value.
    #[arg(long, value_name = "KEY", value_parser = IdempotencyKey::parse)]
    idempotency_key: Option<IdempotencyKey>,
    #[command(flatten)]
    format: Format,
}

impl CreateArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let session = self.profile.open()?;
        let destination = self.save_profile.map(|name| session.empty_profile(name)).transpose()?;
        let request = self.terms.request();
        let idempotency_key = self.idempotency_key.unwrap_or_else(generate_key);
        let client = session.client()?.with_idempotency_key(idempotency_key.clone());
        let response = attempts(&idempotency_key, async || client.call::<CreateKey>(&(), &request).await).await?;
        Issued::read(&response)?.deliver(&session, destination, &response, self.format.json, out)
    }
}
