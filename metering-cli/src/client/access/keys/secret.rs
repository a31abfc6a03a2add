//! Commands that print a new secret: `keys create` and `keys rotate`.

use std::io::Write;

use clap::Args;
use metering_client::calls::keys::{CreateKey, GetKey, OfKey, OfNamedKey, RotateKey};
use metering_core::access::KeyId;
use metering_core::charging::IdempotencyKey;
use metering_core::wire::{KeyResponse, RotateKeyRequest};

use super::issued::{Issued, attempts};
use crate::client::access::profile::ProfileName;
use crate::client::charging::call::generate_key;
use crate::client::session::options::CallOptions;
use crate::confirm::Confirmation;
use crate::failure::Failure;
use crate::keys::terms::NewTerms;

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
    terms: NewTerms,
    /// Store the secret in this profile, which must not have a key yet, and do not print it.
    #[arg(long, value_name = "NAME")]
    save_profile: Option<ProfileName>,
    /// Get the key of a run whose response was lost; the error message has the value.
    #[arg(long, value_name = "KEY", value_parser = IdempotencyKey::parse)]
    idempotency_key: Option<IdempotencyKey>,
    #[command(flatten)]
    options: CallOptions,
}

impl CreateArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let session = self.options.open()?;
        let destination = self.save_profile.map(|name| session.empty_profile(name)).transpose()?;
        let request = self.terms.request();
        let idempotency_key = self.idempotency_key.unwrap_or_else(generate_key);
        let client = session.client()?.with_idempotency_key(idempotency_key.clone());
        let response = attempts(&idempotency_key, async || client.call::<CreateKey>(&(), &request).await).await?;
        Issued::read(&response)?.deliver(&session, destination, &response, self.options.json(), out)
    }
}

/// Replace the secret of a child of the profile's key, and print the new one. The secret is shown only once.
#[derive(Debug, Args)]
#[command(after_help = "\
The key keeps its id, its terms and its usage. A key that leaked works again with the new secret. The profile's own key
is replaced with `metering rotate --current`, which stores the new one.

Examples:
  metering keys rotate key_0123456789abcdef0123
  metering keys rotate key_0123456789abcdef0123 --grace 3600")]
pub(super) struct RotateArgs {
    /// The key's id.
    #[arg(value_name = "KEY")]
    key: KeyId,
    /// How many more seconds the old secret works, at most a week.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(0..=604_800))]
    grace: Option<u32>,
    /// Store the secret in this profile, which must not have a key yet, and do not print it.
    #[arg(long, value_name = "NAME")]
    save_profile: Option<ProfileName>,
    /// Get the secret of a run whose response was lost; the error message has the value.
    #[arg(long, value_name = "KEY", value_parser = IdempotencyKey::parse)]
    idempotency_key: Option<IdempotencyKey>,
    #[command(flatten)]
    confirmation: Confirmation,
    #[command(flatten)]
    options: CallOptions,
}

impl RotateArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let session = self.options.open()?;
        let destination = self.save_profile.map(|name| session.empty_profile(name)).transpose()?;
        let client = session.client()?;
        let KeyResponse { data: own } = client.call::<GetKey>(&OfKey::current(), &()).await?.json()?;
        if own.id == self.key.to_string() {
            return Err(Failure::Usage(format!(
                "{} is the profile's own key: replace it with `metering rotate --current`, which stores the new one",
                own.id
            )));
        }
        if self.grace.is_none_or(|seconds| seconds == 0) {
            let question = format!("Replace the secret of key {}? The old one stops working immediately.", self.key);
            self.confirmation.ask(&question).await?;
        }
        let of = OfNamedKey { id: self.key.to_string() };
        let rotation = RotateKeyRequest { grace_seconds: self.grace };
        let idempotency_key = self.idempotency_key.unwrap_or_else(generate_key);
        let client = client.with_idempotency_key(idempotency_key.clone());
        let response = attempts(&idempotency_key, async || client.call::<RotateKey>(&of, &rotation).await).await?;
        Issued::read(&response)?.deliver(&session, destination, &response, self.options.json(), out)
    }
}
